"""Floors: an absolute threshold on one arm's speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.domain.measurement import ProcessRun
from harness.domain.verdict import Estimate
from harness.domain.words import Status
from harness.judging.intervals import LogMean
from harness.judging.samples import DEFAULT_CEILING_TPS, MS_PER_S, ProcessMedian, process_medians
from harness.judging.sequential import INTERVAL_ALPHA

MIN_STARTS = 3
"""Fewest process starts of a single arm that anything is concluded from."""

_ROUNDING = 1 - 1e-12
"""A speed of exactly the floor comes back from its logarithm a few units in the last place away."""


@dataclass(frozen=True, slots=True)
class FloorVerdict:
    """What one arm's process starts say about a floor.

    Attributes:
        status: Pass, fail or inconclusive.
        why: The deciding figure in words.
        speed: Geometric mean of the process medians with its interval, t/s; ``None`` below three processes.
        medians: The process medians.
    """

    status: Status
    why: str
    speed: Estimate | None
    medians: tuple[ProcessMedian, ...]


def judge_floor(
    runs: Sequence[ProcessRun],
    workload: str,
    floor: float | None,
    *,
    in_ms: bool = False,
    ceiling_tps: float = DEFAULT_CEILING_TPS,
) -> FloorVerdict:
    """Judge one arm's speed against a floor.

    The interval's lower bound at or above the floor passes, its upper bound under the floor fails.

    Args:
        runs: Processes of the arm, void ones left out.
        workload: The workload's name.
        floor: Tokens per second; ``None``: the speed is shown and passes.
        in_ms: Whether the workload is a time to the first token: then the figures are shown in ms.
        ceiling_tps: Plausibility ceiling, tokens per second.

    Raises:
        Implausible: If a measurement is not a speed.
        NothingKept: If a process kept no repetition.
    """
    medians = tuple(process_medians(runs, workload, ceiling_tps).values())
    speed = _speed(medians)
    threshold = _Threshold(floor, in_ms)
    status, why = _decide(speed, len(medians), threshold)
    return FloorVerdict(status, why, threshold.shown(speed) if speed else None, medians)


@dataclass(frozen=True, slots=True)
class _Threshold:
    """A floor in t/s, shown as such or as the longest time to a first token."""

    floor: float | None
    in_ms: bool

    def __str__(self) -> str:
        value = self.floor or 0.0
        return f"limit of {MS_PER_S / value:g} ms" if self.in_ms else f"floor of {value:g} t/s"

    def shown(self, speed: Estimate) -> Estimate:
        if not self.in_ms:
            return speed
        value, low, high = (MS_PER_S / figure for figure in (speed.value, speed.high, speed.low))
        return Estimate(value, low, high, speed.n, "ms")


def _speed(medians: Sequence[ProcessMedian]) -> Estimate | None:
    if len(medians) < MIN_STARTS:  # an interval of two spans orders of magnitude and says nothing
        return None
    mean = LogMean.of([entry.log_tps for entry in medians])
    low, high = mean.interval(INTERVAL_ALPHA)
    return Estimate(mean.factor, low, high, mean.n, "t/s")


def _decide(speed: Estimate | None, starts: int, threshold: _Threshold) -> tuple[Status, str]:
    floor = threshold.floor
    if floor is None:
        return Status.PASS, "no floor is set"
    if speed is None:
        return Status.INCONCLUSIVE, f"{starts} process starts, at least {MIN_STARTS} are needed for a floor"
    if speed.low >= floor * _ROUNDING:
        return Status.PASS, f"the interval is {'within' if threshold.in_ms else 'at or above'} the {threshold}"
    if speed.high < floor * _ROUNDING:
        return Status.FAIL, f"the interval is {'beyond' if threshold.in_ms else 'under'} the {threshold}"
    return Status.INCONCLUSIVE, f"the interval spans the {threshold}"
