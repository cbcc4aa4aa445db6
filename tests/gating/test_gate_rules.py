"""Trades, limits, waivers, stages by labelled alerts."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from gate_support import (
    NEW,
    OLD,
    TG,
    TODAY,
    blocking,
    compared,
    effects,
    improved,
    judged,
    labels,
    outputs,
    policy,
    regressed,
    speed,
    state,
    verdict,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from harness.domain.job import Design, Job
from harness.domain.measurement import Conditions, ProcessRun, Step
from harness.domain.node import NodeClass
from harness.domain.verdict import Verdict
from harness.domain.words import Equivalence, Status
from harness.gating.policy import PromotionEntry
from harness.gating.stages import precision_at_least, promoted
from harness.gating.telling import waiver_line
from harness.gating.words import Outcome
from harness.reporting.state import JobTry, JournalState

TRADE: dict[str, Any] = {"loss": "pp*", "at_most": 0.05, "gain": "tg*", "at_least": 0.1}


def pair(loss: float, gain: float, word: Equivalence = Equivalence.GREEDY, **changes: Any) -> JournalState:
    return state(
        (speed(), regressed(speed(), loss)),
        (speed(TG), improved(speed(TG), gain)),
        (outputs(), compared(word)),
        **changes,
    )


def test_a_small_loss_is_paid_for_by_a_large_gain_of_the_same_arms() -> None:
    decision = judged(blocking(trades=[TRADE]), pair(0.97, 1.2))
    assert decision.outcome is Outcome.GO
    assert "tg16, 20.0 % faster" in next(each.traded for each in decision.cells if each.traded)


@pytest.mark.parametrize(("loss", "gain"), [(0.955, 1.2), (0.97, 1.1)])
def test_both_sides_of_a_trade_are_certain_by_their_intervals(loss: float, gain: float) -> None:
    """The estimates keep to it, the bounds of their intervals do not."""
    assert judged(blocking(trades=[TRADE]), pair(loss, gain)).outcome is Outcome.BLOCKED


def test_a_gain_of_other_arms_or_another_node_class_pays_for_nothing() -> None:
    elsewhere = speed(TG, node="gpu")
    journal = state((speed(), regressed(speed(), 0.97)), (elsewhere, improved(elsewhere)))
    assert judged(blocking(trades=[TRADE]), journal).outcome is Outcome.BLOCKED


def test_a_trade_can_ask_for_outputs_and_wrong_ones_are_never_paid_for() -> None:
    strict = blocking(trades=[{**TRADE, "outputs": "greedy"}])
    assert judged(strict, pair(0.97, 1.2)).outcome is Outcome.GO
    assert judged(strict, pair(0.97, 1.2, Equivalence.NEAR_TIE)).outcome is Outcome.BLOCKED
    wrong = judged(blocking(trades=[TRADE]), pair(0.97, 1.2, Equivalence.DIFFERENT))
    assert (wrong.outcome, effects(wrong)[speed().id]) == (Outcome.BLOCKED, "block")


def process(arm: int, mib: float, block: int = 0) -> ProcessRun:
    step = Step(arm, block)
    return ProcessRun(step, f"key{arm}", (), (), 1.0, None, int(mib * 2**20), Conditions(0, (), 1, 0.0), {})


def with_memory(journal: JournalState, old: float, new: float) -> JournalState:
    job = Job((OLD, NEW), (), None, NodeClass("any"), Design(), ())
    runs = tuple(process(arm, mib + jitter) for arm, mib in ((0, old), (1, new)) for jitter in (0.0, 1.0))
    journal.jobs["job-1"] = JobTry(1, job, runs=runs, finished=True)  # type: ignore[index]
    return journal


def fine() -> JournalState:
    return state((speed(), verdict(speed())), (speed(TG), improved(speed(TG))))


def test_growth_of_memory_beyond_the_limit_is_one_finding_and_a_gain_can_pay_for_it() -> None:
    limit = {"memory_growth": 0.1}
    assert judged(blocking(limits=limit), with_memory(fine(), 100, 109)).outcome is Outcome.GO
    decision = judged(blocking(limits=limit), with_memory(fine(), 100, 130))
    assert [each.finding for each in decision.cells if each.finding] == ["memory"]
    assert "resident memory +29.7 %" in decision.cells[0].reason
    paid = {"loss": "memory", "at_most": 0.4, "gain": "tg*", "at_least": 0.1}
    assert judged(blocking(limits=limit, trades=[paid]), with_memory(fine(), 100, 130)).outcome is Outcome.GO
    assert judged(blocking(limits=limit, trades=[paid]), with_memory(fine(), 100, 150)).outcome is Outcome.BLOCKED
    assert judged(blocking(), with_memory(fine(), 100, 130)).outcome is Outcome.GO


def test_memory_that_is_saved_pays_for_speed() -> None:
    trade = {**TRADE, "gain": "memory", "at_least": 0.2}
    journal = state((speed(), regressed(speed(), 0.97)))
    assert judged(blocking(trades=[trade]), with_memory(journal, 100, 70)).outcome is Outcome.GO
    assert judged(blocking(trades=[trade]), with_memory(journal, 100, 85)).outcome is Outcome.BLOCKED


def test_outputs_further_apart_than_the_policy_wants_are_a_finding_that_speed_can_pay_for() -> None:
    journal = state((outputs(), compared(Equivalence.DISTRIBUTION)), (speed(TG), improved(speed(TG))))
    limit = {"outputs": "near_tie"}
    decision = judged(blocking(limits=limit), journal)
    assert (decision.outcome, decision.cells[0].finding) == (Outcome.BLOCKED, "outputs")
    trade = {"loss": "outputs", "at_most": "distribution", "gain": "tg*", "at_least": 0.1}
    assert judged(blocking(limits=limit, trades=[trade]), journal).outcome is Outcome.GO


def waiver(expires: date = TODAY, *patterns: str, **more: Any) -> dict[str, Any]:
    return {"cells": list(patterns or ["*"]), "owner": "alice", "reason": "known", "expires": expires, **more}


def test_a_waiver_holds_on_its_last_day_and_is_listed() -> None:
    decision = judged(blocking(waivers=[waiver()]), state((speed(), regressed(speed()))))
    assert (decision.outcome, effects(decision)) == (Outcome.GO, {speed().id: "waived"})
    assert decision.cells[0].waiver == "alice: known (until 2026-12-01)"
    assert [(each.state, each.cases) for each in decision.waivers] == [("applied", (speed().id,))]


def test_an_expired_waiver_is_not_applied_and_named() -> None:
    decision = judged(blocking(waivers=[waiver(date(2026, 11, 30))]), state((speed(), regressed(speed()))))
    assert decision.outcome is Outcome.BLOCKED
    assert [(each.state, each.cases) for each in decision.waivers] == [("expired", (speed().id,))]


def test_a_waiver_that_nothing_needs_is_told_as_unused() -> None:
    decision = judged(blocking(waivers=[waiver(TODAY, "pitfall/*")]), state((speed(), regressed(speed()))))
    assert (decision.outcome, decision.waivers[0].state) == (Outcome.BLOCKED, "unused")


def waiver_told(found: Verdict, *waivers: dict[str, Any]) -> str:
    return waiver_line(judged(blocking(waivers=list(waivers)), state((speed(), found))).waivers[0])


@pytest.mark.parametrize(
    ("found", "given", "told"),
    [
        (regressed(speed(), 0.8), {"at_most": 0.15}, "the loss may be 20.8 %, more than at_most, which is 15 %"),
        (regressed(speed()), {"findings": ["crash", "broken"]}, "it is regressed, findings are crash, broken"),
        (verdict(speed(), Status.FAIL), {"at_most": 0.15}, "it is crash, at_most is for what regressed"),
    ],
)
def test_a_waiver_that_does_not_fit_says_why(found: Verdict, given: dict[str, Any], told: str) -> None:
    assert waiver_told(found, waiver(**given)).endswith(f": not applied to {speed().id}: {told}")
    assert waiver_told(found, waiver(**given), waiver()).endswith("unused, no finding needs it")  # another one holds


def test_a_waivers_pattern_that_names_no_cell_is_told_and_breaks_nothing() -> None:
    """What it is for may be the night's alone."""
    told = waiver_told(verdict(speed()), waiver(TODAY, "throughputs/*", "!old"))
    assert told.endswith(": unused; 'throughputs/*' names no cell of these journals (did you mean 'throughput'?)")
    policy = blocking(waivers=[waiver(TODAY, "throughputs/*")])
    assert judged(policy, state((speed(), verdict(speed())))).outcome is Outcome.GO


def test_a_waiver_can_be_about_some_findings_and_small_losses() -> None:
    """What it was made for: a later crash, or a larger loss, of the same cell blocks."""
    small = blocking(waivers=[waiver(findings=["regressed"], at_most=0.15)])
    assert judged(small, state((speed(), regressed(speed(), 0.9)))).outcome is Outcome.GO
    assert judged(small, state((speed(), regressed(speed(), 0.8)))).outcome is Outcome.BLOCKED
    assert judged(small, state((speed(), verdict(speed(), Status.FAIL)))).outcome is Outcome.BLOCKED


AUTO = [{"cells": ["throughput/*"], "stage": "auto"}]


@pytest.mark.parametrize(
    ("words", "stage"),
    [
        ([], "shadow"),
        ([True] * 4, "shadow"),  # too few, however true
        ([True] * 5, "warn"),
        ([True] * 9, "warn"),
        ([True] * 10, "block"),
        ([True] * 10 + [False] * 2, "warn"),  # demoted
        ([True] * 10 + [False] * 10, "shadow"),
    ],
)
def test_a_stage_is_earned_by_labelled_alerts_and_lost_again(words: list[bool], stage: str) -> None:
    decision = judged(policy(cells=AUTO), state((speed(), regressed(speed()))), labels=labels(speed(TG), *words))
    assert decision.cells[0].staged.stage == stage
    assert effects(decision)[speed().id] == stage
    assert ("labelled alert" in decision.cells[0].staged.why) is True


def test_labels_of_other_rows_or_cells_do_not_count() -> None:
    one = {"cells": AUTO, "promotion": {"over": "cell"}}
    journal = state((speed(), regressed(speed())))
    trusted = labels(speed(TG), *[True] * 10)
    assert judged(policy(**one), journal, labels=trusted).cells[0].staged.stage == "shadow"
    assert judged(policy(**one), journal, labels=labels(speed(), *[True] * 10)).cells[0].staged.stage == "block"
    of_outputs = labels(outputs(), *[True] * 10)
    assert judged(policy(cells=AUTO), journal, labels=of_outputs).cells[0].staged.stage == "shadow"


def test_only_the_newest_labels_count() -> None:
    """A row that was good long ago is demoted by what it does now."""
    words = [True] * 40 + [False] * 5
    assert promoted(words[-50:], PromotionEntry())[0] == "block"
    recent = policy(cells=AUTO, promotion={"window": 10})
    decision = judged(recent, state((speed(), regressed(speed()))), labels=labels(speed(), *words))
    assert decision.cells[0].staged.stage == "shadow"


def test_the_gate_says_what_a_stage_rests_on_and_what_the_next_one_needs() -> None:
    stage, why = promoted([True] * 6 + [False], PromotionEntry(warn={"alerts": 5, "precision": 0.4}))  # type: ignore[arg-type]
    assert stage == "warn"
    assert why == (
        "6 of 7 labelled alerts true, precision at least 49 % (95 % Wilson); to block it needs 10 labels and 70 %"
    )


@given(st.integers(1, 300), st.data(), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
@settings(max_examples=60, deadline=None)
def test_the_bound_is_wilsons(count: int, data: st.DataObject, confidence: float) -> None:
    true = data.draw(st.integers(0, count))
    wanted = float(binomtest(true, count).proportion_ci(confidence, method="wilson").low)
    assert precision_at_least(true, count, confidence) == pytest.approx(wanted, abs=1e-12)


def test_a_label_of_this_very_alert_is_told_and_changes_nothing() -> None:
    journal = state((speed(), regressed(speed())))
    first = judged(None, journal).cells[0]
    said = labels(speed(), False)[0].model_copy(update={"id": first.alert})
    again = judged(None, journal, labels=[said]).cells[0]
    assert (again.label, again.effect) == (False, "block")
