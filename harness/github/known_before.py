"""What the history knows of a night's cells: since when they are worse, and what fell against the nights before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from harness.domain.verdict import Verdict
from harness.domain.words import Status
from harness.github.night import Found, Night
from harness.history.series import Evidence, Regression


def with_history(night: Night, regressions: Iterable[Regression]) -> Night:
    """The night with what its cells' series say.

    A cell that is fine beside its baseline, or has none, and whose level fell against the nights before, becomes a
    finding. One that nobody could decide tonight stays undecided.

    Args:
        night: What the journals tell.
        regressions: The history's, of the same night.
    """
    by_cell: dict[str, list[Regression]] = defaultdict(list)
    for each in regressions:
        by_cell[each.cell].append(each)
    return replace(night, found=tuple(_known(each, by_cell[each.verdict.case]) for each in night.found))


def _known(found: Found, regressions: Sequence[Regression]) -> Found:
    verdict = found.verdict
    fallen = [each for each in regressions if each.evidence is Evidence.CHANGE]
    if verdict.status is Status.FAIL and regressions:
        return replace(found, verdict=replace(verdict, detail=_told(regressions, verdict.detail)))
    if verdict.status is Status.PASS and fallen:
        return replace(found, verdict=_finding(verdict, fallen))
    return found


def _finding(verdict: Verdict, fallen: Sequence[Regression]) -> Verdict:
    return replace(
        verdict,
        status=Status.FAIL,
        reason=f"worse than the nights before: {fallen[0].reason}",
        throughput=None,
        equivalence=None,
        estimate=None,
        detail=_told(fallen, verdict.detail),
    )


def _told(regressions: Sequence[Regression], detail: str) -> str:
    lines = [
        f"{each.evidence}: bad since {each.since}, first told on {each.first_seen}: {each.reason}"
        + "".join(f"\n    {arm.arm} {arm.words}" for arm in each.builds)
        for each in regressions
    ]
    return "\n".join([*lines, *(["", detail] if detail else [])])
