"""Quads to a decision, look by look: regressed, improved, equivalent, or not yet known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.domain.spread import Spread
from harness.domain.verdict import Estimate
from harness.domain.words import Throughput


@dataclass(frozen=True, slots=True)
class Limits:
    """How strictly is decided.

    Attributes:
        alpha: Two-sided error rate of "different" for one case, over all looks.
        margin: Relative change that is still equivalent; the bounds of the ratio are 1 / (1 + margin) and 1 + margin.
        max_quads: Quads after which an open decision ends as inconclusive.
    """

    alpha: float
    margin: float
    max_quads: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What the quads say so far.

    Attributes:
        throughput: The word; ``inconclusive`` while open too.
        open: More quads can still decide.
        why: The deciding figure in words.
        ratio: Candidate speed over baseline speed with its interval; ``None`` below the fewest quads.
        next_look: Quads in all at which it is looked again, while open.
    """

    throughput: Throughput
    open: bool
    why: str
    ratio: Estimate | None
    next_look: int


def decide(log_ratios: Sequence[float], limits: Limits, spread: Spread | None = None) -> Decision:
    """Walk through the looks in order; the first decision stands, whatever comes after it.

    Args:
        log_ratios: Natural log of candidate speed over baseline speed, one per quad, in order of time.
        limits: How strictly is decided.
        spread: What is known beforehand of the quads' scatter.
    """
    raise NotImplementedError
