"""The judging policy of a matrix: error rates, margins, accepted trades, and what becomes of the undecided."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from harness.domain.spread import Spread

UNKNOWN_SPREAD_MARGIN = 0.05
"""The margin where it goes by the spread and none is known."""

_MARGINS = ((0.02, 0.02), (0.035, 0.03), (0.07, 0.05))
"""Up to which spread of quads which margin can be decided in reasonable time."""

_WIDEST_MARGIN = 0.10


@dataclass(frozen=True, slots=True)
class Trade:
    """A loss that is accepted for a gain of the same contrast.

    Attributes:
        gain: Pattern over workload names: what has to improve, e.g. ``pp*``.
        at_least: By how much at least, relative; the lower bound of its interval counts.
        loss: Pattern over workload names: what may get slower for it.
        at_most: By how much at most, relative; the lower bound of its interval counts.
    """

    gain: str
    at_least: float
    loss: str
    at_most: float

    def pays_for(self, loss: str) -> bool:
        """Whether it is about a loss of this workload."""
        return fnmatchcase(loss, self.loss)

    def pays_with(self, gain: str) -> bool:
        """Whether it is about a gain of this workload."""
        return fnmatchcase(gain, self.gain)


@dataclass(frozen=True, slots=True)
class Policy:
    """How strictly measurements are judged.

    Attributes:
        alpha: Two-sided error rate of "different" for one contrast.
        margin: Relative change that is still "equivalent", e.g. 0.05.
        ceiling_tps: Tokens per second above which a measurement is not believed.
        inconclusive: ``skip`` reports the undecided as skipped, ``error`` as errors.
        auto_margin: The margin goes by the known spread of each workload; ``margin`` holds where none is known.
        trades: Losses that are accepted for gains; none by default.
    """

    alpha: float = 1e-3
    margin: float = UNKNOWN_SPREAD_MARGIN
    ceiling_tps: float = 1e6
    inconclusive: Literal["skip", "error"] = "skip"
    auto_margin: bool = False
    trades: tuple[Trade, ...] = ()

    def margin_for(self, spread: Spread | None) -> float:
        """The margin of a workload whose quads scatter like this."""
        if not self.auto_margin or spread is None or spread.df <= 0:
            return self.margin
        return next((margin for most, margin in _MARGINS if spread.quad_sd <= most), _WIDEST_MARGIN)
