"""A night: what its reds share, and its errors likewise."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from harness.domain.words import Status
from harness.explaining.factors import Value, factors_of
from harness.explaining.grouping import Grouped, group_reds
from harness.judging.wording import node_text
from harness.reporting.last_words import last_words
from harness.reporting.outcomes import counts_line
from harness.reporting.state import JournalState


@dataclass(frozen=True, slots=True)
class Night:
    """A journal's reds, sorted.

    Attributes:
        matrix: The matrix's name.
        counts: How its cases ended.
        reds: Cases that failed, in plan order.
        failed: What they share and the passes do not.
        errors: Cases that erred, with their slug.
        erred: What these share and the passes do not.
        greens: Cases that passed; the undecided and the impossible are neither red nor green.
        reasons: First line of each red and error, by case.
        slugs: Their slugs, by case; those of reds can be empty.
        logs: How the logs of those that have one end, by case.
        undecided: Cases that are inconclusive, in plan order.
    """

    matrix: str
    counts: str
    reds: tuple[str, ...]
    failed: Grouped
    errors: tuple[tuple[str, int], ...]
    erred: Grouped
    greens: int
    reasons: dict[str, str]
    slugs: dict[str, str]
    logs: dict[str, str]
    undecided: tuple[str, ...]


def explain_night(state: JournalState) -> Night:
    """Sort a journal's reds.

    Args:
        state: The journal.
    """
    verdicts = state.final_verdicts()
    found: dict[Status, dict[str, dict[str, Value]]] = {}
    for verdict in verdicts:
        if verdict.status in (Status.FAIL, Status.ERROR, Status.PASS):
            factors = _factors(state, verdict.case)
            found.setdefault(verdict.status, {})[verdict.case] = factors
    reds, errors, greens = (found.get(status, {}) for status in (Status.FAIL, Status.ERROR, Status.PASS))
    slugs = Counter(verdict.slug or "error" for verdict in verdicts if verdict.status is Status.ERROR)
    return Night(
        matrix=state.name,
        counts=counts_line(verdicts),
        reds=tuple(reds),
        failed=group_reds(reds, greens),
        errors=tuple(slugs.most_common()),
        erred=group_reds(errors, greens),
        greens=len(greens),
        reasons={verdict.case: verdict.reason for verdict in verdicts if verdict.case in reds | errors},
        slugs={verdict.case: verdict.slug for verdict in verdicts if verdict.case in reds | errors},
        logs={verdict.case: said for verdict in verdicts if (said := last_words(verdict))},
        undecided=tuple(verdict.case for verdict in verdicts if verdict.status is Status.INCONCLUSIVE),
    )


def _factors(state: JournalState, case_id: str) -> dict[str, Value]:
    planned = state.planned[case_id]
    last = state.jobs.get(planned.job)
    node = last.node if last else None
    return factors_of(planned.case, node, node_text(node))
