"""The executor protocol: where jobs run. One contract suite holds every implementation to it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from harness.domain.job import Job
from harness.domain.node import NodeFacts
from harness.execution.events import JobEvent
from harness.execution.order_places import Place


class Executor(Protocol):
    """Runs jobs and reports their events.

    The contract: every submitted try ends in exactly one ``Finished``, whatever dies; events of one try arrive in
    order; nothing is run twice on the executor's own account; after ``close`` no engine process is left.
    """

    name: str
    address: str
    """Where another process can join it once it is started; empty where none can."""

    def start(self) -> None:
        """Make slots available.

        Raises:
            Infrastructure: If they cannot be.
        """
        ...

    def nodes(self) -> Sequence[NodeFacts]:
        """Facts of the nodes that jobs may go to."""
        ...

    def places(self) -> Sequence[Place]:
        """Where jobs can run now; ``Started.place`` tells the same names."""
        ...

    def takers(self, job: Job) -> frozenset[str]:
        """The places that are there now and could ever run a job."""
        ...

    def expect(self, jobs: Sequence[Job]) -> None:
        """Hear which jobs will come, and find out which of their models lie where: ``places`` tells it.

        Args:
            jobs: Those that are known before the first one is submitted.
        """
        ...

    def submit(self, job: Job, attempt: int, avoid: Collection[str] = (), at: str = "") -> None:
        """Queue one try of a job. Returns at once.

        Args:
            job: The job.
            attempt: Number of the try.
            avoid: Places that it must not go to.
            at: Where it is wanted; whoever else has that place can make it go elsewhere. Empty: whichever is free
                first.
        """
        ...

    def poll(self, timeout_s: float) -> Sequence[JobEvent]:
        """Wait up to ``timeout_s`` seconds for events; an empty result means that nothing happened."""
        ...

    def cancel(self, job: str) -> None:
        """End a job's processes; its ``Finished`` still arrives."""
        ...

    def close(self) -> None:
        """End everything. May be called twice."""
        ...
