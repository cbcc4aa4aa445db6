"""Drive jobs through an executor: a window of submissions, deadlines, retries of infrastructure, one end for each job.

Nothing here knows how an executor works, and nothing is judged. The driver's watchdog gives a job up when its deadline
has passed although its executor says nothing: a frozen host never answers.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from harness.domain.failure import Failure, FailureKind
from harness.domain.job import Job
from harness.execution.events import Ended, Finished, JobEvent, Started
from harness.execution.executor import Executor
from harness.execution.executors import MakeExecutor

_POLL_S = 0.2
_WINDOW_PER_SLOT = 2
_PREPARE_ALLOWANCE_S = 3600.0 + 1800.0
"""For the wait for the host, and for making and reading models."""
_PROCESS_ALLOWANCE_S = 10.0
_MAX_TRIES = 3


@dataclass(slots=True)
class _Try:
    """One submitted try of a job; ``deadline`` is set by its start event."""

    job: Job
    attempt: int
    deadline: float | None = None


class Dispatcher:
    """Runs jobs to their ends, each exactly once for the caller.

    Args:
        make_executor: Makes what they run on. Called for the first job; ``close`` closes it.
        clock: Seconds, monotonic; replaced in tests.
    """

    def __init__(self, make_executor: MakeExecutor, clock: Callable[[], float] = time.monotonic) -> None:
        self._make_executor = make_executor
        self._executor: Executor | None = None
        self._clock = clock
        self._waiting: deque[_Try] = deque()
        self._submitted: dict[str, _Try] = {}

    def add(self, jobs: Iterable[Job]) -> None:
        """Queue jobs in order."""
        self._waiting.extend(_Try(job, 1) for job in jobs)

    @property
    def unfinished(self) -> int:
        """Jobs queued or running."""
        return len(self._waiting) + len(self._submitted)

    def events(self) -> Iterator[JobEvent | None]:
        """Run until every job has ended.

        Yields:
            Events of the tries, and ``Ended`` once for each job after its last try.
            ``None`` when nothing happened for a fifth of a second, so that the caller can draw and look for Ctrl-C.
        """
        while self.unfinished:
            executor = self._running_executor()
            self._fill_window(executor)
            events = executor.poll(_POLL_S)
            for event in events:
                yield from self._take(event)
            yield from self._overdue(executor)
            if not events:
                yield None

    def cancel(self) -> None:
        """End the processes of running jobs; their ends still arrive. Jobs that were not submitted are left."""
        if self._executor is not None:
            for job in self._submitted:
                self._executor.cancel(job)

    def close(self) -> None:
        """Drop everything and end the executor."""
        self._waiting.clear()
        self._submitted.clear()
        if self._executor is not None:
            self._executor.close()
            self._executor = None

    def _running_executor(self) -> Executor:
        if self._executor is None:
            executor = self._make_executor()
            executor.start()
            self._executor = executor
        return self._executor

    def _fill_window(self, executor: Executor) -> None:
        while self._waiting and len(self._submitted) < _WINDOW_PER_SLOT * executor.slots:
            entry = self._waiting.popleft()
            self._submitted[entry.job.id] = entry
            executor.submit(entry.job, entry.attempt)

    def _take(self, event: JobEvent) -> Iterator[JobEvent]:
        entry = self._submitted.get(event.job)
        if entry is None or event.attempt != entry.attempt:
            return  # an echo of a try that was given up
        if isinstance(event, Started):
            entry.deadline = self._clock() + deadline_s(entry.job)
        if isinstance(event, Finished):
            del self._submitted[event.job]
            yield event
            yield from self._retry_or_end(entry, event)
        else:
            yield event

    def _retry_or_end(self, entry: _Try, event: Finished) -> Iterator[JobEvent]:
        if event.failure is not None and event.failure.may_be_retried and entry.attempt < _MAX_TRIES:
            self._waiting.append(_Try(entry.job, entry.attempt + 1))
        else:
            yield Ended(event.job, event.attempt)

    def _overdue(self, executor: Executor) -> Iterator[JobEvent]:
        now = self._clock()
        for entry in [entry for entry in self._submitted.values() if entry.deadline and now > entry.deadline]:
            executor.cancel(entry.job.id)
            message = f"no end after {deadline_s(entry.job):.0f} s although every process had a deadline: given up"
            failure = Failure(FailureKind.NODE_LOST, message, "E-job-overdue")
            yield from self._take(Finished(entry.job.id, entry.attempt, failure))


def deadline_s(job: Job) -> float:
    """Seconds after its start when a job must be over: every process at its limit, and time to make models.

    Of a budget in minutes: all of it, the burn-ins before its first quad, and one quad that was begun within it.
    """
    process_s = job.design.timeout_s + _PROCESS_ALLOWANCE_S
    whole_s = job.process_starts * process_s
    if job.design.minutes is not None:
        beyond = len(job.arms) * (max(1, job.design.burn_in) + job.blocks_at_once)
        whole_s = min(whole_s, job.design.minutes * 60 + beyond * process_s)
    return whole_s + _PREPARE_ALLOWANCE_S + sum(arm.build.recipe.longest_s for arm in job.arms if arm.build.recipe)
