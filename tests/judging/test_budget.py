"""The planner tells of the rule as it is, and more budget never decides less."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.spread import Spread
from harness.domain.words import Throughput
from harness.judging import budget
from harness.judging.budget import (
    EFFECTS,
    NEARLY_SURE,
    Forecast,
    Pace,
    assumed_spread,
    chance,
    forecast,
    quads_needed,
    smallest_effect,
)
from harness.judging.sequential import Limits, decide

GATE = Limits(alpha=1e-3, margin=0.02, max_quads=24)
SPREADS = st.sampled_from([0.004, 0.01, 0.018, 0.034, 0.068])
LOSSES = st.sampled_from([0.01, 0.02, 0.03, 0.05, 0.1, 0.5])


def spread(quad_sd: float, df: float = 8.0) -> Spread:
    return Spread("pp512", quad_sd, df, "calibration of 2026-11-30")


@given(SPREADS, LOSSES, st.integers(0, 30), st.integers(0, 30))
@settings(max_examples=40, deadline=None)
def test_more_quads_never_find_less(quad_sd: float, loss: float, quads: int, more: int) -> None:
    """Neither rarer nor only larger losses."""
    known = spread(quad_sd)
    assert chance(loss, quads, known, GATE) <= chance(loss, quads + more, known, GATE)
    small, large = (smallest_effect(each, 0.8, known, GATE) or 1.0 for each in (quads + more, quads))
    assert small <= large


@given(SPREADS, LOSSES, st.floats(0.05, 0.95), st.floats(0.0, 0.05))
@settings(max_examples=40, deadline=None)
def test_more_certainty_never_needs_fewer_quads(quad_sd: float, loss: float, probability: float, more: float) -> None:
    """What cannot be reached counts as more than any number."""
    few, many = (
        quads_needed(loss, wanted, spread(quad_sd), GATE) or 10**9 for wanted in (probability, probability + more)
    )
    assert few <= many


@given(st.sampled_from([0.004, 0.01, 0.034]), st.sampled_from([0.03, 0.05, 0.1]))
@settings(max_examples=20, deadline=None)
def test_twice_the_spread_never_finds_more(quad_sd: float, loss: float) -> None:
    """Nor does a smaller loss."""
    assert chance(loss, 24, spread(2 * quad_sd), GATE) <= chance(loss, 24, spread(quad_sd), GATE)
    assert chance(loss / 2, 24, spread(quad_sd), GATE) <= chance(loss, 24, spread(quad_sd), GATE)


@given(st.floats(0.1, 100.0), st.integers(0, 3), st.integers(0, 500))
def test_quads_and_minutes_are_each_others_inverse(process_s: float, burn_in: int, quads: int) -> None:
    """And a minute less has no more quads."""
    pace = Pace(process_s, burn_in)
    assert pace.quads(pace.minutes(quads) * (1 + 1e-9)) == quads
    assert pace.quads(pace.minutes(quads) - 1) <= quads


@pytest.mark.parametrize(("quad_sd", "loss"), [(0.01, 0.02), (0.01, 0.03), (0.034, 0.10)])
def test_the_chance_is_that_of_the_rule_on_other_quads(quad_sd: float, loss: float) -> None:
    """A thousand contrasts of another seed: the forecast is not of its own draws only."""
    source = random.Random(7)  # noqa: S311 - no secret
    known = spread(quad_sd)
    shift = -loss
    found = sum(
        decide([source.gauss(shift, quad_sd) for _ in range(24)], GATE, known).throughput is Throughput.REGRESSED
        for _ in range(1000)
    )
    assert chance(loss, 24, known, GATE) == pytest.approx(found / 1000, abs=0.07)


def test_a_forecast_says_what_the_budget_can_do() -> None:
    """At a process start of 10 s and a quiet machine."""
    told = forecast(spread(0.01), GATE, Pace(10.0), minutes=10.0)
    assert told.quads == 14
    assert told.minutes == pytest.approx((2 + 4 * 14) / 6)
    assert told.smallest is not None
    assert told.smallest <= 0.03
    assert {need.effect for need in told.needs} == set(EFFECTS)
    assert told.equivalent.quads is not None
    assert all(need.minutes is not None for need in told.needs if need.quads)
    large = [need.quads for need in told.needs if need.effect == 0.10]
    assert large[0] <= 6  # type: ignore[operator]


def test_what_cannot_be_decided_tonight_is_listed() -> None:
    """A noisy cell: nothing small; with a hand's breadth of quads: nothing at all."""
    noisy = forecast(spread(0.068), GATE, Pace(10.0))
    assert missed(noisy) >= {0.02, 0.03}
    assert noisy.equivalent.quads is None
    hopeless = forecast(spread(0.068), GATE, Pace(540.0), minutes=30.0)
    assert (hopeless.quads, hopeless.smallest) == (0, None)
    assert missed(hopeless) == set(EFFECTS)


def missed(told: Forecast) -> set[float]:
    sure = (need for need in told.needs if need.probability == NEARLY_SURE)
    return {need.effect for need in sure if need.quads is None or need.quads > told.quads}


def test_an_effect_inside_the_margin_is_never_found() -> None:
    """However long: it is equivalent, and the planner knows."""
    wide = Limits(alpha=1e-3, margin=0.10, max_quads=24)
    assert quads_needed(0.02, 0.8, spread(0.01), wide) is None
    assert forecast(spread(0.01), wide, None).equivalent.quads is not None


def test_without_knowledge_the_rule_gets_none() -> None:
    """An assumed spread plans; the simulated rule must not profit from it."""
    assumed = assumed_spread("pp512")
    assert assumed.df == 0
    known = Spread("pp512", assumed.quad_sd, 8.0, "")
    assert chance(0.5, 1, assumed, GATE) <= chance(0.5, 1, known, GATE)
    assert forecast(assumed, GATE, None).minutes is None
    assert assumed.source.startswith("assumed")


def test_equal_questions_get_equal_answers() -> None:
    """Fixed seeds: the same plan twice says the same."""
    first = forecast(spread(0.0123), GATE, Pace(3.0))
    budget._decided_at.cache_clear()
    assert forecast(spread(0.0123), GATE, Pace(3.0)) == first
