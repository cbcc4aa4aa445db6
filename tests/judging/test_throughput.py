"""The provisional rule for contrasts and floors."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from judging_support import arms_runs, noisy, run, samples

from harness.domain.measurement import ProcessRun
from harness.domain.words import Status, Throughput
from harness.judging.floors import judge_floor
from harness.judging.samples import Implausible, NothingKept, ProcessMedian, process_medians
from harness.judging.throughput import ContrastVerdict, Rule, judge_contrast

RULE = Rule()
SPEEDS = st.lists(st.tuples(st.floats(10, 1000), st.floats(10, 1000)), min_size=0, max_size=8)
MIRROR = {Throughput.REGRESSED: Throughput.IMPROVED, Throughput.IMPROVED: Throughput.REGRESSED}


def judge(baseline: list[float], candidate: list[float]) -> ContrastVerdict:
    runs = arms_runs(baseline, candidate)
    return judge_contrast(runs[: len(baseline)], runs[len(baseline) :], "pp512", RULE)


@given(SPEEDS)
def test_swapping_the_arms_inverts_verdict_and_ratio(speeds: list[tuple[float, float]]) -> None:
    there = judge([a for a, _ in speeds], [b for _, b in speeds])
    back = judge([b for _, b in speeds], [a for a, _ in speeds])
    assert back.throughput is MIRROR.get(there.throughput, there.throughput)
    if there.ratio and back.ratio:
        assert back.ratio.value == pytest.approx(1 / there.ratio.value)
        assert back.ratio.low == pytest.approx(1 / there.ratio.high)


@given(SPEEDS, st.integers(2, 50))
def test_scale_does_not_matter(speeds: list[tuple[float, float]], factor: int) -> None:
    runs = arms_runs([a for a, _ in speeds], [b for _, b in speeds])
    slower = [slow_down(each, factor) for each in runs]
    half = len(speeds)
    plain = judge_contrast(runs[:half], runs[half:], "pp512", RULE)
    scaled = judge_contrast(slower[:half], slower[half:], "pp512", RULE)
    if plain.ratio is None or scaled.ratio is None:
        assert plain.ratio is scaled.ratio
        return
    assume(abs((plain.ratio.p or 0) - RULE.alpha) > 1e-9)
    assert scaled.throughput is plain.throughput
    assert scaled.ratio.value == pytest.approx(plain.ratio.value)


def slow_down(each: ProcessRun, factor: int) -> ProcessRun:
    (only,) = each.samples
    return replace(each, samples=(replace(only, all_ns=tuple(ns * factor for ns in only.all_ns)),))


SMALL = st.floats(0.997, 1.003)


@given(st.floats(0.5, 0.9), st.lists(st.tuples(SMALL, SMALL), min_size=3, max_size=10))
def test_fully_separated_samples_of_small_spread_are_different(ratio: float, noise: list[tuple[float, float]]) -> None:
    baseline, candidate = [100 * each for each, _ in noise], [100 * ratio * each for _, each in noise]
    assert judge(baseline, candidate).throughput is Throughput.REGRESSED


def test_separated_samples_without_any_spread_are_different() -> None:
    found = judge([100.0] * 3, [50.0] * 3)
    assert found.throughput is Throughput.REGRESSED
    assert found.ratio is not None
    assert (found.ratio.p, found.ratio.low, found.ratio.high) == (0.0, pytest.approx(0.5), pytest.approx(0.5))


def test_equal_pairs_are_equivalent_and_not_nan() -> None:
    found = judge([100.0, 90.0, 110.0], [100.0, 90.0, 110.0])
    assert found.throughput is Throughput.EQUIVALENT
    assert found.ratio is not None
    assert (found.ratio.value, found.ratio.low, found.ratio.high, found.ratio.p) == (1.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_than_three_pairs_are_inconclusive(count: int) -> None:
    assert judge([100.0] * count, [50.0] * count).throughput is Throughput.INCONCLUSIVE


def test_wide_spread_is_inconclusive() -> None:
    assert judge([100, 80, 120, 95], [90, 110, 70, 100]).throughput is Throughput.INCONCLUSIVE


def test_common_drift_cancels_in_pairs() -> None:
    """Ratios are of neighbours in time: a drift of both arms by half hides nothing."""
    found = judge([100, 80, 60, 50], [89.9, 72.1, 54, 45.1])
    assert found.throughput is Throughput.REGRESSED


def test_a_block_that_lacks_an_arm_is_dropped_and_counted() -> None:
    runs = arms_runs([100.0] * 4, [100.0] * 4)
    found = judge_contrast(runs[:4], runs[5:], "pp512", RULE)
    assert (found.dropped, found.ratio and found.ratio.n, len(found.baseline)) == (1, 3, 4)


def test_a_certain_change_inside_the_margin_is_equivalent_and_told() -> None:
    """0.3 % slower on a quiet machine must not block anybody; the reason does not hide it."""
    found = judge([100.0, 100.01, 99.99, 100.0], [99.7, 99.71, 99.7, 99.69])
    assert found.throughput is Throughput.EQUIVALENT
    assert "certain" in found.why


def test_interval_excludes_one_exactly_when_a_change_is_told() -> None:
    rng = random.Random(5)  # noqa: S311 - noise, not a secret
    for _ in range(300):
        found = judge(noisy(rng, 100, 0.02, 4), noisy(rng, 97, 0.02, 4))
        assert found.ratio is not None
        outside = found.ratio.high < 1 or found.ratio.low > 1
        different = found.throughput in (Throughput.REGRESSED, Throughput.IMPROVED)
        assert outside == (different or "certain" in found.why)


def test_false_alarms_under_no_change_stay_near_alpha() -> None:
    rng = random.Random(20261)  # noqa: S311 - noise, not a secret
    trials = 2000
    alarms = sum(
        judge(noisy(rng, 100, 0.034, 4), noisy(rng, 100, 0.034, 4)).throughput
        in (Throughput.REGRESSED, Throughput.IMPROVED)
        for _ in range(trials)
    )
    assert alarms <= 3 * RULE.alpha * trials


def test_a_large_effect_is_found_on_typical_noise() -> None:
    rng = random.Random(7)  # noqa: S311 - noise, not a secret
    found = sum(
        judge(noisy(rng, 100, 0.03, 4), noisy(rng, 20, 0.03, 4)).throughput is Throughput.REGRESSED for _ in range(200)
    )
    assert found == 200


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
    assert judge_floor(arms_runs(speeds), "pp512", floor, RULE).status is status
