"""Routers that choose some experts more often than others, and an estimate of how often each is chosen.

The scores of a router's row with length l are l times a unit normal. An expert is chosen where its score is among the
k largest; with the threshold t between them its share is the probability that l times a unit normal exceeds t. So a
row of length t / z, where a unit normal exceeds z with probability p, is chosen for a share p of the tokens. Shares
follow Zipf's law over the ranks, which a shuffle gives to the experts of each layer, and add up to k; none exceeds
`MOST_OFTEN`, because no length reaches one half. Only the router differs from a balanced one: inputs, sizes and all
other weights are the same.

How often experts are really chosen depends on the text. The estimate here feeds unit normals to the rows, which is
what RMS norms make of random networks' activations, near enough: of what 1000 random tokens chose in either engine 4 to
5 % lay elsewhere, in skewed and balanced routers of six layers, which is what samples of this size scatter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

MOST_OFTEN = 0.4
"""Share of the tokens that goes to the most popular expert of a skewed router, at most."""

_THRESHOLD = 0.5
"""The score that wins. It sets how much the chosen experts' weights differ, not which are chosen."""
_STEPS = 60
_GRID = 1024
_SAMPLES = 1024


def row_lengths(order: NDArray[np.uint64], used: int, exponent: float) -> NDArray[np.float32]:
    """Lengths of a skewed router's rows.

    Args:
        order: One random number for each expert; their order gives the ranks.
        used: Experts that a token goes through; at most `MOST_OFTEN` of all.
        exponent: Of Zipf's law.
    """
    shares = _shares(len(order), used, exponent)
    by_rank = [-_THRESHOLD / NormalDist().inv_cdf(share) for share in shares]
    lengths = np.empty(len(order), np.float32)
    # On a grid: the last bits of logarithms and powers differ between machines, the bytes of models must not.
    lengths[np.argsort(order, kind="stable")] = [max(1, round(length * _GRID)) / _GRID for length in by_rank]
    return lengths


def _shares(experts: int, used: int, exponent: float) -> list[float]:
    """Share of the tokens for each rank: as Zipf says, cut at `MOST_OFTEN`, `used` in all."""
    law = [rank**-exponent for rank in range(1, experts + 1)]
    low, high = 0.0, used / law[-1]
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if sum(min(MOST_OFTEN, middle * each) for each in law) > used else (middle, high)
    return [min(MOST_OFTEN, high * each) for each in law]


@dataclass(frozen=True)
class RouterEstimate:
    """How often each expert of one layer is chosen, estimated.

    Attributes:
        tensor: The router.
        tokens: How many random inputs were tried.
        chosen: For each expert, how many of them chose it.
    """

    tensor: str
    tokens: int
    chosen: tuple[int, ...]

    @property
    def busiest(self) -> float:
        """Share of all choices that the busiest tenth of the experts gets; at least one expert."""
        ordered = sorted(self.chosen, reverse=True)
        return sum(ordered[: max(1, len(ordered) // 10)]) / (sum(ordered) or 1)


def estimate(tensor: str, rows: NDArray[np.float32], used: int) -> RouterEstimate:
    """Feed random inputs to a router and count what it chooses.

    Args:
        tensor: Its name; decides the inputs.
        rows: Shape (experts, width).
        used: Experts that a token goes through.
    """
    seed = np.random.SeedSequence(list(tensor.encode()))
    inputs = np.random.Generator(np.random.PCG64(seed)).standard_normal((_SAMPLES, rows.shape[1]), np.float32)
    scores = inputs @ rows.T
    chosen = np.argpartition(scores, -used, axis=1)[:, -used:]
    counts: Sequence[int] = np.bincount(chosen.ravel(), minlength=len(rows)).tolist()
    return RouterEstimate(tensor, _SAMPLES, tuple(counts))
