"""What becomes of pitfalls that are not about what a matrix runs."""

from __future__ import annotations

from harness.domain.words import Kind, Pitfall, Status
from harness.planning.load import find_matrix, load_matrix
from harness.planning.planner import make_plan
from harness.running.matrix_run import _decided


def test_a_pitfall_outside_its_conditions_is_not_applicable_in_both_words() -> None:
    """Its status and its pitfall word, with the reason; other cases that can't run have no such word."""
    plan = make_plan(load_matrix(find_matrix("pitfalls/rtr-hybrid")), ["pitfall/*"])
    verdicts = [_decided(case) for case in plan.cases if case.case.kind is Kind.PITFALL]
    assert {(verdict.status, verdict.pitfall) for verdict in verdicts} == {
        (Status.NOT_APPLICABLE, Pitfall.NOT_APPLICABLE)
    }
    assert all(verdict.reason.startswith("not_applicable: rtr-hybrid: it is about ") for verdict in verdicts)
