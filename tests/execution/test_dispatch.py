"""The dispatcher: every job ends once, only infrastructure is retried, nobody waits for ever."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from job_support import job_of, wheel_arm

from harness.domain.failure import Failure, FailureKind
from harness.domain.job import Job
from harness.domain.node import NodeFacts
from harness.domain.workload import Workload
from harness.execution.deadlines import deadline_s, silence_s
from harness.execution.dispatch import Dispatcher
from harness.execution.events import Ended, Finished, JobEvent, NodeSetAside, Progress, Started
from harness.execution.node import probe_node
from harness.execution.order_places import Place

LOST = Failure(FailureKind.NODE_LOST, "gone", "E-node-lost")
FULL = Failure(FailureKind.INFRASTRUCTURE, "No space left on device", "E-node-exhausted")
NODE = probe_node()
CRASH = Failure(FailureKind.CRASH, "crashed", "E-crash")


class ScriptedExecutor:
    """A fake: ends each try as the script says; an entry ``None`` starts and then says nothing, like a frozen host."""

    name = "scripted"
    address = ""

    def __init__(self, script: dict[str, list[Failure | str | None]], places: Sequence[str] = ("one",)) -> None:
        self.script = {job: deque(ends) for job, ends in script.items()}
        self.queue: deque[JobEvent] = deque()
        self.submitted: list[tuple[str, int]] = []
        self.cancelled: list[str] = []
        self.avoided: list[set[str]] = []
        self.names = list(places)
        self.broken: set[str] = set()
        self.at: list[tuple[str, str]] = []
        self.started = self.closed = 0

    def start(self) -> None:
        self.started += 1

    def nodes(self) -> Sequence[NodeFacts]:
        return ()

    def places(self) -> Sequence[Place]:
        return [Place(name) for name in self.names]

    def expect(self, jobs: Sequence[Job]) -> None:
        self.expected = [job.id for job in jobs]

    def takers(self, job: Job) -> frozenset[str]:
        del job
        return frozenset(self.names)

    def submit(self, job: Job, attempt: int, avoid: Collection[str] = (), at: str = "") -> None:
        self.avoided.append(set(avoid))
        self.submitted.append((job.id, attempt))
        self.at.append((job.id, at))
        place = at or next((name for name in self.names if name not in avoid), "")
        self.queue.append(Started(job.id, attempt, NODE, f"host {place}", place))
        end = LOST if place in self.broken else self.script[job.id].popleft()
        if end == "queued":
            self.queue.pop()
        elif end != "silence":
            self.queue.append(Finished(job.id, attempt, end if isinstance(end, Failure) else None))

    def poll(self, timeout_s: float) -> Sequence[JobEvent]:
        del timeout_s
        return [self.queue.popleft()] if self.queue else []

    def cancel(self, job: str) -> None:
        self.cancelled.append(job)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def jobs(tiny_model: Path) -> list[Job]:
    """Five jobs that differ in their workload."""
    return [job_of(wheel_arm(tiny_model), workloads=(Workload(size, 0),)) for size in range(1, 6)]


def finished(events: list[JobEvent]) -> list[tuple[str, int]]:
    return [(event.job, event.attempt) for event in events if isinstance(event, Finished)]


def run(dispatcher: Dispatcher, jobs: Sequence[Job]) -> list[JobEvent]:
    dispatcher.add(jobs)
    return [event for event in dispatcher.events() if event is not None]


def test_every_job_ends_exactly_once(jobs: list[Job]) -> None:
    """In the order given; the executor is made once, for the first job."""
    executor = ScriptedExecutor({job.id: [None] for job in jobs})
    events = run(Dispatcher(lambda: executor), jobs)
    assert [event.job for event in events if isinstance(event, Ended)] == [job.id for job in jobs]
    assert executor.started == 1


def test_no_job_makes_no_executor() -> None:
    """A run that needs none starts nothing."""

    def never() -> ScriptedExecutor:
        pytest.fail("an executor was made")

    assert run(Dispatcher(never), []) == []


def test_submissions_keep_to_a_window(jobs: list[Job]) -> None:
    """Twice the slots: what is not submitted can still be dropped cheaply."""
    executor = ScriptedExecutor({job.id: [None] for job in jobs})
    dispatcher = Dispatcher(lambda: executor)
    dispatcher.add(jobs)
    next(dispatcher.events())
    assert len(executor.submitted) == 2


def test_a_lost_node_is_retried_and_then_given_up(jobs: list[Job]) -> None:
    """Three tries, each reported, one end."""
    executor = ScriptedExecutor({jobs[0].id: [LOST, LOST, LOST, None]})
    events = run(Dispatcher(lambda: executor), jobs[:1])
    assert finished(events) == [(jobs[0].id, attempt) for attempt in (1, 2, 3)]
    assert [event for event in events if isinstance(event, Ended)] == [Ended(jobs[0].id, 3)]


def test_a_crash_is_a_finding_and_is_not_retried(jobs: list[Job]) -> None:
    """Repeating it until it goes away would hide it."""
    executor = ScriptedExecutor({jobs[0].id: [CRASH, None]})
    assert finished(run(Dispatcher(lambda: executor), jobs[:1])) == [(jobs[0].id, 1)]


def test_a_silent_job_is_given_up_at_its_deadline_and_tried_elsewhere(jobs: list[Job]) -> None:
    """A frozen host says nothing: the driver's own clock decides, and a late word of the old try is not heard."""
    job = jobs[0]
    executor = ScriptedExecutor({job.id: ["silence", "silence"]})
    now = 0.0
    dispatcher = Dispatcher(lambda: executor, clock=lambda: now)
    dispatcher.add([job])
    events: list[JobEvent] = []
    for event in dispatcher.events():
        if event is not None:
            events.append(event)
        elif len(executor.submitted) == 1:
            now = deadline_s(job) + 1
        else:
            executor.queue.extend([Finished(job.id, 1), Finished(job.id, 2)])
    assert executor.cancelled == [job.id]
    assert finished(events) == [(job.id, 1), (job.id, 2)]
    assert events[1].failure.slug == "E-job-overdue"  # type: ignore[union-attr]


def test_a_deadline_allows_every_process_its_limit(jobs: list[Job]) -> None:
    """More blocks, more time."""
    longer = replace(jobs[0], design=replace(jobs[0].design, blocks=jobs[0].design.blocks + 1))
    assert deadline_s(longer) - deadline_s(jobs[0]) >= longer.design.timeout_s


def test_close_ends_the_executor_once(jobs: list[Job]) -> None:
    """And may be called again."""
    executor = ScriptedExecutor({jobs[0].id: [None]})
    dispatcher = Dispatcher(lambda: executor)
    run(dispatcher, jobs[:1])
    dispatcher.close()
    dispatcher.close()
    assert executor.closed == 1


def test_a_budget_in_minutes_bounds_the_deadline(tiny_model: Path) -> None:
    """Ten thousand blocks in five minutes: over after these, the burn-ins and one last quad, each at its limit."""
    job = job_of(wheel_arm(tiny_model, fa=0), wheel_arm(tiny_model, fa=1))
    patient = replace(job, design=replace(job.design, blocks=10_000, timeout_s=60))
    bounded = replace(patient, design=replace(patient.design, minutes=5))
    none = replace(patient, design=replace(patient.design, blocks=0, burn_in=0))
    assert deadline_s(patient) > 1_000_000
    assert deadline_s(bounded) - deadline_s(none) == 5 * 60 + (2 + 4) * 70


def test_a_retry_goes_to_another_node_where_there_is_one(jobs: list[Job]) -> None:
    """A node that was lost once is the last to be asked again."""
    executor = ScriptedExecutor({jobs[0].id: [LOST, LOST, None]}, places=("one", "two"))
    assert finished(run(Dispatcher(lambda: executor), jobs[:1])) == [(jobs[0].id, attempt) for attempt in (1, 2, 3)]
    assert executor.avoided == [set(), {"one"}, set()]


def test_what_stays_with_its_node_is_only_tried_elsewhere(jobs: list[Job]) -> None:
    """A full disk is as full a second later: with no other node the first failure is the last word, at once."""
    alone = ScriptedExecutor({jobs[0].id: [FULL, None]})
    events = run(Dispatcher(lambda: alone), jobs[:1])
    assert [event for event in events if isinstance(event, Ended)] == [Ended(jobs[0].id, 1)]
    both = ScriptedExecutor({jobs[0].id: [FULL, None]}, places=("one", "two"))
    assert finished(run(Dispatcher(lambda: both), jobs[:1])) == [(jobs[0].id, 1), (jobs[0].id, 2)]


def test_a_node_that_fails_everything_is_set_aside_and_told_once(jobs: list[Job]) -> None:
    """After three different jobs in succession the others never see it, and each job ends well elsewhere."""
    executor = ScriptedExecutor({job.id: [None] for job in jobs}, places=("bad", "good"))
    executor.broken = {"bad"}
    events = run(Dispatcher(lambda: executor), jobs)
    (aside,) = (event for event in events if isinstance(event, NodeSetAside))
    assert (aside.host, "3 different jobs" in aside.why) == ("host bad", True)
    assert executor.avoided[-1] == {"bad"}
    assert sorted(event.job for event in events if isinstance(event, Finished) and event.failure is None) == sorted(
        job.id for job in jobs
    )


def test_the_last_node_is_never_set_aside(jobs: list[Job]) -> None:
    """Elsewhere is nowhere: its jobs end with what they say."""
    executor = ScriptedExecutor({job.id: [LOST] * 3 for job in jobs})
    events = run(Dispatcher(lambda: executor), jobs)
    assert not [event for event in events if isinstance(event, NodeSetAside)]
    assert len([event for event in events if isinstance(event, Ended)]) == len(jobs)


def test_a_job_whose_nodes_are_gone_waits_for_one_and_not_for_ever(jobs: list[Job]) -> None:
    """One that comes back in time is used; without one the last failure stands."""
    for comes_back in (True, False):
        executor = ScriptedExecutor({jobs[0].id: [LOST, None]})
        now = 0.0
        dispatcher = Dispatcher(lambda: executor, clock=lambda: now, patience_s=60.0)  # noqa: B023 - read at once
        dispatcher.add(jobs[:1])
        events: list[JobEvent] = []
        for event in dispatcher.events():
            if isinstance(event, Finished) and event.attempt == 1:
                executor.names = []
            if event is not None:
                events.append(event)
            elif comes_back and now > 30:
                executor.names = ["new"]
            now += 10 if event is None else 0
        assert len(finished(events)) == (2 if comes_back else 1)
        assert sum(isinstance(event, Ended) for event in events) == 1


def test_a_job_that_waits_while_its_nodes_go_is_told(jobs: list[Job]) -> None:
    """It was submitted and never started: Ray would keep it for ever."""
    executor = ScriptedExecutor({jobs[0].id: ["queued"]})
    now = 0.0
    dispatcher = Dispatcher(lambda: executor, clock=lambda: now, patience_s=60.0)
    dispatcher.add(jobs[:1])
    ends = []
    for event in dispatcher.events():
        executor.names = []
        now += 10
        ends += [event] if isinstance(event, Finished) else []
    assert [end.failure.slug for end in ends if end.failure] == ["E-no-node-left"]


def test_a_job_that_falls_silent_while_it_measures_is_given_up(jobs: list[Job]) -> None:
    """A worker that is frozen, on a node that is not: the whole job's deadline would be hours away."""
    job = jobs[0]
    executor = ScriptedExecutor({job.id: ["silence"] * 3})
    now = 0.0
    dispatcher = Dispatcher(lambda: executor, clock=lambda: now)
    dispatcher.add([job])
    slugs = []
    executor.queue.append(Progress(job.id, 1, "making the model", preparing=True))
    for event in dispatcher.events():
        if isinstance(event, Progress) and event.preparing:
            now += silence_s(job) + 1  # as long as it takes
            executor.queue.append(Progress(job.id, 1, "process 1 of 4"))
        if event is None:
            now += silence_s(job) + 1
        if isinstance(event, Finished):
            slugs.append(event.failure.slug if event.failure else "")
            executor.queue.append(Finished(job.id, 2))
    assert slugs == ["E-job-silent", ""]
    assert silence_s(job) < deadline_s(job)


def test_the_tries_of_a_broken_run_are_counted_on(jobs: list[Job]) -> None:
    """A resumed job is tried three times again, with numbers that nobody used."""
    executor = ScriptedExecutor({jobs[0].id: [LOST, LOST, LOST]})
    dispatcher = Dispatcher(lambda: executor)
    dispatcher.add(jobs[:1], {jobs[0].id: 2})
    events = [event for event in dispatcher.events() if event is not None]
    assert finished(events) == [(jobs[0].id, attempt) for attempt in (3, 4, 5)]


def test_what_only_another_node_can_do_waits_for_one_where_nodes_were_lost(jobs: list[Job]) -> None:
    """Its second try is at the executor when the other node dies: somebody will bring it back."""
    executor = ScriptedExecutor({jobs[0].id: [FULL, "queued", None]}, places=("full", "good"))
    now = 0.0
    dispatcher = Dispatcher(lambda: executor, clock=lambda: now, patience_s=60.0)
    dispatcher.add(jobs[:1])
    events: list[JobEvent] = []
    for event in dispatcher.events():
        if event is not None:
            events.append(event)
        elif now < 30:
            executor.names, now = ["full"], now + 10
        else:
            executor.names = ["full", "again"]
            executor.queue.append(Finished(jobs[0].id, 2))
    assert [
        (event.attempt, event.failure and event.failure.slug) for event in events if isinstance(event, Finished)
    ] == [
        (1, "E-node-exhausted"),
        (2, None),
    ]


@pytest.fixture
def two_models(tiny_model: Path, tmp_path: Path) -> list[Job]:
    """Three jobs of each of two models, by turns."""
    other = tmp_path / "other.gguf"
    other.symlink_to(tiny_model)
    return [
        job_of(wheel_arm(model), workloads=(Workload(size, 0),))
        for size in range(1, 4)
        for model in (tiny_model, other)
    ]


def test_each_model_stays_on_its_node_and_its_longest_job_is_first(two_models: list[Job]) -> None:
    """The dispatcher asks the order: one job for each free slot, wanted at one node."""
    executor = ScriptedExecutor({job.id: [None] for job in two_models}, places=("one", "two"))
    dispatcher = Dispatcher(lambda: executor)
    seconds = {job.id: 10.0 * job.workloads[0].tokens for job in two_models}
    dispatcher.add(two_models, seconds=seconds)
    events = dispatcher.events()
    next(events)
    assert len(executor.submitted) == 2
    assert [event for event in events if isinstance(event, Ended)]
    models = {job.id: job.arms[0].model.path for job in two_models}
    used = {place: {models[job] for job, at in executor.at if at == place} for place in ("one", "two")}
    assert [len(found) for found in used.values()] == [1, 1]
    for place in used:
        lengths = [seconds[job] for job, at in executor.at if at == place]
        assert lengths == sorted(lengths, reverse=True)


def test_a_single_job_goes_to_whichever_node_is_free(jobs: list[Job]) -> None:
    """Several drivers with one job each, as with ``-n``, must not all want the same node."""
    executor = ScriptedExecutor({jobs[0].id: [None]}, places=("one", "two"))
    run(Dispatcher(lambda: executor), jobs[:1])
    assert executor.at == [(jobs[0].id, "")]


def test_a_retry_is_never_wanted_where_it_failed(jobs: list[Job]) -> None:
    """Though it is free, and its model lies there."""
    executor = ScriptedExecutor({job.id: [LOST, None] for job in jobs}, places=("one", "two", "three"))
    run(Dispatcher(lambda: executor), jobs)
    for job in jobs:
        first, second = (at for name, at in executor.at if name == job.id)
        assert first != second
