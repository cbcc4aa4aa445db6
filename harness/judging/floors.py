"""Floors: an absolute threshold on one arm's speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.domain.measurement import ProcessRun
from harness.domain.verdict import Estimate
from harness.domain.words import Status
from harness.judging.intervals import LogMean
from harness.judging.samples import ProcessMedian, process_medians
from harness.judging.throughput import Rule

_ROUNDING = 1 - 1e-12
"""A speed of exactly the floor comes back from its logarithm a few units in the last place away."""


@dataclass(frozen=True, slots=True)
class FloorVerdict:
    """What one arm's process starts say about a floor.

    Attributes:
        status: Pass, fail or inconclusive.
        why: The deciding figure in words.
        speed: Geometric mean of the process medians with its interval, t/s; ``None`` below two processes.
        medians: The process medians.
    """

    status: Status
    why: str
    speed: Estimate | None
    medians: tuple[ProcessMedian, ...]


def judge_floor(runs: Sequence[ProcessRun], workload: str, floor: float | None, rule: Rule) -> FloorVerdict:
    """Judge one arm's speed against a floor.

    The interval's lower bound at or above the floor passes, its upper bound under the floor fails.

    Args:
        runs: Processes of the arm.
        workload: The workload's name.
        floor: Tokens per second; ``None``: the speed is shown and passes.
        rule: The settings; its ``min_pairs`` are the fewest process starts.

    Raises:
        Implausible: If a measurement is not a speed.
        NothingKept: If a process kept no repetition.
    """
    medians = tuple(process_medians(runs, workload, rule.ceiling_tps).values())
    speed = _speed(medians, rule.alpha)
    status, why = _decide(speed, len(medians), floor, rule.min_pairs)
    return FloorVerdict(status, why, speed, medians)


def _speed(medians: Sequence[ProcessMedian], alpha: float) -> Estimate | None:
    if len(medians) < 2:  # noqa: PLR2004 - a spread needs two
        return None
    mean = LogMean.of([entry.log_tps for entry in medians])
    low, high = mean.interval(alpha)
    return Estimate(mean.factor, low, high, mean.n, "t/s")


def _decide(speed: Estimate | None, starts: int, floor: float | None, min_starts: int) -> tuple[Status, str]:
    if floor is None:
        return Status.PASS, "no floor is set"
    if speed is None or starts < min_starts:
        return Status.INCONCLUSIVE, f"{starts} process starts, at least {min_starts} are needed for a floor"
    if speed.low >= floor * _ROUNDING:
        return Status.PASS, f"the interval is at or above the floor of {floor:g} t/s"
    if speed.high < floor * _ROUNDING:
        return Status.FAIL, f"the interval is under the floor of {floor:g} t/s"
    return Status.INCONCLUSIVE, f"the interval spans the floor of {floor:g} t/s"
