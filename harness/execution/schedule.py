"""Go through a job's schedule: burn-ins, then quad after quad, until the rule, the budget or the schedule ends it.

Answers to prompts that are found wrong are asked for again in fresh processes of all arms, before anything is scored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from itertools import groupby

from harness.domain.job import Job
from harness.domain.measurement import ProcessRun, Step
from harness.domain.node import NodeFacts
from harness.domain.stopping import AfterOutputs, JobEnd, StoppingRule
from harness.domain.workload import Timed
from harness.execution.budget import Budget
from harness.execution.engine_process import EngineRunner
from harness.execution.events import JobEvent, ProcessDone, Progress


class Schedule:
    """A job on its way through its schedule.

    What is asked of a quad (with one arm or more than two: of a block) is asked of all its processes: nothing drops out
    and nothing ends inside it. An arm that failed is not started again: a contrast is lost with it, but the other arm's
    own cases are not.

    Args:
        job: The job.
        attempt: Number of this try.
        runner: Runs its processes.
        node: Where.
        should_stop: Asked before each process; true ends the schedule.
    """

    def __init__(
        self, job: Job, attempt: int, runner: EngineRunner, node: NodeFacts, should_stop: Callable[[], bool]
    ) -> None:
        self._job = job
        self._attempt = attempt
        self._runner = runner
        self._node = node
        self._should_stop = should_stop
        self._budget = Budget(job.design.minutes)
        self._runs: list[ProcessRun] = []
        self._failed: set[int] = set()
        self._repeated = False
        self.end: JobEnd | None = None
        """Why it ended; ``None`` while it has not, and where it was stopped or every arm failed."""

    def run(self, rule: StoppingRule) -> Iterator[JobEvent]:
        """Start process after process.

        Args:
            rule: Says what follows on the answers to prompts, and which workloads need more.
        """
        for scored, steps in _units(self._job):
            wanted = self._undecided(rule) if scored else self._job.workloads
            self.end = self._reason_to_end(wanted) if scored else None
            if self.end is not None:
                return
            began, before = time.monotonic(), len(self._runs)
            for step in steps:
                if self._should_stop() or len(self._failed) == len(self._job.arms):
                    return
                if step.arm not in self._failed:
                    yield from self._process(step, wanted)
            if scored:
                self._budget.measured(time.monotonic() - began, self._runs[before:])
            elif (yield from self._after_outputs(rule)) is AfterOutputs.STOP:
                self.end = JobEnd.OUTPUTS
                return
        self.end = JobEnd.SCHEDULE

    def _after_outputs(self, rule: StoppingRule) -> Generator[JobEvent, None, AfterOutputs]:
        """What follows on the answers; a repetition is made here. It is never left out for want of time."""
        if self._job.outputs is None:
            return AfterOutputs.GO_ON
        following = rule.after_outputs(self._job, self._runs, self._node)
        if following is not AfterOutputs.REPEAT:
            return following
        self._repeated = True
        for arm in range(len(self._job.arms)):
            if self._should_stop() or self._failed:
                return AfterOutputs.GO_ON
            yield from self._process(self._job.outputs_step(arm), ())
        return rule.after_outputs(self._job, self._runs, self._node)

    def _process(self, step: Step, wanted: tuple[Timed, ...]) -> Iterator[JobEvent]:
        for doing in self._runner.ready(step.arm):
            yield Progress(self._job.id, self._attempt, doing, preparing=True)
        yield self._progress(self._where(step))
        done = self._runner.run(step, wanted)
        self._runs.append(done)
        if done.failure is not None and not step.apart:
            self._failed.add(step.arm)
        yield ProcessDone(self._job.id, self._attempt, done)

    def _reason_to_end(self, wanted: tuple[Timed, ...]) -> JobEnd | None:
        if not wanted:
            return JobEnd.DECIDED
        in_time = self._budget.allows_another({workload.name for workload in wanted})
        return None if in_time else JobEnd.BUDGET

    def _undecided(self, rule: StoppingRule) -> tuple[Timed, ...]:
        names = rule.undecided(self._job, self._runs)
        return tuple(workload for workload in self._job.workloads if workload.name in names)

    def _where(self, step: Step) -> str:
        text = f"{self._runner.label(step.arm)}, process {len(self._runs) + 1}"
        minutes = self._job.design.minutes
        if minutes is None:
            return f"{text} of {self._job.process_starts + len(self._job.arms) * self._repeated}"
        return f"{text} ({self._budget.spent_minutes:.1f} of {minutes:g} min)"

    def _progress(self, message: str) -> Progress:
        return Progress(self._job.id, self._attempt, message)


def _units(job: Job) -> Iterator[tuple[bool, Iterator[Step]]]:
    """The steps that belong together: all burn-ins, then quad after quad, or block after block."""
    units = groupby(job.schedule(), lambda step: step.block // job.blocks_at_once)
    return ((unit >= 0, steps) for unit, steps in units)
