"""The one entry point: failures first, then what must hold, then figures."""

from __future__ import annotations

from dataclasses import replace

import pytest
from judging_support import (
    BASELINE,
    CANDIDATE,
    GOOD_TOKENS,
    NODE,
    PROFILE,
    answers,
    arms_runs,
    contrast,
    equivalence,
    floor,
    memory,
    pitfall,
    record,
    run,
)

from harness.domain.case import Case, Expectation
from harness.domain.failure import Failure, FailureKind
from harness.domain.job import Design
from harness.domain.node import NodeClass
from harness.domain.policy import Policy
from harness.domain.stopping import JobEnd
from harness.domain.words import Equivalence, Pitfall, Status, Throughput
from harness.judging.judge import judge
from harness.judging.record import JobRecord

POLICY = Policy()
SLOWER = arms_runs([100, 101, 99, 100] * 2, [80, 80.8, 79.2, 80] * 2)
FASTER = arms_runs([80, 80.8, 79.2, 80] * 2, [100, 101, 99, 100] * 2)
EQUAL = arms_runs([100, 101, 99, 100] * 2, [100.1, 100.9, 99.2, 99.9, 100, 101, 99, 100.2])
NOISY = arms_runs([100, 80, 120, 95] * 2, [90, 110, 70, 100, 95, 80, 99, 130])
FLIPPED = (*GOOD_TOKENS[:17], 999, *GOOD_TOKENS[18:])
CRASH = Failure(FailureKind.CRASH, "signal 11", "E-crash", "last words")
TIMEOUT = Failure(FailureKind.TIMEOUT, "after 600 s", "E-timeout")


def failing(arm: int, kind: FailureKind) -> JobRecord:
    return record((*SLOWER[:15], run(arm, 7, None, failure=Failure(kind, "it broke", f"E-{kind}"))))


@pytest.mark.parametrize(
    ("runs", "expect", "status", "word"),
    [
        (SLOWER, Expectation.NO_REGRESSION, Status.FAIL, Throughput.REGRESSED),
        (EQUAL, Expectation.NO_REGRESSION, Status.PASS, Throughput.EQUIVALENT),
        (FASTER, Expectation.NO_REGRESSION, Status.PASS, Throughput.IMPROVED),
        (NOISY, Expectation.NO_REGRESSION, Status.INCONCLUSIVE, Throughput.INCONCLUSIVE),
        (SLOWER, Expectation.IMPROVED, Status.FAIL, Throughput.REGRESSED),
        (EQUAL, Expectation.IMPROVED, Status.FAIL, Throughput.EQUIVALENT),
        (FASTER, Expectation.IMPROVED, Status.PASS, Throughput.IMPROVED),
        (SLOWER, Expectation.REPORT, Status.PASS, Throughput.REGRESSED),
        (NOISY, Expectation.REPORT, Status.INCONCLUSIVE, Throughput.INCONCLUSIVE),
    ],
)
def test_expectations(runs: tuple[object, ...], expect: Expectation, status: Status, word: Throughput) -> None:
    verdict = judge(contrast(expect), record(runs), POLICY)  # type: ignore[arg-type]
    assert (verdict.status, verdict.throughput) == (status, word)


def test_the_reason_tells_speeds_ratio_interval_n_and_node() -> None:
    verdict = judge(contrast(), record(SLOWER), POLICY)
    assert verdict.reason.startswith("regressed: 100.2 -> 80.13 t/s, ratio 0.800 [")
    assert "99 % interval, n = 3 quads" in verdict.reason
    assert verdict.reason.endswith("on Test CPU 9000 (8 cores) @any")
    assert verdict.seconds == pytest.approx(16 * 2.5)
    assert verdict.synthetic
    assert [arm.processes for arm in verdict.arms] == [6, 6]


@pytest.mark.parametrize("case", [contrast(), floor(50), pitfall(), equivalence(), memory(1000)])
def test_judging_twice_gives_the_same_verdict(case: Case) -> None:
    runs = (run(0, -1, 100, outputs=answers()), run(1, -1, 100, outputs=answers()), *SLOWER)
    job = record(runs, outputs=PROFILE)
    assert judge(case, job, POLICY) == judge(case, job, POLICY)


@pytest.mark.parametrize(
    ("arm", "kind", "status", "slug"),
    [
        (1, FailureKind.CRASH, Status.FAIL, "E-crash"),
        (1, FailureKind.OUT_OF_MEMORY, Status.FAIL, "E-out_of_memory"),
        (0, FailureKind.CRASH, Status.ERROR, "E-no-baseline"),
        (1, FailureKind.UNSUPPORTED, Status.UNSUPPORTED, "E-unsupported"),
        (1, FailureKind.TIMEOUT, Status.ERROR, "E-timeout"),
        (1, FailureKind.ECHO_MISMATCH, Status.ERROR, "E-echo_mismatch"),
        (1, FailureKind.UNPARSABLE, Status.ERROR, "E-unparsable"),
        (0, FailureKind.NODE_LOST, Status.ERROR, "E-node_lost"),
    ],
)
def test_failures_come_first(arm: int, kind: FailureKind, status: Status, slug: str) -> None:
    verdict = judge(contrast(), failing(arm, kind), POLICY)
    assert (verdict.status, verdict.slug) == (status, slug)
    assert verdict.throughput is None


@pytest.mark.parametrize("kind", [FailureKind.UNPARSABLE, FailureKind.CRASH, FailureKind.TIMEOUT])
def test_a_candidate_is_not_blamed_beside_a_baseline_that_is_broken_too(kind: FailureKind) -> None:
    """Two burn-ins that fail, the baseline's first: the candidate is worse than nothing that was measured."""
    broken = Failure(kind, "hello", f"E-{kind}", "said by the old")
    runs = (run(0, -1, None, failure=broken), run(1, -1, None, failure=replace(CRASH, detail="said by the new")))
    verdict = judge(contrast(), record(runs), POLICY)
    assert (verdict.status, verdict.slug) == (Status.ERROR, "E-no-baseline")
    assert f"baseline ik+rtr=0: {kind}, hello; candidate ik+rtr=1: crash, " in verdict.reason
    assert verdict.detail == "said by the old\nsaid by the new"


def test_a_candidate_is_blamed_beside_a_baseline_that_is_good_all_the_same() -> None:
    """One process of the baseline that nobody could read does not take away the others."""
    unread = run(0, 8, None, failure=Failure(FailureKind.UNPARSABLE, "hello", "E-rows-missing"))
    runs = (*SLOWER[:8], run(1, 8, None, failure=CRASH), unread)
    verdict = judge(contrast(), record(runs), POLICY)
    assert (verdict.status, verdict.slug) == (Status.FAIL, CRASH.slug)


def test_a_crash_after_whole_rows_spares_the_cases_that_have_them() -> None:
    runs = (*SLOWER[:-1], replace(SLOWER[-1], failure=CRASH))
    assert judge(contrast(), record(runs), POLICY).throughput is Throughput.REGRESSED


def test_a_crash_that_left_too_few_rows_fails() -> None:
    runs = (*SLOWER[:8], replace(SLOWER[8], failure=CRASH))
    assert judge(contrast(), record(runs), POLICY).status is Status.FAIL


def test_an_echo_mismatch_condemns_whole_rows_too() -> None:
    mismatch = Failure(FailureKind.ECHO_MISMATCH, "fa 0 v 1", "E-echo-mismatch")
    runs = (*SLOWER[:-1], replace(SLOWER[-1], failure=mismatch))
    assert judge(contrast(), record(runs), POLICY).status is Status.ERROR


def test_an_arm_that_failed_does_not_touch_the_other_arms_case() -> None:
    assert judge(floor(50), failing(1, FailureKind.CRASH), POLICY).status is Status.PASS


def test_job_failures_are_errors() -> None:
    lost = Failure(FailureKind.NODE_LOST, "heartbeat lost", "E-node-lost")
    verdict = judge(contrast(), replace(record((), failure=lost), tries=2), POLICY)
    assert (verdict.status, verdict.slug) == (Status.ERROR, "E-node-lost")
    assert "after 2 tries" in verdict.reason


def test_no_measurement_is_an_error() -> None:
    assert judge(contrast(), record(SLOWER[:8]), POLICY).slug == "E-no-measurement"
    assert judge(contrast(), record(SLOWER[8:]), POLICY).slug == "E-no-baseline"
    assert judge(equivalence(), record(SLOWER), POLICY).status is Status.ERROR


def test_implausible_speed_fails_the_candidate() -> None:
    runs = (*SLOWER[:15], run(1, 7, 5e6))
    assert judge(contrast(), record(runs), POLICY).slug == "E-implausible"


def test_other_token_counts_than_asked_are_an_echo_mismatch() -> None:
    (only,) = SLOWER[0].samples
    runs = (replace(SLOWER[0], samples=(replace(only, tokens=511),)), *SLOWER[1:])
    assert judge(contrast(), record(runs), POLICY).slug == "E-echo-mismatch"


def test_equal_content_is_no_contrast() -> None:
    runs = [replace(each, content_key="same") for each in SLOWER]
    assert judge(contrast(), record(runs), POLICY).slug == "E-no-contrast"


def test_equal_content_is_what_a_calibration_measures() -> None:
    runs = [replace(each, content_key="same") for each in SLOWER]
    told = record(runs)
    calibration = replace(told, job=replace(told.job, design=replace(told.job.design, calibration=True)))
    assert judge(contrast(), calibration, POLICY).throughput is Throughput.REGRESSED


def test_content_that_changed_under_the_run_is_an_error() -> None:
    runs = (*SLOWER[:15], replace(SLOWER[15], content_key="other"))
    assert judge(contrast(), record(runs), POLICY).slug == "E-content-changed"


def test_speed_at_another_niceness_is_not_judged() -> None:
    runs = [replace(each, conditions=replace(each.conditions, niceness=15)) for each in SLOWER]
    verdict = judge(contrast(), record(runs), POLICY)
    assert (verdict.status, verdict.throughput) == (Status.NOT_JUDGED, None)
    assert verdict.reason.startswith("not_judged: measured at niceness 15")


def test_speed_of_wrong_output_is_not_judged() -> None:
    wrong = (run(0, -1, 100, outputs=answers()), run(1, -1, 100, outputs=answers(tokens=(7,) * 32)))
    job = record((*wrong, *SLOWER), outputs=PROFILE)
    verdict = judge(contrast(), job, POLICY)
    assert (verdict.status, verdict.equivalence, verdict.throughput) == (Status.NOT_JUDGED, Equivalence.BROKEN, None)
    assert judge(pitfall(), job, POLICY).status is Status.NOT_JUDGED
    assert judge(equivalence(), job, POLICY).status is Status.FAIL


def test_near_ties_do_not_hinder_throughput() -> None:
    tie = (run(0, -1, 100, outputs=answers(margins=(0.01,) * 32)), run(1, -1, 100, outputs=answers(tokens=FLIPPED)))
    job = record((*tie, *SLOWER), outputs=PROFILE)
    assert judge(contrast(), job, POLICY).throughput is Throughput.REGRESSED
    assert judge(equivalence(), job, POLICY).equivalence is Equivalence.NEAR_TIE


@pytest.mark.parametrize(
    ("runs", "word", "status"),
    [
        (SLOWER, Pitfall.PRESENT, Status.PASS),
        (EQUAL, Pitfall.GONE, Status.PASS),
        (FASTER, Pitfall.GONE, Status.PASS),
        (NOISY, Pitfall.INCONCLUSIVE, Status.INCONCLUSIVE),
    ],
)
def test_pitfalls(runs: tuple[object, ...], word: Pitfall, status: Status) -> None:
    verdict = judge(pitfall(), record(runs), POLICY)  # type: ignore[arg-type]
    assert (verdict.pitfall, verdict.status) == (word, status)
    assert ("out of date for this build" in verdict.reason) == (word is Pitfall.GONE)


@pytest.mark.parametrize(
    ("limit", "rss", "status"), [(200, 100, Status.PASS), (50, 100, Status.FAIL), (50, 0, Status.ERROR)]
)
def test_memory(limit: float, rss: float, status: Status) -> None:
    job = record([run(0, 0, 100, rss_mib=rss)], arms=(BASELINE,))
    assert judge(memory(limit), job, POLICY).status is status


def test_a_node_outside_the_class_is_not_applicable() -> None:
    case = replace(contrast(), node_class=NodeClass("big", min_cores=64))
    assert judge(case, record(SLOWER), POLICY).status is Status.NOT_APPLICABLE


def test_a_policy_can_turn_inconclusive_into_an_error() -> None:
    verdict = judge(contrast(), record(NOISY), Policy(inconclusive="error"))
    assert (verdict.status, verdict.slug) == (Status.ERROR, "E-inconclusive")


def test_processes_outside_whole_quads_are_told_and_not_averaged_in() -> None:
    verdict = judge(contrast(), record(SLOWER[:15]), POLICY)
    assert "processes outside whole quads: baseline 2, candidate 1" in verdict.reason
    assert [arm.processes for arm in verdict.arms] == [6, 6]


def test_void_quads_are_told_and_not_averaged_in() -> None:
    """A neighbour at another niceness: the quad is void on both arms, the others count."""
    niced = replace(SLOWER[15].conditions, niceness=15)
    verdict = judge(contrast(), record((*SLOWER[:15], replace(SLOWER[15], conditions=niced))), POLICY)
    assert "1 quad void on all arms: niceness 15 (processes that gave cause: baseline 0, candidate 1)" in verdict.reason
    assert [arm.processes for arm in verdict.arms] == [6, 6]


def test_single_arm_of_a_pair_job_is_found_by_identity() -> None:
    case = replace(floor(90), arms=(CANDIDATE,))
    assert judge(case, record(SLOWER), POLICY).status is Status.FAIL
    assert judge(case, replace(record(SLOWER), node=None), POLICY).reason.endswith("on unknown node @any")
    assert NODE.niceness == 0


def test_of_two_quads_the_reason_says_what_the_interval_assumes() -> None:
    """Nobody knows how far they scatter: that is no 99 % interval."""
    reason = judge(contrast(), record(arms_runs([100, 101, 99, 100], [97, 99, 96, 98])), POLICY).reason
    assert "(interval if quads scatter by 10 %, n = 2 quads)" in reason
    assert "99 %" not in reason


@pytest.mark.parametrize("quads", [1, 2])
def test_few_quads_are_told_what_more_would_take(quads: int) -> None:
    few = replace(record(arms_runs([100, 101] * quads, [97, 99] * quads)), end=JobEnd.BUDGET)
    design = Design(blocks=24, minutes=0.2)
    reason = judge(contrast(), replace(few, job=replace(few.job, design=design)), POLICY).reason
    assert "fewer than 3 quads do not show how many it takes, 3 need [policy] minutes = 1" in reason
