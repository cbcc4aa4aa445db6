"""What the gate decides: nothing that is missing passes silently, and each red says why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from gate_support import (
    FLOOR,
    MEMORY,
    PP,
    TG,
    arm,
    asked,
    blocking,
    chosen,
    compared,
    effects,
    improved,
    judged,
    outputs,
    policy,
    ratio,
    regressed,
    single,
    slugs,
    speed,
    state,
    verdict,
)

from harness.domain.case import Case, FloorCheck
from harness.domain.choice import WhyLeft
from harness.domain.policy import Policy as Judging
from harness.domain.verdict import Verdict
from harness.domain.words import Equivalence, Pitfall, Status, Throughput
from harness.gating.deciding import headline
from harness.gating.words import Outcome
from harness.reporting.state import Problem

PASS = verdict(speed(), throughput=Throughput.EQUIVALENT)


def test_a_good_run_is_go_and_one_line() -> None:
    decision = judged(None, state((speed(), PASS), (outputs(), compared(Equivalence.BITWISE))))
    assert (decision.outcome, decision.exit_code) == (Outcome.GO, 0)
    assert headline(decision) == "go: 2 cells of 1 journal, nothing found"


def test_a_regression_blocks() -> None:
    decision = judged(None, state((speed(), regressed(speed())), (speed(TG), improved(speed(TG)))))
    assert (decision.outcome, decision.exit_code) == (Outcome.BLOCKED, 1)
    assert decision.cells[0].finding == "regressed"


@pytest.mark.parametrize(
    "status",
    [Status.ERROR, Status.INCONCLUSIVE, Status.NOT_JUDGED, Status.UNSUPPORTED, Status.NOT_APPLICABLE],
)
@pytest.mark.parametrize(
    ("action", "outcome", "code"),
    [(None, "undecided", 3), ("undecided", "undecided", 3), ("warn", "go", 0), ("block", "blocked", 1)],
)
def test_a_required_cell_without_a_verdict_never_passes_silently(
    status: Status, action: str | None, outcome: str, code: int
) -> None:
    """The policy says what becomes of each reason; the default leaves the gate undecided."""
    rules = blocking("throughput/*", **({"missing": {status.value: action}} if action else {}))
    found = judged(rules, state((speed(), verdict(speed(), status)), (speed(TG), verdict(speed(TG)))))
    assert (found.outcome.value, found.exit_code) == (outcome, code)
    assert effects(found)[speed().id] == {None: "undecided"}.get(action, action)


def test_a_row_says_for_its_cells_what_a_missing_verdict_does() -> None:
    rules = policy(
        missing={"inconclusive": "block"}, cells=[{"cells": ["*"], "stage": "block", "inconclusive": "warn"}]
    )
    assert judged(rules, state((speed(), verdict(speed(), Status.INCONCLUSIVE)))).outcome is Outcome.GO


def test_a_case_that_never_finished_is_absent() -> None:
    decision = judged(None, state((speed(), None), (speed(TG), verdict(speed(TG)))))
    assert (decision.outcome, decision.cells[0].finding) == (Outcome.UNDECIDED, "absent")
    assert "E-gate-unfinished" in slugs(decision)


def test_what_the_matrix_made_an_error_of_is_still_undecided() -> None:
    """``[policy] inconclusive = "error"`` of a matrix is no infrastructure."""
    found = verdict(speed(), Status.ERROR, slug="E-inconclusive")
    assert judged(None, state((speed(), found))).cells[0].finding == "inconclusive"


def test_a_pitfall_that_is_not_about_the_build_is_no_missing_verdict() -> None:
    found = verdict(speed(TG), Status.NOT_APPLICABLE, pitfall=Pitfall.NOT_APPLICABLE)
    assert judged(None, state((speed(), PASS), (speed(TG), found))).outcome is Outcome.GO


@pytest.mark.parametrize("word", [Equivalence.DIFFERENT, Equivalence.BROKEN])
def test_speeds_of_wrong_outputs_block_on_the_outputs(word: Equivalence) -> None:
    """Also where the policy names the speeds alone: they were not judged because of them."""
    slow = verdict(speed(), Status.NOT_JUDGED, equivalence=word, slug="E-wrong-output")
    decision = judged(blocking("throughput/*"), state((speed(), slow), (outputs(), compared(word))))
    assert (decision.outcome, decision.cells[0].finding) == (Outcome.BLOCKED, word.value)


def test_the_speed_of_one_arm_with_nan_in_its_outputs_is_a_finding() -> None:
    """Nothing was compared there, so there is no word on equivalence."""
    found = verdict(FLOOR, Status.NOT_JUDGED, slug="E-wrong-output")
    assert effects(judged(None, state((FLOOR, found)))) == {FLOOR.id: "block"}
    niced = verdict(FLOOR, Status.NOT_JUDGED, slug="E-niceness")
    assert effects(judged(None, state((FLOOR, niced)))) == {FLOOR.id: "undecided"}


def test_wrong_outputs_come_before_slow_ones() -> None:
    decision = judged(None, state((speed(), regressed(speed(), 0.2)), (outputs(), compared(Equivalence.BROKEN))))
    assert [each.finding for each in decision.cells] == ["broken", "regressed"]


def test_the_largest_loss_comes_first() -> None:
    decision = judged(None, state((speed(), regressed(speed(), 0.9)), (speed(TG), regressed(speed(TG), 0.7))))
    assert [each.cell.id for each in decision.cells] == [speed(TG).id, speed().id]


@pytest.mark.parametrize(
    ("case", "found", "finding"),
    [
        (FLOOR, verdict(FLOOR, Status.FAIL, estimate=replace(improved(speed()).estimate, unit="t/s")), "floor"),  # type: ignore[type-var]
        (MEMORY, verdict(MEMORY, Status.FAIL, estimate=replace(improved(speed()).estimate, unit="MiB")), "memory"),  # type: ignore[type-var]
        (speed(), verdict(speed(), Status.FAIL), "crash"),
        (speed(), verdict(speed(), Status.FAIL, throughput=Throughput.EQUIVALENT), "unmet"),
    ],
)
def test_what_failed_has_its_word(case: Any, found: Verdict, finding: str) -> None:
    assert judged(None, state((case, found))).cells[0].finding == finding


def test_floors_warn_unless_the_policy_says_more() -> None:
    """Contract: the gate's default for floors is to warn. An engine that crashed there missed more than a floor."""
    missed = verdict(FLOOR, Status.FAIL, estimate=replace(improved(speed()).estimate, unit="t/s"))  # type: ignore[type-var]
    assert effects(judged(None, state((FLOOR, missed)))) == {FLOOR.id: "warn"}
    assert effects(judged(blocking(floors="block"), state((FLOOR, missed)))) == {FLOOR.id: "block"}
    row = policy(cells=[{"cells": ["*"], "stage": "block", "floors": "block"}])
    assert effects(judged(row, state((FLOOR, missed)))) == {FLOOR.id: "block"}
    assert effects(judged(None, state((FLOOR, verdict(FLOOR, Status.FAIL))))) == {FLOOR.id: "block"}
    assert effects(judged(None, state((FLOOR, None)))) == {FLOOR.id: "undecided"}
    assert isinstance(FLOOR.check, FloorCheck)


def test_stages_limit_findings_and_the_last_row_counts() -> None:
    rules = policy(cells=[{"cells": ["*"], "stage": "block"}, {"cells": ["*/tg*"], "stage": "warn"}])
    decision = judged(rules, state((speed(), PASS), (speed(TG), regressed(speed(TG)))))
    assert (decision.outcome, effects(decision)[speed(TG).id]) == (Outcome.GO, "warn")
    assert decision.cells[0].staged.why == "cells[1] */tg*"


def test_cells_that_no_row_names_are_in_shadow() -> None:
    """New cells are measured and told of before they can block anybody."""
    decision = judged(blocking("*/tg*"), state((speed(), regressed(speed())), (speed(TG), verdict(speed(TG)))))
    assert (decision.outcome, effects(decision)[speed().id]) == (Outcome.GO, "shadow")


def test_a_gate_that_may_block_nothing_says_so() -> None:
    decision = judged(policy(), state((speed(), PASS)))
    assert headline(decision).endswith("none of them may block")


def test_what_is_not_required_may_be_missing() -> None:
    rules = policy(cells=[{"cells": ["*"], "stage": "block", "required": False}])
    decision = judged(rules, state((speed(), None), (speed(TG), regressed(speed(TG)))))
    assert effects(decision) == {speed().id: "none", speed(TG).id: "block"}


def test_nothing_measured_at_all_is_no_pass() -> None:
    """Neither an empty journal, nor one in which everything was impossible, whatever the stages."""
    for given in (state(), state((speed(), verdict(speed(), Status.UNSUPPORTED)))):
        decision = judged(policy(), given)
        assert (decision.outcome, decision.exit_code) == (Outcome.UNDECIDED, 3)
        assert "E-gate-nothing-measured" in slugs(decision)


def test_a_pattern_that_names_no_cell_is_bad_input_with_the_nearest_word() -> None:
    decision = judged(blocking("*/pp64@any", "*/tgg*", "!nothing"), state((speed(), PASS)))
    assert (decision.exit_code, slugs(decision)) == (2, ["E-gate-no-such-cell"])
    assert decision.problems[0].where == "gate.toml: cells[0].cells"
    (problem,) = judged(blocking("pp65"), state((speed(), PASS))).problems
    assert problem.hint == "did you mean 'pp64'?"


def test_a_regression_is_told_even_where_the_policy_has_a_fault() -> None:
    decision = judged(blocking("*", "tgg"), state((speed(), regressed(speed()))))
    assert (decision.exit_code, slugs(decision)) == (1, ["E-gate-no-such-cell"])


@pytest.mark.parametrize(("action", "outcome"), [("undecided", "undecided"), ("block", "blocked"), ("warn", "go")])
def test_fewer_cells_than_counted_on_are_absent(action: str, outcome: str) -> None:
    """A change that takes cases out of the matrix, or a shard that is missing, does not end green."""
    rules = policy(cells=[{"cells": ["throughput/*"], "stage": "block", "at_least": 2, "absent": action}])
    decision = judged(rules, state((speed(), PASS)))
    assert (decision.outcome.value, slugs(decision)) == (outcome, ["E-gate-cells-absent"])
    assert judged(rules, state((speed(), PASS)), state((speed(TG), verdict(speed(TG))), name="b")).problems == ()


def test_shards_of_one_night_are_one_decision() -> None:
    """A node that could not answer a case gives way to one that did."""
    one = state((speed(), verdict(speed(), Status.NOT_APPLICABLE)), (speed(TG), verdict(speed(TG))))
    other = state((speed(), PASS), name="b")
    assert (judged(None, one, other).outcome, judged(None, other, one).outcome) == (Outcome.GO, Outcome.GO)
    assert judged(None, one, other).problems == ()


def test_of_two_runs_of_a_case_the_worst_counts_and_is_told() -> None:
    decision = judged(None, state((speed(), regressed(speed()))), state((speed(), PASS), name="b"))
    assert (decision.outcome, slugs(decision)) == (Outcome.BLOCKED, ["E-gate-double"])
    assert str(decision.cells[0].cell.journal) == "a/journal.jsonl"
    assert speed().id in decision.problems[0].message


def test_one_id_with_other_flags_in_each_journal_is_undecided() -> None:
    plain = speed(arms=(arm("old"), arm("new")))
    hidden = replace(plain, arms=(arm("old"), replace(arm("new", t=2), shown=())))
    assert (plain.id, plain.key != hidden.key) == (hidden.id, True)
    decision = judged(None, state((plain, verdict(plain))), state((hidden, verdict(hidden)), name="b"))
    assert (decision.outcome, slugs(decision)) == (Outcome.UNDECIDED, ["E-gate-unlike-cells", "E-gate-unlike-arms"])


def test_journals_judged_by_other_policies_are_undecided_and_name_the_difference() -> None:
    other = state((speed(TG), verdict(speed(TG))), name="b", judging=Judging(alpha=0.05))
    decision = judged(None, state((speed(), PASS)), other)
    assert (decision.outcome, slugs(decision)) == (Outcome.UNDECIDED, ["E-gate-unlike-policies"])
    assert decision.problems[0].message.endswith("alpha 0.001 and 0.05")


def test_lost_lines_are_told_and_a_plan_that_was_cut_short_is_undecided() -> None:
    whole = state((speed(), PASS), problems=(Problem(7, "not an event"),))
    decision = judged(None, whole)
    assert (decision.outcome, slugs(decision)) == (Outcome.GO, ["E-gate-lost-line"])
    assert decision.problems[0].where == "a/journal.jsonl: line 7"
    assert whole.run is not None
    cut = replace(whole, run=replace(whole.run, cases=3))
    assert (judged(None, cut).outcome, slugs(judged(None, cut))[0]) == (Outcome.UNDECIDED, "E-gate-plan-cut")
    assert judged(None, replace(whole, run=None)).outcome is Outcome.UNDECIDED


def test_no_changed_path_asks_for_anything() -> None:
    """Not needed needs a record that says so; an empty journal is none."""
    unneeded = state(**chosen(left=[speed()]))
    decision = judged(None, unneeded)
    assert (decision.outcome, decision.exit_code) == (Outcome.NOT_NEEDED, 0)
    assert headline(decision) == "not needed: no cell is asked for by 1 changed path"
    assert judged(None, asked=asked()).outcome is Outcome.NOT_NEEDED
    assert judged(None, asked=asked("src/a.c")).outcome is Outcome.UNDECIDED
    assert judged(None, state(**chosen("src/a.c", left=[speed()]))).outcome is Outcome.UNDECIDED


def test_what_was_left_to_the_night_is_not_absent() -> None:
    rules = blocking("*/pp64@any", "*/tg16@any")
    given = chosen("src/a.c", digest=rules.digest, left=[speed(TG)])
    decision = judged(rules, state((speed(), PASS), **given), asked=asked("src/a.c"))
    assert (decision.outcome, [each.case for each in decision.left]) == (Outcome.GO, [speed(TG).id])
    assert headline(decision) == "go: 1 cell of 1 journal, nothing found, 1 left to the night"


def test_minutes_that_had_room_for_no_cell_that_may_block_gate_nothing() -> None:
    """What was measured is in shadow; what would have counted was left for want of time."""
    rules = blocking("*/tg16@any", "!*/pp64*")
    given = chosen("src/a.c", digest=rules.digest, left=[speed(TG)])
    assert judged(rules, state((speed(), PASS), **given)).outcome is Outcome.GO
    late = {case: replace(each, why=WhyLeft.TIME) for case, each in given["left"].items()}
    decision = judged(rules, state((speed(), PASS), **{**given, "left": late}))
    assert (decision.outcome, slugs(decision)) == (Outcome.UNDECIDED, ["E-gate-none-may-block"])


def test_contrasts_that_were_all_left_to_the_night_are_no_go_because_outputs_were_compared() -> None:
    """One kind of question says nothing of another; one contrast that had room is enough for its kind."""
    good = (outputs(), compared(Equivalence.BITWISE))
    decision = judged(None, state(good, **late(speed(), speed(TG))))
    assert (decision.outcome, slugs(decision)) == (Outcome.UNDECIDED, ["E-gate-none-may-block"])
    assert decision.problems[0].message == (
        "of the throughput contrasts that were asked for and may block, all 2 were left to the night"
    )
    assert judged(None, state(good, (speed(), PASS), **late(speed(TG)))).outcome is Outcome.GO
    assert judged(None, state(good, **late(FLOOR))).outcome is Outcome.GO  # floors warn
    shadow = policy(cells=[{"cells": ["equivalence/*"], "stage": "block"}])
    assert judged(shadow, state(good, **late(speed(), digest=shadow.digest))).outcome is Outcome.GO


def test_a_row_that_counts_on_cells_does_not_count_those_left_to_the_night_for_want_of_time() -> None:
    rules = policy(cells=[{"cells": ["throughput/*"], "stage": "block", "at_least": 2}])
    journal = state((speed(), PASS), **late(speed(TG), digest=rules.digest))
    decision = judged(rules, journal)
    assert (decision.outcome, slugs(decision)) == (Outcome.UNDECIDED, ["E-gate-cells-absent"])
    assert decision.problems[0].message == "1 of 2 cells are in these journals, 1 left to the night"
    unasked = chosen("src/a.c", digest=rules.digest, left=[speed(TG)])
    assert judged(rules, state((speed(), PASS), **unasked)).outcome is Outcome.GO


def test_cells_that_could_not_fail_decide_nothing() -> None:
    """A speed without a floor is shown, not approved; a contrast that reports informs."""
    plain, told = single(FloorCheck(None)), speed(expect="report")
    only = state((plain, verdict(plain)), (told, verdict(told, throughput=Throughput.REGRESSED, estimate=ratio(0.5))))
    decision = judged(None, only)
    assert (decision.outcome, slugs(decision)) == (Outcome.UNDECIDED, ["E-gate-none-can-fail"])
    assert judged(None, state((plain, verdict(plain)), (speed(), PASS))).outcome is Outcome.GO
    assert judged(policy(cells=[{"cells": ["*"], "stage": "warn"}]), only).outcome is Outcome.GO


def late(*cases: Case, digest: str = "") -> dict[str, Any]:
    """A merge gate's run whose minutes had no room for some cases."""
    given = chosen("src/a.c", digest=digest, left=cases)
    return {**given, "left": {case: replace(each, why=WhyLeft.TIME) for case, each in given["left"].items()}}


def test_a_choice_for_another_change_or_policy_is_not_believed() -> None:
    """Else the cells that this change asks for would be taken for left out on purpose."""
    rules = blocking("*")
    run = state((speed(), PASS), **chosen("docs/a.md", digest=rules.digest))
    assert slugs(judged(rules, run, asked=asked("src/a.c"))) == ["E-gate-other-changes"]
    assert judged(rules, run, asked=asked("src/a.c")).outcome is Outcome.UNDECIDED
    other = state((speed(), PASS), **chosen("docs/a.md", digest="0123456789abcdef"))
    assert slugs(judged(rules, other, asked=asked("docs/a.md"))) == ["E-gate-other-policy"]


def test_a_pattern_of_paths_that_names_no_cell_is_bad_input_of_a_merge_gate() -> None:
    """A typing error there would let every change through as not needed."""
    rules = blocking("*", paths=[{"paths": ["src/**"], "cells": ["thruput/*"]}])
    run = state(**chosen(digest=rules.digest, left=[speed()]))
    assert (judged(rules, run).exit_code, slugs(judged(rules, run))) == (2, ["E-gate-no-such-cell"])


def test_expectations_that_only_inform_do_not_block() -> None:
    """A contrast that reports passes whatever it finds."""
    case = speed(PP, expect="report")
    found = verdict(case, throughput=Throughput.REGRESSED, estimate=regressed(case).estimate)
    assert judged(None, state((case, found), (outputs(), compared(Equivalence.BITWISE)))).outcome is Outcome.GO
