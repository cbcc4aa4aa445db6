"""Floors to the last digit: what is shown of a speed and of a time, and where passing begins and ends."""

from __future__ import annotations

import math

import pytest
from judging_support import PP, PROFILE, answers, equivalence, record, run

from harness.domain.failure import Failure, FailureKind
from harness.domain.policy import Policy
from harness.domain.words import Status
from harness.judging.floors import FloorVerdict, judge_floor
from harness.judging.judge import judge

CRASH = Failure(FailureKind.CRASH, "signal 11", "E-crash")


def found(*speeds: float, floor: float | None = 100.0, in_ms: bool = False) -> FloorVerdict:
    return judge_floor([run(0, block, tps) for block, tps in enumerate(speeds)], PP.name, floor, in_ms=in_ms)


def test_a_speed_has_its_geometric_mean_and_both_bounds() -> None:
    """Of the process medians, with the number of processes."""
    shown = found(50.0, 100.0, 200.0)
    assert shown.speed is not None
    assert shown.speed.value == pytest.approx(100.0, rel=1e-6)
    assert (shown.speed.n, shown.speed.unit) == (3, "t/s")
    assert shown.speed.low * shown.speed.high == pytest.approx(100.0**2, rel=1e-6)
    half = 9.925 * math.log(2) / math.sqrt(3)  # of a t distribution with two degrees of freedom, 99 %
    assert math.log(shown.speed.high / 100.0) == pytest.approx(half, rel=1e-3)
    assert [round(median.tps) for median in shown.medians] == [50, 100, 200]


def test_a_time_is_the_same_upside_down() -> None:
    """The fastest bound is the shortest time."""
    speed, time = found(50.0, 100.0, 200.0).speed, found(50.0, 100.0, 200.0, in_ms=True).speed
    assert speed is not None
    assert time is not None
    assert (time.n, time.unit) == (3, "ms")
    assert time.low == pytest.approx(1000 / speed.high)
    assert time.value == pytest.approx(1000 / speed.value)
    assert time.high == pytest.approx(1000 / speed.low)


@pytest.mark.parametrize("in_ms", [False, True])
def test_two_processes_show_nothing(in_ms: bool) -> None:
    """Neither a speed nor a time: an interval of two spans orders of magnitude."""
    few = found(100.0, 100.0, in_ms=in_ms)
    assert (few.status, few.speed) == (Status.INCONCLUSIVE, None)
    assert few.why == "2 process starts, at least 3 are needed for a floor"


def test_no_floor_passes_with_two_processes_or_more() -> None:
    """Nothing is asked of it."""
    assert (found(100.0, floor=None).status, found(100.0, floor=None).why) == (Status.PASS, "no floor is set")


@pytest.mark.parametrize(
    ("speed", "in_ms", "status", "why"),
    [
        (100.0, False, Status.PASS, "the interval is at or above the floor of 100 t/s"),
        (99.9, False, Status.FAIL, "the interval is under the floor of 100 t/s"),
        (100.0, True, Status.PASS, "the interval is within the limit of 10 ms"),
        (99.9, True, Status.FAIL, "the interval is beyond the limit of 10 ms"),
    ],
)
def test_a_speed_of_exactly_the_floor_passes(speed: float, in_ms: bool, status: Status, why: str) -> None:
    """And one that is just below it fails."""
    exact = found(speed, speed, speed, in_ms=in_ms)
    assert (exact.status, exact.why) == (status, why)


def test_an_interval_that_holds_the_floor_says_nothing() -> None:
    """In the words of what was asked."""
    assert found(90.0, 100.0, 111.0).why == "the interval spans the floor of 100 t/s"
    assert found(90.0, 100.0, 111.0).status is Status.INCONCLUSIVE


def test_answers_that_were_whole_before_a_crash_are_compared() -> None:
    """A process that died after its last answer has given all that the outputs are judged by; one answer less fails."""
    whole = [run(arm, 0, 100.0, outputs=answers(), failure=CRASH if arm else None) for arm in (0, 1)]
    assert judge(equivalence(), record(whole, outputs=PROFILE), Policy()).status is Status.PASS
    cut = [whole[0], run(1, 0, 100.0, outputs=answers()[:1], failure=CRASH)]
    failed = judge(equivalence(), record(cut, outputs=PROFILE), Policy())
    assert (failed.status, failed.slug) == (Status.FAIL, "E-crash")
