"""What is to be said of a cell by its verdict alone."""

from __future__ import annotations

from harness.domain.case import FloorCheck, MemoryCheck
from harness.domain.verdict import Verdict
from harness.domain.words import Equivalence, Pitfall, Status, Throughput
from harness.gating.cells import Cell
from harness.gating.words import Finding

_WRONG = {Equivalence.DIFFERENT: Finding.DIFFERENT, Equivalence.BROKEN: Finding.BROKEN}
_OF_CHECK: dict[type, Finding] = {FloorCheck: Finding.FLOOR, MemoryCheck: Finding.MEMORY}
_WRONG_OUTPUT = "E-wrong-output"
_OTHER_ERRORS = {"E-never-finished": Finding.ABSENT, "E-inconclusive": Finding.INCONCLUSIVE}
"""Errors that are something else: a case that its run did not come to, and an undecided one by the matrix's policy."""


def finding_of(cell: Cell) -> Finding | None:
    """The finding; ``None``: the check is met, or the question does not arise."""
    verdict = cell.verdict
    if verdict.status is Status.PASS or verdict.pitfall is Pitfall.NOT_APPLICABLE:
        return None
    if verdict.status is Status.FAIL:
        return _failed(cell)
    if verdict.status is Status.NOT_JUDGED:
        return _unjudged(verdict)
    return _OTHER_ERRORS.get(verdict.slug, Finding(verdict.status.value))


def _failed(cell: Cell) -> Finding:
    verdict = cell.verdict
    if verdict.equivalence in _WRONG:
        return _WRONG[verdict.equivalence]
    if verdict.throughput is Throughput.REGRESSED:
        return Finding.REGRESSED
    if verdict.throughput is None and verdict.estimate is None:
        return Finding.CRASH
    return _OF_CHECK.get(type(cell.case.check), Finding.UNMET)


def _unjudged(verdict: Verdict) -> Finding:
    """The speed of wrong output is a finding about the outputs."""
    if verdict.equivalence in _WRONG:
        return _WRONG[verdict.equivalence]
    return Finding.BROKEN if verdict.slug == _WRONG_OUTPUT else Finding.NOT_JUDGED
