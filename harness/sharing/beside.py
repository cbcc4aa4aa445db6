"""Two machines' results of the same cases beside each other: facts of both, and only what can be said of both.

A contrast is a ratio of two speeds of one machine, so it can stand beside another machine's. Whether the same is found
there is told by the words and by whether the intervals overlap; no ratio of the two ratios is made, and absolute speeds
of two machines are shown and not judged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from harness.domain.errors import BadInput
from harness.domain.verdict import Estimate, Verdict
from harness.domain.words import Status
from harness.domain.workload import OutputProfile, ProfileWorkload, Workload
from harness.explaining.arm_states import content_rows
from harness.judging.evidence import Evidence
from harness.judging.record import JobRecord
from harness.judging.wording import node_text
from harness.reporting.state import JournalState

_DECIDED = (Status.PASS, Status.FAIL)


class Agreement(StrEnum):
    """What can be said of a case on both machines."""

    SAME = "same finding"
    OTHER = "another finding"
    OPEN = "undecided"
    """At least one of them decides nothing."""
    SHOWN = "only shown"
    """A speed without a partner on its own machine."""
    ABSENT = "not in both"


@dataclass(frozen=True, slots=True)
class Beside:
    """One case on both machines.

    Attributes:
        case: Its id.
        work: ``pp``, ``tg``, ``pp+tg``, a profile's quantity, ``outputs`` or ``memory``.
        original: The verdict there; ``None`` where it is not in the journal.
        mine: The verdict here.
        agreement: What can be said of both.
        overlap: Whether the intervals of a contrast overlap; ``None`` where there are not two.
        content: Whether the same bytes ran, and what differs by name.
    """

    case: str
    work: str
    original: Verdict | None
    mine: Verdict | None
    agreement: Agreement
    overlap: bool | None
    content: str


@dataclass(frozen=True, slots=True)
class Machines:
    """Both sides.

    Attributes:
        original: The machine there, in words.
        mine: The machine here.
        same: Whether they are the same by all that speeds depend on.
        rows: Cases, those of prompt processing first, then those of token generation, never mixed.
    """

    original: str
    mine: str
    same: bool
    rows: tuple[Beside, ...]


def side_by_side(original: JournalState, mine: JournalState) -> Machines:
    """Set two journals beside each other.

    Raises:
        BadInput: ``E-nothing-in-common``: they have no case in common.
    """
    both = [case for case in original.planned if case in mine.planned]
    if not both:
        hint = "a replay of the same bundle has the same case ids"
        raise BadInput("E-nothing-in-common", "the two have no case in common", hint=hint, where=f"{mine.path}")
    theirs, ours = ({verdict.case: verdict for verdict in state.final_verdicts()} for state in (original, mine))
    cases = [*both, *(case for case in mine.planned if case not in original.planned)]
    rows = [_row(original, mine, case, theirs.get(case), ours.get(case)) for case in cases]
    nodes = [{last.node for last in state.jobs.values() if last.node} for state in (original, mine)]
    prints = [{node.fingerprint for node in found} for found in nodes]
    return Machines(
        original=_machines(original),
        mine=_machines(mine),
        same=bool(prints[0]) and prints[0] == prints[1],
        rows=tuple(sorted(rows, key=lambda row: _ORDER.get(row.work, len(_ORDER)))),
    )


_ORDER = {"pp": 0, "tg": 1, "pp+tg": 2}


def _machines(state: JournalState) -> str:
    return ", ".join(dict.fromkeys(node_text(last.node) for last in state.jobs.values() if last.node)) or "nowhere"


def _row(original: JournalState, mine: JournalState, case: str, theirs: Verdict | None, ours: Verdict | None) -> Beside:
    known = (original if case in original.planned else mine).planned[case].case
    return Beside(
        case=case,
        work=_work(known.workload),
        original=theirs,
        mine=ours,
        agreement=_agreement(theirs, ours),
        overlap=_overlap(theirs, ours),
        content=_content(original, mine, case) if theirs and ours else "",
    )


def _work(workload: object) -> str:
    match workload:
        case Workload():
            return "+".join([*(["pp"] if workload.n_prompt else []), *(["tg"] if workload.n_gen else [])])
        case ProfileWorkload():
            return str(workload.metric)
        case OutputProfile():
            return "outputs"
        case _:
            return "memory"


def _agreement(theirs: Verdict | None, ours: Verdict | None) -> Agreement:
    if theirs is None or ours is None:
        return Agreement.ABSENT
    words = [verdict.throughput or verdict.equivalence for verdict in (theirs, ours)]
    if theirs.status not in _DECIDED or ours.status not in _DECIDED:
        return Agreement.OPEN
    if not any(words):
        return Agreement.SHOWN
    return Agreement.SAME if words[0] == words[1] else Agreement.OTHER


def _overlap(theirs: Verdict | None, ours: Verdict | None) -> bool | None:
    ratios = [_ratio(verdict) for verdict in (theirs, ours) if verdict]
    if len(ratios) < len(("theirs", "ours")) or ratios[0] is None or ratios[1] is None:
        return None
    return ratios[0].low <= ratios[1].high and ratios[1].low <= ratios[0].high


def _ratio(verdict: Verdict) -> Estimate | None:
    estimate = verdict.estimate
    return estimate if estimate and estimate.unit == "ratio" else None


def _content(original: JournalState, mine: JournalState, case: str) -> str:
    """Whether the same bytes ran; of other ones what they say of themselves and differ in."""
    sides = [_told(state, case) for state in (original, mine)]
    if not all(sides):
        return "not known"
    labels = [arm.label for arm in original.planned[case].case.arms]
    told = []
    for number, label in enumerate(labels):
        before, after = ({name: values[number] for name, values in side.items()} for side in sides)
        if before.get("content key") and before.get("content key") == after.get("content key"):
            continue
        names = [name for name in before if name in after and before[name] != after[name] and name != "content key"]
        shown = _of_interest(names)
        changes = ", ".join(f"{name} {before[name]} there, {after[name]} here" for name in shown)
        told.append(f"{label}: other bytes" + (f" ({changes})" if changes else ""))
    return "; ".join(told) or "the same bytes"


def _of_interest(names: Iterable[str]) -> list[str]:
    """What tells builds and models apart, not machines."""
    return [
        name
        for name in names
        if name in {"build_commit", "build_number", "package_version", "model_sha256", "model_type", "backends"}
        or name.startswith("library ")
    ]


def _told(state: JournalState, case: str) -> dict[str, tuple[str, ...]]:
    planned = state.planned[case]
    last = state.jobs.get(planned.job)
    if last is None or last.job is None or not last.runs:
        return {}
    record = JobRecord(last.job, last.runs, last.failure, last.node)
    runs = Evidence.of(planned.case, record, state.policy).runs
    return {row.name: row.values for row in content_rows(runs)}
