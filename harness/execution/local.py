"""The local executor: one slot, one thread, this machine. No Ray."""

from __future__ import annotations

import queue
import threading
from collections.abc import Collection, Sequence
from dataclasses import replace

from harness.domain.job import Job
from harness.domain.node import NodeFacts
from harness.domain.stopping import StoppingRule
from harness.execution.events import Finished, JobEvent, Started
from harness.execution.node import probe_node
from harness.execution.order_places import Place
from harness.execution.run_job import run_job

_JOIN_S = 30.0
_HERE = "here"


class LocalExecutor:
    """Runs jobs one after another in a thread of this process; see the ``Executor`` protocol.

    Args:
        rule: The stopping rule handed to every job.
    """

    name = "local"
    address = ""

    def __init__(self, rule: StoppingRule) -> None:
        self._rule = rule
        self._jobs: queue.Queue[tuple[Job, int] | None] = queue.Queue()
        self._events: queue.Queue[JobEvent] = queue.Queue()
        self._cancelled: set[str] = set()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the worker thread."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="moe-local-executor", daemon=True)
            self._thread.start()

    def nodes(self) -> Sequence[NodeFacts]:
        """This machine."""
        return (probe_node(),)

    def places(self) -> Sequence[Place]:
        """Here."""
        return (Place(_HERE),)

    def takers(self, job: Job) -> frozenset[str]:
        """Here or nowhere; whether the machine is of the job's class, the job finds out."""
        del job
        return frozenset({_HERE})

    def expect(self, jobs: Sequence[Job]) -> None:
        """Nothing to find out: all jobs come here, in the order in which people gave them."""

    def submit(self, job: Job, attempt: int, avoid: Collection[str] = (), at: str = "") -> None:
        """Queue one try of a job."""
        del avoid, at  # there is no other place; who asked for places knows
        self._cancelled.discard(job.id)
        self._jobs.put((job, attempt))

    def poll(self, timeout_s: float) -> Sequence[JobEvent]:
        """Wait for one event, then take what else is there."""
        try:
            events = [self._events.get(timeout=timeout_s)]
        except queue.Empty:
            return ()
        while not self._events.empty():
            events.append(self._events.get_nowait())
        return events

    def cancel(self, job: str) -> None:
        """Stop a job's engine; its ``Finished`` still arrives."""
        self._cancelled.add(job)

    def close(self) -> None:
        """Stop the running engine, drop what is queued, end the thread."""
        self._closing.set()
        self._jobs.put(None)
        if self._thread is not None:
            self._thread.join(_JOIN_S)
            self._thread = None

    def _work(self) -> None:
        while (entry := self._jobs.get()) is not None and not self._closing.is_set():
            self._run(*entry)

    def _run(self, job: Job, attempt: int) -> None:
        def should_stop() -> bool:
            return self._closing.is_set() or job.id in self._cancelled

        for event in run_job(job, attempt, self._rule, should_stop):
            self._events.put(replace(event, place=_HERE) if isinstance(event, Started) else event)
            if isinstance(event, Finished):
                return
