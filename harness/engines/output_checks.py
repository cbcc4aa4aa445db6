"""Whether the parts of an output fit each other: what is not consistent in itself is no output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.domain.outputs import Gaps, Output, Ranks, Source
from harness.ranking import NO_TOKEN, Table, unpack, unpack_values

_ROUNDING = 1e-3
"""Nats by which a log-probability may be above 0, or above the one before it."""


def check_output(output: Output) -> None:
    """Check each part against the others.

    Raises:
        ValueError: The first that does not fit.
    """
    _demand(not output.margins or len(output.margins) == len(output.tokens), "a margin for each generated token")
    positions = {
        "prefill": (output.prefill, range(1, len(output.prompt_tokens) + 1)),
        "greedy": (output.greedy, (len(output.tokens),)),
        "forced": (output.forced, (len(output.forced_at or output.forced_tokens),)),
    }
    _demand(list(output.forced_at) == sorted(set(output.forced_at)), "forced_at: each forced token once, in order")
    _demand(all(0 <= at < len(output.forced_tokens) for at in output.forced_at), "forced_at: tokens that are forced")
    for name, (ranks, fitting) in positions.items():
        if ranks is not None:
            _demand(ranks.positions in fitting, f"{name}: as many positions as tokens")
            _check_table(unpack(ranks), output)
    # A server's row at half a character is of an evaluation of its own, where rounding can turn a tie.
    if output.greedy is not None and output.source is not Source.SERVER:
        best = unpack(output.greedy).ids[:, 0]
        _demand(not output.finite or tuple(best.tolist()) == output.tokens, "greedy: the most probable tokens")
    for varied in output.varied:
        _check_gaps(varied.prefill, output.prefill)
        _check_gaps(varied.forced, output.forced)


def _check_table(table: Table, output: Output) -> None:
    ids, logprobs = table.ids, table.logprobs
    nowhere = (ids == NO_TOKEN).all(axis=1)
    _demand(not (output.finite and nowhere.any()), "a row that is not finite in an output that is")
    ids, logprobs = ids[~nowhere], logprobs[~nowhere]
    _demand(bool((ids >= 0).all() and np.isfinite(logprobs).all()), "token ids and finite log-probabilities")
    _demand(bool((logprobs <= _ROUNDING).all()), "log-probabilities of at most 0")
    _demand(bool((np.diff(logprobs, axis=1) <= _ROUNDING).all()), "the most probable tokens first")
    _demand(not table.problem, f"distributions: {table.problem}")


def _check_gaps(gaps: Gaps, ranks: Ranks | None) -> None:
    divergences = unpack_values(gaps.kld)
    _demand(len(divergences) == (ranks.positions if ranks else 0), "varied: a divergence at each position")
    _demand(bool((divergences >= 0).all()), "varied: divergences of at least 0")
    _demand(_are_margins(gaps.flips, len(divergences)), "varied: margins of at least 0")


def _are_margins(flips: Sequence[float], positions: int) -> bool:
    return len(flips) <= positions and all(margin >= 0 for margin in flips)


def _demand(fits: bool, what: str) -> None:
    if not fits:
        raise ValueError(f"expected {what}")
