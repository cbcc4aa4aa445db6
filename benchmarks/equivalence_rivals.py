"""Other criteria for the same answers, as they are in use elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from harness.domain.outputs import Output
from harness.ranking import Table, unpack

_TOP = 5
_LOGPROB = 5e-2

Pair = tuple[Output, Output]


def greedy_identical(pairs: Sequence[Pair]) -> bool:
    """Whether all greedily generated tokens are the same."""
    return all(ours.tokens == theirs.tokens for ours, theirs in pairs)


def top_five_at_mismatch(pairs: Sequence[Pair]) -> bool:
    """Whether each arm's token is among the other's five most probable where they first part."""
    for ours, theirs in pairs:
        at = next(
            (i for i, both in enumerate(zip(ours.tokens, theirs.tokens, strict=True)) if both[0] != both[1]), None
        )
        if at is None:
            continue
        mine, other = (_table(each)[1].ids[at, :_TOP] for each in (ours, theirs))
        if ours.tokens[at] not in other or theirs.tokens[at] not in mine:
            return False
    return True


def top_five_logprobs(pairs: Sequence[Pair]) -> bool:
    """Whether the log-probabilities of the reference's five most probable prompt tokens agree to 0.05."""
    for ours, theirs in pairs:
        mine, other = _table(ours)[0], _table(theirs)[0]
        same = mine.ids[:, :_TOP, None] == other.ids[:, None, :]
        # NaN would pass a comparison turned the other way.
        near = np.abs(mine.logprobs[:, :_TOP, None] - other.logprobs[:, None, :]) <= _LOGPROB
        if not (same & near).any(axis=2).all():
            return False
    return True


CRITERIA: Mapping[str, Callable[[Sequence[Pair]], bool]] = {
    "greedy tokens identical": greedy_identical,
    "top-5 membership at the first mismatch": top_five_at_mismatch,
    "top-5 log-probabilities within 5e-2": top_five_logprobs,
}


def _table(output: Output) -> tuple[Table, Table]:
    if output.prefill is None or output.greedy is None:
        raise ValueError(f"{output.prompt}: no distributions")
    return unpack(output.prefill), unpack(output.greedy)
