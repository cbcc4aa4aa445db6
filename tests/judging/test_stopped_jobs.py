"""A job that somebody ended is judged by what it had measured; what it had not is no measurement."""

from __future__ import annotations

from judging_support import arms_runs, contrast, record, run

from harness.domain.failure import Failure, FailureKind
from harness.domain.policy import Policy
from harness.domain.words import Status, Throughput
from harness.judging.judge import judge

POLICY = Policy()
SLOWER = arms_runs([100, 101, 99, 100, 101, 100], [40, 41, 39, 40, 40, 41])
STOPPED = Failure(FailureKind.INTERRUPTED, "the job was stopped before its end", "E-interrupted")
CUT_SHORT = run(0, 6, None, failure=Failure(FailureKind.INTERRUPTED, "the engine was stopped", "E-interrupted"))


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
