"""The budget in minutes: by the quads measured so far, without what is decided by now."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.measurement import NS, Conditions, ProcessRun, Samples, Step
from harness.execution.budget import Budget


class Clock:
    """Seconds that pass only when told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def process(**seconds: float) -> ProcessRun:
    """A process that spent seconds in the repetitions of each workload."""
    samples = tuple(Samples(name, 1, (round(spent * NS / 2),) * 2, 1) for name, spent in seconds.items())
    return ProcessRun(Step(0, 0), "", samples, (), 1.0, None, 0, Conditions(0, (), 1, 0.0), {})


def measured(budget: Budget, clock: Clock, seconds: float, *runs: ProcessRun) -> None:
    clock.now += seconds
    budget.measured(seconds, runs)


def test_without_minutes_there_is_always_time() -> None:
    clock = Clock()
    budget = Budget(None, clock)
    measured(budget, clock, 1e9)
    assert budget.allows_another(["pp"])


def test_the_first_quad_always_runs() -> None:
    clock = Clock()
    budget = Budget(1.0, clock)
    clock.now += 600.0  # the burn-ins alone took longer
    assert budget.allows_another(["pp"])


@pytest.mark.parametrize(("burn_in", "allowed"), [(19.0, True), (21.0, False)])
def test_burn_ins_count(burn_in: float, allowed: bool) -> None:
    """Of 60 s, 20 go to a quad of 20 s: another one fits when burn-ins took at most 20."""
    clock = Clock()
    budget = Budget(1.0, clock)
    clock.now += burn_in
    measured(budget, clock, 20.0)
    assert budget.allows_another(["pp"]) is allowed
    assert budget.spent_minutes == pytest.approx((burn_in + 20) / 60)


def test_workloads_that_are_decided_cost_nothing_more() -> None:
    """A quad of 40 s, 25 of them in pp: without pp another one takes 15 and fits in the 20 that are left."""
    clock = Clock()
    budget = Budget(1.0, clock)
    measured(budget, clock, 40.0, process(pp=20.0, tg=1.0), process(pp=5.0, tg=1.0))
    assert not budget.allows_another(["pp", "tg"])
    assert budget.allows_another(["tg"])


@given(st.floats(0.1, 30.0), st.lists(st.floats(0.5, 300.0), min_size=1, max_size=30))
def test_a_quad_of_the_expected_length_ends_in_time(minutes: float, lengths: list[float]) -> None:
    """Whatever was measured: what is begun after the first quad ends within the budget if it takes the mean."""
    clock = Clock()
    budget = Budget(minutes, clock)
    for done, seconds in enumerate(lengths):
        if not budget.allows_another(["pp"]):
            assert budget.spent_minutes + sum(lengths[:done]) / done / 60 > minutes
            return
        if done:
            assert budget.spent_minutes + sum(lengths[:done]) / done / 60 <= minutes
        measured(budget, clock, seconds)
