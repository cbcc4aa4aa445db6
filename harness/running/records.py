"""Keep the journal and the job records while events come in: the journal line first, memory second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.domain.failure import Failure
from harness.domain.job import Job
from harness.domain.measurement import ProcessRun
from harness.domain.node import NodeFacts
from harness.domain.stopping import JobEnd
from harness.execution.events import Finished, JobEvent, NodeSetAside, ProcessDone, Progress, Started
from harness.judging.record import JobRecord
from harness.reporting.journal import JournalWriter


@dataclass(slots=True)
class _Open:
    """A job's last try so far."""

    job: Job
    attempt: int = 0
    node: NodeFacts | None = None
    runs: list[ProcessRun] = field(default_factory=list)
    failure: Failure | None = None
    end: JobEnd | None = None


class Records:
    """Turns the events of jobs into journal lines and records to judge.

    Args:
        journal: Where every event is written before anything else is made of it.
    """

    def __init__(self, journal: JournalWriter) -> None:
        self._journal = journal
        self._open: dict[str, _Open] = {}

    def add(self, jobs: Sequence[Job]) -> None:
        """Expect events of these jobs."""
        self._open.update({job.id: _Open(job) for job in jobs})

    def take(self, event: JobEvent) -> None:
        """Write an event and remember it. A new try starts its job's record anew; the journal keeps both."""
        record = self._open[event.job]
        if isinstance(event, Started):
            self._journal.job_started(event.job, event.attempt, event.node, event.host)
            record.attempt, record.node, record.runs = event.attempt, event.node, []
            record.failure = record.end = None
        elif isinstance(event, ProcessDone):
            self._journal.process(event.job, event.attempt, event.run)
            record.runs.append(event.run)
        elif isinstance(event, Progress):
            if event.waiting:
                self._journal.job_waits(event.job, event.attempt, event.message)
        elif isinstance(event, NodeSetAside):
            self._journal.node_set_aside(event.job, event.attempt, event.host, event.why)
        elif isinstance(event, Finished):
            self._journal.job_finished(event.job, event.attempt, event.failure, event.end)
            record.attempt, record.failure, record.end = event.attempt, event.failure, event.end

    def close(self, job: str) -> JobRecord:
        """The record of a job that has ended."""
        record = self._open.pop(job)
        return JobRecord(
            job=record.job,
            runs=tuple(record.runs),
            failure=record.failure,
            node=record.node,
            tries=record.attempt,
            end=record.end,
        )
