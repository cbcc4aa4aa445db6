"""From imported rows to one figure a process, alike on both sides."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

from harness.domain.imported import ImportedRow
from harness.domain.measurement import NS
from harness.judging.effects import Component

_DROP_FROM = 3
"""Samples from which on the first is dropped: it is not like the others."""
_MEDIAN_VARIANCE = math.pi / 2
"""The variance of a median over that of a mean of as many normal values: at most this, whatever their number."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ?")


@dataclass(frozen=True, slots=True)
class Process:
    """One process start.

    Attributes:
        log_tps: Natural log of its speed.
        within: How uncertain that is by the scatter of its own repetitions; ``None``: not known.
        time: When it was measured; empty where unknown.
        repetitions: How many the figure was made of.
        share: Variance of the figure over that of one repetition.
    """

    log_tps: float
    within: Component | None
    time: str
    repetitions: int
    share: float


@dataclass(frozen=True, slots=True)
class Reduction:
    """How repetitions become one figure: the same way on both sides, or the two figures would not be alike.

    Attributes:
        means: Means of all repetitions, as tables have them, not medians of those kept.
        dropped: Repetitions left out at the beginning.
    """

    means: bool
    dropped: int

    @classmethod
    def of(cls, rows: Sequence[ImportedRow]) -> Reduction:
        """The one that all rows of both sides allow."""
        if any(row.summary for row in rows):
            return cls(means=True, dropped=0)
        undecided = [len(row.samples_ns) for row in rows if row.discarded is None]
        return cls(means=False, dropped=1 if all(count >= _DROP_FROM for count in undecided) else 0)

    def process(self, row: ImportedRow) -> Process | None:
        """The figure of a row; ``None`` where no repetition is left."""
        if row.summary:
            spread, mean, count = row.summary.sd_tps, row.summary.mean_tps, row.summary.repetitions
            return _process(math.log(mean), None if spread is None else spread / mean, count, row)
        kept = row.samples_ns[self.dropped if row.discarded is None else row.discarded :]
        speeds = [row.tokens * NS / value for value in kept]
        if not speeds:
            return None
        if self.means:
            mean = fmean(speeds)
            return _process(math.log(mean), _deviation(speeds) / mean, len(speeds), row)
        logs = [math.log(speed) for speed in speeds]
        factor = _MEDIAN_VARIANCE if len(logs) > 2 else 1.0  # noqa: PLR2004 - of two the median is the mean
        return _process(median(logs), _deviation(logs), len(logs), row, factor)


def _process(figure: float, sd: float | None, count: int, row: ImportedRow, factor: float = 1.0) -> Process:
    """A figure of ``count`` repetitions that scatter by ``sd``, relative; one alone does not tell."""
    share = factor / count
    within = Component(sd**2 * share, count - 1) if sd is not None and count > 1 else None
    return Process(figure, within, _time(row), count, share)


def _deviation(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0


def _time(row: ImportedRow) -> str:
    """Times of one form can be ordered as texts; others are not times."""
    return row.time.removesuffix("Z") if _TIME.fullmatch(row.time) else ""
