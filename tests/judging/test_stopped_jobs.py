"""A job that somebody ended is judged by what it had measured; what it had not is no measurement."""

from __future__ import annotations

from dataclasses import replace

import pytest
from judging_support import ANY, arms_runs, contrast, record, run
from outputs_support import WIDE, answers_of

from harness.domain.case import Case, OutputCheck
from harness.domain.failure import Failure, FailureKind
from harness.domain.policy import Policy
from harness.domain.words import Kind, Status, Throughput
from harness.judging.judge import judge

POLICY = Policy()
SLOWER = arms_runs([100, 101, 99, 100, 101, 100], [40, 41, 39, 40, 40, 41])
STOPPED = Failure(FailureKind.INTERRUPTED, "the job was stopped before its end", "E-interrupted")
CUT_SHORT = run(0, 6, None, failure=Failure(FailureKind.INTERRUPTED, "the engine was stopped", "E-interrupted"))
APART = answers_of(), answers_of(2.0)


def test_what_was_measured_until_then_counts() -> None:
    verdict = judge(contrast(), record([*SLOWER, CUT_SHORT], failure=STOPPED), POLICY)
    assert (verdict.status, verdict.throughput) == (Status.FAIL, Throughput.REGRESSED)


def test_too_little_is_inconclusive() -> None:
    verdict = judge(contrast(), record([SLOWER[0], SLOWER[6], CUT_SHORT], failure=STOPPED), POLICY)
    assert verdict.status is Status.INCONCLUSIVE


def test_an_arm_without_a_process_is_an_error() -> None:
    verdict = judge(contrast(), record([SLOWER[0], CUT_SHORT], failure=STOPPED), POLICY)
    assert (verdict.status, verdict.slug) == (Status.ERROR, "E-interrupted")


def test_an_engine_that_is_killed_from_outside_while_its_job_goes_on_is_an_error() -> None:
    assert judge(contrast(), record([*SLOWER[6:], CUT_SHORT]), POLICY).status is Status.ERROR


@pytest.mark.parametrize(
    ("rounds", "status", "said"),
    [
        (1, Status.INCONCLUSIVE, "not repeated: at first different, "),
        (2, Status.FAIL, "again in fresh processes the same"),
    ],
)
def test_wrong_outputs_that_could_not_be_asked_for_again_are_no_finding(rounds: int, status: Status, said: str) -> None:
    """A stop between the rounds: what was seen once is told, and its speed is not judged."""
    runs = [run(arm, -1, 100, outputs=tuple(answers)) for _ in range(rounds) for arm, answers in enumerate(APART)]
    stopped = record([*runs, CUT_SHORT], outputs=WIDE, failure=STOPPED)
    case = Case(Kind.EQUIVALENCE, stopped.job.arms, WIDE, ANY, OutputCheck("same", "rtr"))
    verdict = judge(case, stopped, POLICY)
    assert verdict.status is status
    assert said in verdict.reason
    assert judge(contrast(), stopped, POLICY).status is Status.NOT_JUDGED


def test_answers_without_distributions_are_judged_by_their_one_round() -> None:
    """Journals from before rounds: as they were."""
    bare = [tuple(replace(each, prefill=None, forced=None, greedy=None) for each in answers) for answers in APART]
    broken = [bare[0], tuple(replace(each, finite=False) for each in bare[1])]
    stopped = record([run(arm, -1, 100, outputs=broken[arm]) for arm in range(2)], outputs=WIDE, failure=STOPPED)
    case = Case(Kind.EQUIVALENCE, stopped.job.arms, WIDE, ANY, OutputCheck("same", "rtr"))
    assert judge(case, stopped, POLICY).status is Status.FAIL
