"""Drive jobs through an executor: one for each free slot, deadlines, retries of infrastructure, one end for each job.

Nothing here knows how an executor works, and nothing is judged. Which job goes where, `order` says. The driver's
watchdog gives a job up when its deadline has passed although its executor says nothing: a frozen host never answers. A
retry goes to another node where one can take it; where none is left it waits a while for one to come back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.domain.failure import Failure, FailureKind
from harness.domain.job import Job
from harness.domain.node import NodeFacts
from harness.execution.deadlines import deadline_s, silence_s
from harness.execution.events import Ended, Finished, JobEvent, NodeSetAside, ProcessDone, Progress, Started
from harness.execution.executor import Executor
from harness.execution.executors import MakeExecutor
from harness.execution.order import Order
from harness.execution.order_places import Place
from harness.execution.tasks import task_of
from harness.execution.trust import Trust

_POLL_S = 0.2
_AHEAD = 2
"""Jobs that are given to a place alone for each of its slots: one can begin while the end of another is judged. Where
there are more places, nothing is given to one that is busy: another could be free before."""
_MAX_TRIES = 3
PATIENCE_S = 120.0
"""How long a job waits for a node to come back, or to join, once those that could take it are lost."""


@dataclass(slots=True)
class _Try:
    """One try of a job.

    Attributes:
        job: The job.
        attempt: Its number.
        last: Number of the last try that may be made.
        seconds: What it is thought to take; ``None``: not known.
        failed_at: Where earlier ones failed.
        elsewhere: It may only go to another place than those.
        give_up: When there is no more waiting for a node; ``None`` while one can take it.
        avoid: Where it was not to go, once it is submitted.
        place: Where it runs, as the executor calls it; empty before it started.
        host: As people call it.
        deadline: When it must be over; set by its start event.
        silent_after: When its next event must have come; ``None`` while it prepares, which takes as long as it takes.
        prepared: It has begun to prepare, so it waits for the host no more.
    """

    job: Job
    attempt: int
    last: int
    seconds: float | None = None
    failed_at: frozenset[str] = frozenset()
    elsewhere: bool = False
    give_up: float | None = None
    avoid: frozenset[str] = frozenset()
    place: str = ""
    host: str = ""
    deadline: float | None = None
    silent_after: float | None = None
    prepared: bool = False

    def measures(self, event: JobEvent) -> bool:
        """Whether a process with a limit follows an event; waiting for the host and preparing have none so short."""
        if isinstance(event, Progress) and event.preparing:
            self.prepared = not event.waiting
            return False
        return self.prepared and isinstance(event, Progress | ProcessDone)


class Dispatcher:
    """Runs jobs to their ends, each exactly once for the caller.

    Args:
        make_executor: Makes what they run on. Called for the first job; ``close`` closes it.
        clock: Seconds, monotonic; replaced in tests.
        patience_s: How long a job waits for a node to come back.
    """

    def __init__(
        self,
        make_executor: MakeExecutor,
        clock: Callable[[], float] = time.monotonic,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._make_executor = make_executor
        self._executor: Executor | None = None
        self._clock = clock
        self._patience_s = patience_s
        self._order = Order()
        self._unordered: list[_Try] = []
        self._ordered: dict[str, _Try] = {}
        self._places: tuple[Place, ...] = ()
        self._seen: tuple[object, ...] = ()
        self._submitted: dict[str, _Try] = {}
        self._trust = Trust()
        self._lost_nodes = False

    def add(
        self,
        jobs: Iterable[Job],
        tried: Mapping[str, int] | None = None,
        seconds: Mapping[str, float] | None = None,
    ) -> None:
        """Queue jobs.

        Args:
            jobs: The jobs, in the order in which they run where there is one place for them.
            tried: How often each was tried in a run that broke; its tries are counted on from there.
            seconds: What each is thought to take, as far as that is known.
        """
        listed = list(jobs)
        if self._executor is not None:
            self._executor.expect(listed)
        for job in listed:
            before = (tried or {}).get(job.id, 0)
            self._unordered.append(_Try(job, before + 1, before + _MAX_TRIES, (seconds or {}).get(job.id)))

    @property
    def unfinished(self) -> int:
        """Jobs queued or running."""
        return len(self._unordered) + len(self._ordered) + len(self._submitted)

    def events(self) -> Iterator[JobEvent | None]:
        """Run until every job has ended.

        Yields:
            Events of the tries, and ``Ended`` once for each job after its last try.
            ``None`` when nothing happened for a fifth of a second, so that the caller can draw and look for Ctrl-C.
        """
        while self.unfinished:
            executor = self._running_executor()
            yield from self._fill_slots(executor)
            events = executor.poll(_POLL_S)
            for event in events:
                yield from self._take(executor, event)
            yield from self._given_up(executor, listening=not events)
            if not events:
                yield None

    def cancel(self) -> None:
        """End the processes of running jobs; their ends still arrive. Jobs that were not submitted are left."""
        if self._executor is not None:
            for job in self._submitted:
                self._executor.cancel(job)

    def close(self) -> None:
        """Drop everything and end the executor."""
        self._order, self._places, self._seen = Order(), (), ()
        for tries in (self._unordered, self._ordered, self._submitted):
            tries.clear()
        if self._executor is not None:
            self._executor.close()
            self._executor = None

    def nodes(self) -> Sequence[NodeFacts]:
        """Facts of the nodes that jobs may go to; the executor is started for that.

        Raises:
            HarnessError: It can't be.
        """
        return self._running_executor().nodes()

    def _running_executor(self) -> Executor:
        if self._executor is None:
            executor = self._make_executor()
            executor.start()
            executor.expect([entry.job for entry in self._unordered])
            self._executor = executor
        return self._executor

    # ---- where to ----------------------------------------------------------------------------------------------------

    def _fill_slots(self, executor: Executor) -> Iterator[JobEvent]:
        self._look(executor)
        yield from self._put_in_order(executor)
        while (placed := self._order.next(self._clock())) is not None:
            job, place = placed
            entry = self._ordered.pop(job)
            # A single job, as workers of xdist have it, leaves the choice to who knows which place is free of others.
            is_chosen = len(self._places) > 1 and (self._ordered or self._submitted)
            self._submit(executor, entry, at=place if is_chosen else "")

    def _look(self, executor: Executor) -> None:
        """Know the places as they are now; where they changed, or one was set aside, see again who can go where."""
        places = tuple(executor.places())
        seen = (places, frozenset(self._trust.aside))
        if seen == self._seen:
            return
        self._lost_nodes |= bool({place.id for place in self._places} - {place.id for place in places})
        self._places, self._seen = places, seen
        alone = len(places) == 1
        self._order.set_places(replace(place, slots=_AHEAD * place.slots) if alone else place for place in places)
        self._unordered = [*self._ordered.values(), *self._unordered]
        self._ordered.clear()

    def _put_in_order(self, executor: Executor) -> Iterator[JobEvent]:
        """Have the order decide on what can go somewhere now; of the rest, who waits for a node and who does not."""
        unordered, self._unordered = self._unordered, []
        for entry in unordered:
            avoid = self._places_to_avoid(executor, entry)
            places: frozenset[str] = frozenset() if avoid is None else executor.takers(entry.job) - avoid
            entry.avoid = avoid or frozenset()
            if places:
                self._ordered[entry.job.id] = entry
                self._order.add(task_of(entry.job, places, entry.seconds))
                continue
            self._order.drop(entry.job.id)
            if avoid is not None:
                self._submit(executor, entry)
            elif self._still_patient(entry):
                self._unordered.append(entry)
            else:
                yield Ended(entry.job.id, entry.attempt - 1)

    def _submit(self, executor: Executor, entry: _Try, at: str = "") -> None:
        self._submitted[entry.job.id] = entry
        executor.submit(entry.job, entry.attempt, entry.avoid, at)

    def _places_to_avoid(self, executor: Executor, entry: _Try) -> frozenset[str] | None:
        """Where a try must not go; ``None`` where no place is left for it.

        A first try that no node can take is submitted all the same: the executor says at once what is missing.
        """
        aside = self._trust.aside
        elsewhere = aside | entry.failed_at
        takers = executor.takers(entry.job)
        if takers - elsewhere:
            entry.give_up = None
            return elsewhere
        if not entry.elsewhere and takers - aside:
            return aside
        if entry.failed_at or (self._lost_nodes and self._still_patient(entry)):
            return None
        return aside

    def _still_patient(self, entry: _Try) -> bool:
        """Whether a node may yet come that can take a try; counted from the first time that none could.

        Where none was lost, nobody is waited for: what only another place could do is not done here.
        """
        if entry.give_up is None:
            entry.give_up = self._clock() + (self._patience_s if self._lost_nodes else 0)
        return self._clock() < entry.give_up

    # ---- what comes back ---------------------------------------------------------------------------------------------

    def _take(self, executor: Executor, event: JobEvent) -> Iterator[JobEvent]:
        entry = self._submitted.get(event.job)
        if entry is None or event.attempt != entry.attempt:
            return  # an echo of a try that was given up
        if isinstance(event, Started):
            entry.place, entry.host = event.place, event.host
            self._order.moved(event.job, event.place, self._clock())
            entry.deadline = self._clock() + deadline_s(entry.job)
        if isinstance(event, Finished):
            del self._submitted[event.job]
            self._order.ended(event.job, self._clock(), whole=event.failure is None)
            yield event
            yield from self._suspect(executor, entry, event.failure)
            yield from self._retry_or_end(entry, event)
        else:
            entry.silent_after = self._clock() + silence_s(entry.job) if entry.measures(event) else None
            yield event

    def _suspect(self, executor: Executor, entry: _Try, failure: Failure | None) -> Iterator[JobEvent]:
        """Set the node of a try aside where it fails everything; never the last one that could take the job."""
        if failure is not None and failure.kind is FailureKind.NODE_LOST:
            self._lost_nodes = True
        if not entry.place:
            return
        self._trust.ended(entry.place, entry.job.id, failure)
        if self._trust.is_suspect(entry.place) and executor.takers(entry.job) - self._trust.aside - {entry.place}:
            yield NodeSetAside(entry.job.id, entry.attempt, entry.host, self._trust.set_aside(entry.place))

    def _retry_or_end(self, entry: _Try, event: Finished) -> Iterator[JobEvent]:
        failure = event.failure
        if failure is not None and failure.may_be_retried and entry.attempt < entry.last:
            failed_at = entry.failed_at | ({entry.place} if entry.place else frozenset())
            elsewhere = failure.stays_with_place
            self._unordered.append(_Try(entry.job, entry.attempt + 1, entry.last, entry.seconds, failed_at, elsewhere))
        else:
            yield Ended(event.job, event.attempt)

    # ---- the watchdog ------------------------------------------------------------------------------------------------

    def _given_up(self, executor: Executor, *, listening: bool) -> Iterator[JobEvent]:
        """End tries that are overdue, silent, or that no node is left for.

        Args:
            executor: What they run on.
            listening: Whether all that was told has been heard: whoever takes our events may have kept us from it.
        """
        for entry in list(self._submitted.values()):
            failure = self._overdue(entry, listening=listening) or self._stranded(executor, entry)
            if failure is not None:
                executor.cancel(entry.job.id)
                yield from self._take(executor, Finished(entry.job.id, entry.attempt, failure))

    def _overdue(self, entry: _Try, *, listening: bool) -> Failure | None:
        now = self._clock()
        if entry.deadline is not None and now > entry.deadline:
            message = f"no end after {deadline_s(entry.job):.0f} s although every process had a deadline: given up"
            return Failure(FailureKind.NODE_LOST, message, "E-job-overdue")
        if listening and entry.silent_after is not None and now > entry.silent_after:
            message = f"{entry.host} said nothing for {silence_s(entry.job):.0f} s while a process had to end: given up"
            return Failure(FailureKind.NODE_LOST, message, "E-job-silent")
        return None

    def _stranded(self, executor: Executor, entry: _Try) -> Failure | None:
        """A try that waits at the executor although every node that could take it is gone would wait for ever."""
        if entry.place or entry.deadline is not None:
            return None
        if executor.takers(entry.job) - entry.avoid:
            entry.give_up = None
            return None
        self._lost_nodes = True
        if self._still_patient(entry):
            return None
        message = f"every node that could take this job is gone, and none came for {self._patience_s:.0f} s"
        return Failure(FailureKind.INPUT_MISSING, message, "E-no-node-left")
