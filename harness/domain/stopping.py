"""The stopping rule as execution sees it: a protocol here, implemented in judging, joined by the entry points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from harness.domain.job import Job
from harness.domain.measurement import ProcessRun


class StoppingRule(Protocol):
    """Decides after each whole block whether more of the schedule is needed."""

    def undecided(self, job: Job, runs: Sequence[ProcessRun]) -> tuple[str, ...]:
        """Names of the workloads that need more blocks; empty ends the job."""
        ...


class RunWholeSchedule:
    """The rule that never stops early: every block of the design is run."""

    def undecided(self, job: Job, runs: Sequence[ProcessRun]) -> tuple[str, ...]:
        """All workloads, always."""
        del runs
        return tuple(workload.name for workload in job.workloads)
