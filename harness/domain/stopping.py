"""The stopping rule as execution sees it: a protocol here, implemented in judging, joined by the entry points."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from harness.domain.job import Job
from harness.domain.measurement import ProcessRun
from harness.domain.node import NodeFacts


class JobEnd(StrEnum):
    """Why a job that ended well began no more processes."""

    DECIDED = "decided"
    SCHEDULE = "schedule"
    BUDGET = "budget"
    OUTPUTS = "outputs"
    """The outputs are wrong: nobody asks for the speed of that."""


class AfterOutputs(StrEnum):
    """What follows on answers to the prompts."""

    GO_ON = "go on"
    REPEAT = "repeat"
    """All arms answer once more in fresh processes."""
    STOP = "stop"
    """No speed is measured."""


class StoppingRule(Protocol):
    """Decides before each quad (with one arm or more than two: each block) whether more of the schedule is needed."""

    def after_outputs(self, job: Job, runs: Sequence[ProcessRun], node: NodeFacts) -> AfterOutputs:
        """What follows once all arms have answered the prompts; asked again after a repetition."""
        ...

    def undecided(self, job: Job, runs: Sequence[ProcessRun]) -> tuple[str, ...]:
        """Names of the workloads that need more quads; empty ends the job."""
        ...


class RunWholeSchedule:
    """The rule that never stops early: every block of the design is run."""

    def after_outputs(self, job: Job, runs: Sequence[ProcessRun], node: NodeFacts) -> AfterOutputs:
        """Whatever they are, it goes on."""
        del job, runs, node
        return AfterOutputs.GO_ON

    def undecided(self, job: Job, runs: Sequence[ProcessRun]) -> tuple[str, ...]:
        """All workloads, always."""
        del runs
        return tuple(workload.name for workload in job.workloads)
