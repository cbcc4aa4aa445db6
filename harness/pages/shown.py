"""The cases of one or several journals in the order in which a page shows them: worst first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.domain.arm import Arm
from harness.domain.case import Case
from harness.domain.job import Job
from harness.domain.measurement import ProcessRun
from harness.domain.policy import Policy
from harness.domain.verdict import Estimate, Verdict
from harness.domain.words import Status
from harness.reporting.state import JobTry, JournalState
from harness.reporting.summary import status_rank


@dataclass(frozen=True, slots=True)
class Shown:
    """One case with all that its journal has on it.

    Attributes:
        journal: Index of its journal.
        case: The case.
        verdict: How it ended.
        job: Id of its job; empty where planning decided it.
        last: The last try of that job; ``None`` if it was never submitted.
        policy: What it was judged by.
    """

    journal: int
    case: Case
    verdict: Verdict
    job: str
    last: JobTry | None
    policy: Policy

    @property
    def declared(self) -> Job | None:
        """Its job, where the journal has it."""
        return self.last.job if self.last else None

    @property
    def runs(self) -> tuple[ProcessRun, ...]:
        """The processes of its job's last try."""
        return self.last.runs if self.last else ()

    @property
    def places(self) -> tuple[int, ...]:
        """Which arm of the job each arm of the case is; -1 for one that the job does not have."""
        present = [arm.identity for arm in self.declared.arms] if self.declared else []
        return tuple(_place(arm, present) for arm in self.case.arms)

    def runs_of(self, place: int) -> tuple[ProcessRun, ...]:
        """The processes of an arm of the job, in order."""
        return tuple(run for run in self.runs if run.step.arm == place)


def shown_cases(states: Sequence[JournalState]) -> list[Shown]:
    """All cases of the journals, worst first: by status, then the largest loss of speed, then by id."""
    found = [
        Shown(index, state.planned[verdict.case].case, verdict, job, state.jobs.get(job), state.policy)
        for index, state in enumerate(states)
        for verdict in state.final_verdicts()
        for job in (state.planned[verdict.case].job,)
    ]
    return sorted(found, key=_badness)


def ratio_of(verdict: Verdict) -> Estimate | None:
    """The ratio of speeds that a verdict is about, of an attribution the whole change; only where it can be drawn."""
    estimate = verdict.effects[-1].ratio if verdict.effects else verdict.estimate
    if estimate is None or estimate.unit != "ratio":
        return None
    figures = (estimate.value, estimate.low, estimate.high)
    return estimate if all(math.isfinite(each) and each > 0 for each in figures) else None


def _badness(shown: Shown) -> tuple[int, float, str, int]:
    """A failure or an error without a ratio is no matter of degree: wrong outputs, a crash."""
    status, ratio = shown.verdict.status, ratio_of(shown.verdict)
    without = 0.0 if status in (Status.FAIL, Status.ERROR) else 1.0
    return (status_rank(status), ratio.value if ratio else without, shown.verdict.case, shown.journal)


def _place(arm: Arm, present: Sequence[str]) -> int:
    return present.index(arm.identity) if arm.identity in present else -1
