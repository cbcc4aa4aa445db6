"""Gains and losses of one contrast: nothing is averaged away, and a loss is accepted only where the policy says so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from judging_support import PP, TG, contrast, record, run

from harness.domain.case import Expectation
from harness.domain.measurement import ProcessRun
from harness.domain.policy import Policy, Trade
from harness.domain.verdict import Verdict
from harness.domain.words import Status, Throughput
from harness.judging.judge import judge
from harness.judging.record import JobRecord

WOBBLE = (0.0, 0.003, -0.002, 0.001, -0.003, 0.002, 0.0, -0.001)
PAYS = Trade(gain="pp*", at_least=0.10, loss="tg*", at_most=0.05)


def measured(pp: float, tg: float, blocks: int = 16) -> JobRecord:
    """A job of both workloads, the candidate faster by these shares."""
    runs = [process(arm, block, (1 + arm * pp, 1 + arm * tg)) for block in range(blocks) for arm in (0, 1)]
    made = record(runs)
    design = replace(made.job.design, blocks=blocks)
    return replace(made, job=replace(made.job, workloads=(PP, TG), design=design))


def process(arm: int, block: int, factors: Sequence[float]) -> ProcessRun:
    wobble = math.exp(WOBBLE[(block + 3 * arm) % len(WOBBLE)])
    one = run(arm, block, 1000 * factors[0] * wobble)
    other = run(arm, block, 100 * factors[1] * wobble, workload=TG)
    return replace(one, samples=(*one.samples, *other.samples))


def judged(job: JobRecord, *trades: Trade, expect: Expectation = Expectation.NO_REGRESSION) -> Verdict:
    return judge(contrast(expect, TG), job, Policy(margin=0.02, trades=trades))


def test_a_gain_does_not_make_up_for_a_loss() -> None:
    verdict = judged(measured(0.12, -0.36))
    assert (verdict.status, verdict.throughput) == (Status.FAIL, Throughput.REGRESSED)
    assert "mixed: pp512 improved, tg128 regressed" in verdict.reason


def test_the_gain_tells_of_the_loss_too() -> None:
    verdict = judge(contrast(workload=PP), measured(0.12, -0.36), Policy())
    assert (verdict.status, verdict.throughput) == (Status.PASS, Throughput.IMPROVED)
    assert "mixed: pp512 improved, tg128 regressed" in verdict.reason


@pytest.mark.parametrize(("pp", "tg"), [(-0.12, -0.36), (0.0, -0.36)])
def test_a_loss_alone_is_not_mixed(pp: float, tg: float) -> None:
    assert "mixed" not in judged(measured(pp, tg)).reason


def test_a_trade_that_the_policy_accepts_passes_and_is_told() -> None:
    verdict = judged(measured(0.15, -0.04), PAYS)
    assert (verdict.status, verdict.throughput) == (Status.PASS, Throughput.REGRESSED)
    assert "accepted by the policy: pp512 +15.0 % pays for a loss of at most 5 %" in verdict.reason


@pytest.mark.parametrize(
    ("pp", "tg"),
    [(0.15, -0.06), (0.09, -0.04), (0.15, -0.0499), (0.1001, -0.04)],
    ids=["too large a loss", "too small a gain", "a loss that may be too large", "a gain that may be too small"],
)
def test_a_trade_holds_only_where_both_are_sure(pp: float, tg: float) -> None:
    verdict = judged(measured(pp, tg), PAYS)
    assert (verdict.status, verdict.throughput) == (Status.FAIL, Throughput.REGRESSED)


def test_a_trade_for_other_workloads_accepts_nothing() -> None:
    assert judged(measured(0.15, -0.04), replace(PAYS, loss="pp*")).status is Status.FAIL
    assert judged(measured(0.15, -0.04), replace(PAYS, gain="tg*")).status is Status.FAIL


def test_an_improvement_that_was_asked_for_is_not_bought() -> None:
    assert judged(measured(0.15, -0.04), PAYS, expect=Expectation.IMPROVED).status is Status.FAIL


def test_a_gain_that_is_no_measurement_pays_for_nothing() -> None:
    """The other workload's tokens are not those that were asked for: its own case is an error."""
    job = measured(0.15, -0.04)
    runs = [replace(each, samples=(replace(each.samples[0], tokens=99), each.samples[1])) for each in job.runs]
    assert judged(replace(job, runs=tuple(runs)), PAYS).status is Status.FAIL
