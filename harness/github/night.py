"""Several journals as one night: each case once, the worse of two verdicts on it, worst first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.domain.errors import HarnessError
from harness.domain.verdict import Verdict
from harness.reporting.joining import lost_states
from harness.reporting.outcomes import badness
from harness.reporting.projections import notes
from harness.reporting.replay import read_begun
from harness.reporting.state import JournalState
from harness.reporting.summary import status_rank


@dataclass(frozen=True, slots=True)
class Found:
    """A verdict, and the matrix that asked for it."""

    matrix: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Night:
    """What the journals tell together.

    Attributes:
        found: Worst first.
        notes: What of the journals could not be used, with the journal's path; untrusted text.
        problems: Journals that could not be read at all: the others are still told of.
    """

    found: tuple[Found, ...]
    notes: tuple[str, ...] = ()
    problems: tuple[HarnessError, ...] = field(default=())

    @property
    def verdicts(self) -> list[Verdict]:
        """Of all matrices."""
        return [each.verdict for each in self.found]


def read_night(paths: Sequence[Path]) -> Night:
    """Read journals, or the folders that hold them. What is wrong with one of them is no reason to lose the others."""
    chosen: dict[tuple[str, str], Verdict] = {}
    told: list[str] = []
    states: list[JournalState] = []
    problems: list[HarnessError] = []
    for path in paths:
        try:
            state = read_begun(path)
        except HarnessError as error:
            problems.append(error)
            continue
        states.append(state)
        told += [f"{path}: {note}" for note in notes(state)]
    for lost in lost_states(states):
        states.append(lost)
        told += lost.joined or ()
    for state in states:
        for verdict in state.final_verdicts():
            known = chosen.get((state.name, verdict.case))
            chosen[state.name, verdict.case] = verdict if known is None else _counts(known, verdict)
    found = [Found(matrix, verdict) for (matrix, _), verdict in chosen.items()]
    return Night(tuple(sorted(found, key=_worst_first)), tuple(told), tuple(problems))


def _counts(one: Verdict, other: Verdict) -> Verdict:
    """The worse of two; that a node is not of the class says nothing about one that is."""
    return max(one, other, key=lambda each: badness(each.status))


def _worst_first(found: Found) -> tuple[int, float, str, str]:
    """By status, then by how much speed is lost."""
    verdict = found.verdict
    ratio = verdict.estimate.value if verdict.estimate and verdict.estimate.unit == "ratio" else 1.0
    return (status_rank(verdict.status), ratio, found.matrix, verdict.case)
