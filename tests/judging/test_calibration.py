"""What quads of equal arms say: scatter with its bounds, honest counts of false alarms, and when a cell is unfit."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.spread import Spread
from harness.judging.calibration import (
    ALPHAS,
    FEWEST_QUADS,
    RESAMPLES,
    Alarms,
    Alike,
    binomial_bounds,
    faults,
    judge_alike,
    pooled_alarms,
)
from harness.judging.sequential import Limits

LIMITS = Limits(alpha=1e-3, margin=0.02, max_quads=24)


def quads(count: int, quad_sd: float = 0.01, shift: float = 0.0, seed: int = 1) -> list[float]:
    source = random.Random(seed)  # noqa: S311 - no secret
    return [source.gauss(shift, quad_sd) for _ in range(count)]


def alike(count: int = 40, quad_sd: float = 0.01, shift: float = 0.0) -> Alike:
    found = judge_alike("pp512", quads(count, quad_sd, shift), LIMITS)
    assert found is not None
    return found


def test_the_scatter_comes_with_bounds_that_hold_it() -> None:
    """In 19 of 20 nights, about: here in most of 40."""
    held = 0
    for seed in range(40):
        found = judge_alike("pp512", quads(12, 0.02, seed=seed), replace(LIMITS, max_quads=3))
        assert found is not None
        assert found.sd_low < found.quad_sd < found.sd_high
        held += found.sd_low < 0.02 < found.sd_high
    assert 34 <= held <= 40


def test_each_quad_is_in_one_decision_at_most() -> None:
    """So that decisions are independent, and their number is told rather than that of the quads."""
    found = alike(60)
    for alarms in found.alarms:
        assert 60 / LIMITS.max_quads <= alarms.decisions <= 60 / 3
        assert 0 <= alarms.alarms <= alarms.decisions
        assert (alarms.low, alarms.high) == binomial_bounds(alarms.alarms, alarms.decisions)
    assert [alarms.alpha for alarms in found.alarms] == list(ALPHAS)


def test_too_few_quads_are_no_calibration() -> None:
    """Two say nothing of a scatter."""
    assert judge_alike("pp512", quads(FEWEST_QUADS - 1), LIMITS) is None
    assert judge_alike("pp512", [0.0] * FEWEST_QUADS, LIMITS) is not None


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [(0, 10, 0.0, 0.3085), (1, 10, 0.0025, 0.4450), (10, 10, 0.6915, 1.0), (5, 100, 0.0164, 0.1128), (0, 0, 0.0, 1.0)],
)
def test_binomial_bounds_are_exact(hits: int, trials: int, low: float, high: float) -> None:
    """As tables of Clopper and Pearson have them."""
    assert binomial_bounds(hits, trials) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


@given(st.integers(1, 200).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials))))
def test_bounds_hold_the_rate_and_mirror(counts: tuple[int, int]) -> None:
    """Alarms and their absence are one question."""
    hits, trials = counts
    low, high = binomial_bounds(hits, trials)
    assert 0 <= low <= hits / trials <= high <= 1
    mirrored = binomial_bounds(trials - hits, trials)
    assert (1 - high, 1 - low) == (pytest.approx(mirrored[0]), pytest.approx(mirrored[1]))


def test_a_healthy_cell_has_no_fault_and_finds_small_losses() -> None:
    """Quiet, unbiased, as before."""
    found = alike()
    assert faults(found, Spread("pp512", 0.011, 20.0, "calibration of 2026-11-29")) == ()
    assert found.smallest is not None
    assert found.smallest <= 0.03
    assert dict(found.power)[0.10] >= 0.99
    assert all(alarms.resampled <= 0.02 for alarms in found.alarms)


def test_resampled_quads_favour_no_arm() -> None:
    """Their signs are drawn, so a shift, which is found on fresh quads, is no alarm of the scatter."""
    at_5_percent, _ = alike(shift=0.01).alarms
    assert at_5_percent.resampled is not None
    assert at_5_percent.resampled < 0.05
    assert at_5_percent.alarms > at_5_percent.decisions / 2


@given(st.floats(0.002, 0.05), st.integers(3, 40), st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_unchanged_cells_are_seldom_condemned(quad_sd: float, count: int, seed: int) -> None:
    """Whatever their scatter; a tenth of a percent of them by the shift, which no example here happens to hit."""
    found = judge_alike("pp512", quads(count, quad_sd, seed=seed), replace(LIMITS, max_quads=6))
    assert found is not None
    if found.shift_p >= 0.001:
        assert faults(found, None) == ()


def test_an_arm_that_is_favoured_is_found() -> None:
    """Equal arms that differ by 3 % on every quad: something in the setup is not equal."""
    alarmed, favoured = faults(alike(shift=0.03), None)
    assert "found a change in" in alarmed
    assert favoured.startswith("equal arms differed by +")


@pytest.mark.parametrize(
    ("known", "df", "fault"), [(0.004, 30.0, True), (0.006, 30.0, False), (0.004, 1.0, False), (None, 0.0, False)]
)
def test_a_spread_that_doubled_is_found_where_chance_does_not_explain_it(
    known: float | None, df: float, fault: bool
) -> None:
    """One degree of freedom is no knowledge to be held against anybody."""
    earlier = Spread("pp512", known, df, "calibration of 2026-11-29") if known else None
    found = faults(alike(), earlier)
    assert bool(found) == fault
    assert not fault or "more than twice the 0.4% known (calibration of 2026-11-29)" in found[0]


def test_a_machine_that_nothing_can_be_judged_on_says_so() -> None:
    """A quad SD of 40 %."""
    assert any("more than any contrast can be judged by" in fault for fault in faults(alike(quad_sd=0.4), None))


def test_alarms_that_are_too_many_are_found() -> None:
    """Of fresh decisions where that many are improbable, of resampled ones at twice the promise."""
    fresh = Alarms(0.05, 20, 8, *binomial_bounds(8, 20), resampled=0.01)
    drawn = Alarms(0.05, 20, 0, *binomial_bounds(0, 20), resampled=0.2)
    few = Alarms(0.01, 2, 1, *binomial_bounds(1, 2), resampled=0.02)
    assert "8 of 20 decisions at 0.05" in faults(replace(alike(), alarms=(fresh,)), None)[0]
    assert "20.0% of cases" in faults(replace(alike(), alarms=(drawn,)), None)[0]
    assert faults(replace(alike(), alarms=(few,)), None) == ()
    assert RESAMPLES >= 1000


def test_a_nodes_cells_are_pooled() -> None:
    """Counts are added, bounds made anew."""
    cells = [alike(40), alike(60)]
    for column, pooled in enumerate(pooled_alarms(cells)):
        assert pooled.decisions == sum(cell.alarms[column].decisions for cell in cells)
        assert pooled.high < max(cell.alarms[column].high for cell in cells)
