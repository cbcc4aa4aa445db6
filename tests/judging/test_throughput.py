"""Contrasts and floors: from processes to what is judged."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging_support import ANY, BASELINE, CANDIDATE, PP, arms_runs, run, samples

from harness.domain.job import Design, Job
from harness.domain.measurement import ProcessRun
from harness.domain.policy import Policy
from harness.domain.spread import Spread
from harness.domain.words import Status, Throughput
from harness.judging.floors import judge_floor
from harness.judging.quads import quads_of
from harness.judging.samples import Implausible, NothingKept, ProcessMedian, process_medians
from harness.judging.sequential import Limits, decide
from harness.judging.throughput import ContrastVerdict, judge_contrast, limits_of

LIMITS = Limits(alpha=1e-3, margin=0.05, max_quads=8)
KNOWN = Spread("pp512", 0.01, 20, "a calibration")
SPEEDS = st.lists(st.tuples(st.floats(10, 1000), st.floats(10, 1000)), min_size=0, max_size=16)
NEAR = st.lists(st.tuples(st.floats(95, 105), st.floats(90, 100)), min_size=8, max_size=16)
MIRROR = {Throughput.REGRESSED: Throughput.IMPROVED, Throughput.IMPROVED: Throughput.REGRESSED}


def judge(baseline: list[float], candidate: list[float], limits: Limits = LIMITS) -> ContrastVerdict:
    runs = arms_runs(baseline, candidate)
    return judge_contrast(runs[: len(baseline)], runs[len(baseline) :], "pp512", limits)


@given(st.one_of(SPEEDS, NEAR))
def test_swapping_the_arms_inverts_verdict_and_ratio(speeds: list[tuple[float, float]]) -> None:
    there = judge([a for a, _ in speeds], [b for _, b in speeds])
    back = judge([b for _, b in speeds], [a for a, _ in speeds])
    assert back.throughput is MIRROR.get(there.throughput, there.throughput)
    assert back.baseline == there.candidate
    if there.ratio and back.ratio:
        assert back.ratio.value == pytest.approx(1 / there.ratio.value)
        assert back.ratio.low == pytest.approx(1 / there.ratio.high)


@given(st.one_of(SPEEDS, NEAR), st.integers(1, 10))
def test_scale_does_not_matter(speeds: list[tuple[float, float]], power: int) -> None:
    """Both arms slower by the same factor: a power of two, so that rounding is the same too."""
    runs = arms_runs([a for a, _ in speeds], [b for _, b in speeds])
    slower = [slow_down(each, 2**power) for each in runs]
    half = len(speeds)
    plain = judge_contrast(runs[:half], runs[half:], "pp512", LIMITS)
    scaled = judge_contrast(slower[:half], slower[half:], "pp512", LIMITS)
    assert scaled.throughput is plain.throughput
    assert (scaled.ratio is None) == (plain.ratio is None)
    if scaled.ratio and plain.ratio:
        assert scaled.ratio.value == pytest.approx(plain.ratio.value)


def slow_down(each: ProcessRun, factor: int) -> ProcessRun:
    (only,) = each.samples
    return replace(each, samples=(replace(only, all_ns=tuple(ns * factor for ns in only.all_ns)),))


def test_a_quad_is_the_mean_of_its_two_pairs() -> None:
    """Blocks 0 and 1: a drift that slows one arm in the one pair slows the other in the other."""
    found = judge([100, 90], [90, 100], replace(LIMITS, max_quads=1))
    assert found.ratio is not None
    assert (found.ratio.value, found.ratio.n) == (pytest.approx(1.0), 1)


def test_common_drift_cancels_in_pairs() -> None:
    """Ratios are of neighbours in time: a drift of both arms by half hides nothing."""
    drift = [100, 90, 80, 70, 65, 60, 55, 50]
    found = judge([float(each) for each in drift], [0.8 * each for each in drift])
    assert found.throughput is Throughput.REGRESSED


def test_what_is_no_whole_quad_does_not_count() -> None:
    """Block 3 lacks the candidate: the baseline's block 3 and both processes of block 2 belong to no quad."""
    runs = arms_runs([100.0] * 8, [100.0] * 3, [], [])
    late = [run(1, block, 100.0) for block in range(4, 8)]
    found = judge_contrast(runs[:8], [*runs[8:], *late], "pp512", LIMITS)
    assert (found.incomplete, found.ratio and found.ratio.n) == ((2, 1), 3)
    assert {each.block for each in found.baseline} == {0, 1, 4, 5, 6, 7}


def test_void_blocks_are_left_out() -> None:
    runs = arms_runs([100.0] * 8, [80.0] * 2 + [100.0] * 6)
    found = judge_contrast(runs[:8], runs[8:], "pp512", LIMITS, voided={0, 1})
    assert found.throughput is Throughput.EQUIVALENT
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(1.0)


def test_a_job_that_ended_early_is_looked_at_a_last_time() -> None:
    """Three quads of eight: a loss that the look at three alone would leave open, and the rest of alpha decides."""
    baseline, candidate = [100.0, 101, 99, 100, 100, 101], [93.2, 93, 93, 92.6, 92.4, 93.6]
    limits = replace(LIMITS, alpha=0.02)
    found = judge(baseline, candidate, limits)
    assert (found.throughput, found.ratio and found.ratio.n) == (Throughput.REGRESSED, 3)
    log_ratios = [quad.log_ratio for quad in quads_of(*halves(arms_runs(baseline, candidate)), "pp512").quads]
    assert decide(log_ratios, limits).open


def halves(runs: tuple[ProcessRun, ...]) -> tuple[tuple[ProcessRun, ...], tuple[ProcessRun, ...]]:
    return runs[: len(runs) // 2], runs[len(runs) // 2 :]


def test_without_a_quad_it_is_inconclusive() -> None:
    assert judge([], []) == ContrastVerdict(
        Throughput.INCONCLUSIVE, "no quad is complete", None, (), (), (0, 0), open=True
    )


def test_wide_spread_is_inconclusive() -> None:
    found = judge([100, 80, 120, 95] * 2, [90, 110, 70, 100] * 2)
    assert found.throughput is Throughput.INCONCLUSIVE
    assert "noise too high for the margin of 0.05" in found.why


def test_the_schedule_bounds_the_looks_and_the_known_spread_sets_the_margin() -> None:
    job = Job((BASELINE, CANDIDATE), (PP,), None, ANY, Design(blocks=24), (), spreads=(KNOWN,))
    assert limits_of(Policy(auto_margin=True), job, "pp512") == Limits(1e-3, 0.02, 12)
    assert limits_of(Policy(margin=0.04), job, "pp512") == Limits(1e-3, 0.04, 12)


@pytest.mark.parametrize(
    ("quad_sd", "margin"), [(0.01, 0.02), (0.02, 0.02), (0.021, 0.03), (0.05, 0.05), (0.09, 0.1), (None, 0.05)]
)
def test_margins_go_by_the_known_spread(quad_sd: float | None, margin: float) -> None:
    spread = None if quad_sd is None else replace(KNOWN, quad_sd=quad_sd)
    assert Policy(auto_margin=True).margin_for(spread) == margin
    assert Policy(margin=0.07).margin_for(spread) == 0.07


@pytest.mark.parametrize("ns", [0, -5, math.nan, math.inf])
def test_times_that_are_no_speed_are_refused(ns: float) -> None:
    broken = replace(samples(100.0), all_ns=(1, 1, 1, 1, 10**9, ns, 10**9))
    with pytest.raises(Implausible):
        ProcessMedian.of(broken, 0)


@pytest.mark.parametrize("log_tps", [math.nan, math.inf, -math.inf])
def test_a_process_median_is_finite_by_construction(log_tps: float) -> None:
    with pytest.raises(Implausible):
        ProcessMedian(0, log_tps)


def test_speeds_above_the_ceiling_are_refused() -> None:
    with pytest.raises(Implausible, match="ceiling"):
        ProcessMedian.of(samples(2e6), 0)


def test_a_process_that_kept_nothing_is_refused() -> None:
    with pytest.raises(NothingKept):
        ProcessMedian.of(replace(samples(100.0), all_ns=(1, 1)), 0)


def test_burn_in_and_warm_up_are_not_scored() -> None:
    medians = process_medians([run(0, -1, 10.0), run(0, 0, [100.0, 101.0, 102.0])], "pp512")
    assert [round(median.tps) for median in medians.values()] == [101]


@pytest.mark.parametrize(
    ("speeds", "floor", "status"),
    [
        ([100, 101, 99, 100], 90, Status.PASS),
        ([100, 101, 99, 100], 110, Status.FAIL),
        ([100, 101, 99, 100], 100, Status.INCONCLUSIVE),
        ([100, 101], 50, Status.INCONCLUSIVE),
        ([100.0] * 3, 100, Status.PASS),
        ([100], None, Status.PASS),
    ],
)
def test_floors(speeds: list[float], floor: float | None, status: Status) -> None:
    assert judge_floor(arms_runs(speeds), "pp512", floor).status is status
