"""The stopping rule as execution sees it: a protocol here, implemented in judging, joined by the entry points."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from harness.domain.job import Job
from harness.domain.measurement import ProcessRun


class JobEnd(StrEnum):
    """Why a job that ended well began no more processes."""

    DECIDED = "decided"
    SCHEDULE = "schedule"
    BUDGET = "budget"


class StoppingRule(Protocol):
    """Decides before each quad (with one arm or more than two: each block) whether more of the schedule is needed."""

    def undecided(self, job: Job, runs: Sequence[ProcessRun]) -> tuple[str, ...]:
        """Names of the workloads that need more quads; empty ends the job."""
        ...


class RunWholeSchedule:
    """The rule that never stops early: every block of the design is run."""

    def undecided(self, job: Job, runs: Sequence[ProcessRun]) -> tuple[str, ...]:
        """All workloads, always."""
        del runs
        return tuple(workload.name for workload in job.workloads)
