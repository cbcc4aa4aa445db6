"""What a reason tells of the machine and of the budget, where a case stays undecided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from judging_support import BASELINE, arms_runs, contrast, record

from harness.domain.measurement import ProcessRun
from harness.domain.policy import Policy
from harness.domain.stopping import JobEnd
from harness.domain.words import Status, Throughput
from harness.judging.disturbance import disturbance_text
from harness.judging.ending import ending_text
from harness.judging.judge import judge
from harness.judging.record import JobRecord
from harness.reporting.summary import summary_text

NOISY = arms_runs([100, 110, 90, 104, 99, 108], [97, 92, 107, 93, 111, 99])


def ended(runs: Sequence[ProcessRun], minutes: float | None, end: JobEnd | None = JobEnd.BUDGET) -> JobRecord:
    told = record(runs)
    return replace(told, job=replace(told.job, design=replace(told.job.design, minutes=minutes)), end=end)


def test_the_undecided_name_the_budget_that_ended_them_and_the_busy_machine() -> None:
    busy = [replace(run, conditions=replace(run.conditions, foreign_load=0.4)) for run in NOISY]
    verdict = judge(contrast(), ended(busy, 5), Policy())
    assert verdict.throughput is Throughput.INCONCLUSIVE
    assert "the budget of 5 minutes ended after 3 quads" in verdict.reason
    assert "the pinned cores were 40 % busy with other work" in verdict.reason


def test_void_quads_are_counted_in_the_reason() -> None:
    throttled = [
        replace(run, conditions=replace(run.conditions, throttled=0.3)) if run.step.block == 2 else run for run in NOISY
    ]
    reason = judge(contrast(), record(throttled), Policy()).reason
    assert "1 quad void on all arms: cores throttled (processes that gave cause: baseline 1, candidate 1)" in reason


def test_void_data_of_what_passed_are_in_the_summary() -> None:
    """Nobody reads the reason of a pass: that a part of it counted for nothing has a line of its own."""
    steady = arms_runs([100, 100.1] * 8, [100.1, 100] * 8)
    throttled = [
        replace(run, conditions=replace(run.conditions, throttled=0.3)) if run.step.block == 2 else run
        for run in steady
    ]
    clean, void = (judge(contrast(), record(runs), Policy()) for runs in (steady, throttled))
    assert (clean.status, void.status) == (Status.PASS, Status.PASS)
    assert "void data" not in summary_text([clean])
    assert f"void data: {void.case}\n    1 quad void on all arms: cores throttled" in summary_text([void])


@pytest.mark.parametrize(("minutes", "end"), [(5.0, JobEnd.DECIDED), (5.0, None), (None, JobEnd.BUDGET)])
def test_another_end_is_not_the_budgets(minutes: float | None, end: JobEnd | None) -> None:
    assert ending_text(ended(NOISY, minutes, end)) == ""


def test_a_schedule_that_is_over_is_named_beside_what_a_new_run_needs() -> None:
    """The budget had room left: more minutes alone would change nothing."""
    reason = judge(contrast(), ended(NOISY, 60, JobEnd.SCHEDULE), Policy(margin=0.05)).reason
    assert "the schedule of 8 blocks ended after 3 quads" in reason
    assert "budget" not in reason
    assert "a new run needs [policy] blocks = " in reason
    assert "minutes = " not in reason


def test_other_work_that_was_nothing_typically_is_told_by_its_most() -> None:
    """Not ``the hypervisor gave 0 % to others``."""
    stolen = [
        replace(run, conditions=replace(run.conditions, steal=0.03 * (index == 1))) for index, run in enumerate(NOISY)
    ]
    assert disturbance_text(stolen) == "the hypervisor gave up to 3 % of the pinned cores to others"


def test_one_is_said_in_the_singular() -> None:
    alone = replace(record(NOISY[:1]), end=JobEnd.BUDGET)
    job = replace(alone.job, arms=(BASELINE,), design=replace(alone.job.design, minutes=1))
    assert ending_text(replace(alone, job=job)) == "the budget of 1 minute ended after 1 block"
