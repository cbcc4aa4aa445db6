"""The probabilities of ik_llama.cpp's server, put right: it adds what its list leaves out to the normaliser twice.

Read in ``get_token_probabilities`` of 8337e4cd: the sum runs over the whole vocabulary and then once more over the
tokens after the listed ones. With ``h`` the listed weights, ``l`` those left out, a listed token of weight ``e`` gets
``r = e / (h + 2 l)`` instead of ``p = e / (h + l)``. The listed ones add up to ``T = h / (h + 2 l)``, from which
``p = 2 r / (1 + T)``: exact, whatever was left out. At one listed token ``r = p / (2 - p)``.

Whether a build does so is asked, not assumed: the same place listed to one token and to many tells the two apart.
"""

from __future__ import annotations

import math

import numpy as np

from .completions import Ranked

_TELLS = 2e-3
"""Nats by which the two ways must differ at a place for it to tell which is used."""
_ROUNDING = 1e-3
"""Nats by which what was answered may be off either way."""


def corrected(ranked: Ranked) -> Ranked:
    """What is ranked with the tail counted once."""
    if not ranked.finite:
        return ranked
    total = float(np.exp(np.array(ranked.logprobs)).sum())
    gain = math.log(2.0 / (1.0 + min(total, 1.0)))
    return Ranked(ranked.ids, tuple(min(value + gain, 0.0) for value in ranked.logprobs))


def tells(ranked: Ranked) -> float:
    """Nats by which the first token's log-probability would differ if it were listed alone and the tail twice."""
    if not ranked.finite:
        return 0.0
    return abs(_alone_and_doubled(ranked) - ranked.logprobs[0])


def can_tell(ranked: Ranked) -> bool:
    """Whether a place tells how a server counts."""
    return tells(ranked) > _TELLS


def is_doubled(ranked: Ranked, alone: Ranked) -> bool | None:
    """Whether the tail was counted twice.

    Args:
        ranked: A place that can tell, listed to many tokens.
        alone: The same place, listed to one.

    Returns:
        ``None`` where it is neither: the two are not of one place, or not probabilities.
    """
    if not alone.finite or alone.ids[0] != ranked.ids[0]:
        return None
    found = alone.logprobs[0]
    if abs(found - ranked.logprobs[0]) <= min(_ROUNDING, tells(ranked) / 2):
        return False
    return True if abs(found - _alone_and_doubled(ranked)) <= _ROUNDING else None


def _alone_and_doubled(ranked: Ranked) -> float:
    first = corrected(ranked).logprobs[0]
    return first - math.log(2.0 - math.exp(first))


def unbiased(ranked: Ranked, token: int, bias: float) -> Ranked:
    """A whole vocabulary as it is without what was added to one token's logit.

    Args:
        ranked: All tokens, so that nothing was left out.
        token: The token.
        bias: What was added.
    """
    ids = np.array(ranked.ids)
    values = np.array(ranked.logprobs) - np.where(ids == token, bias, 0.0)
    values -= values.max() + math.log(np.exp(values - values.max()).sum())
    order = np.argsort(-values, kind="stable")
    return Ranked(tuple(ids[order].tolist()), tuple(values[order].tolist()))
