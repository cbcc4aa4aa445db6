"""The dispatcher: every job ends once, only infrastructure is retried, nobody waits for ever."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from job_support import job_of, wheel_arm

from harness.domain.failure import Failure, FailureKind
from harness.domain.job import Job
from harness.domain.node import NodeFacts
from harness.domain.workload import Workload
from harness.execution.dispatch import Dispatcher, deadline_s
from harness.execution.events import Ended, Finished, JobEvent, Started
from harness.execution.node import probe_node

LOST = Failure(FailureKind.NODE_LOST, "gone", "E-node-lost")
CRASH = Failure(FailureKind.CRASH, "crashed", "E-crash")


class ScriptedExecutor:
    """A fake: ends each try as the script says; an entry ``None`` starts and then says nothing, like a frozen host."""

    name = "scripted"
    address = ""
    slots = 1

    def __init__(self, script: dict[str, list[Failure | str | None]]) -> None:
        self.script = {job: deque(ends) for job, ends in script.items()}
        self.queue: deque[JobEvent] = deque()
        self.submitted: list[tuple[str, int]] = []
        self.cancelled: list[str] = []
        self.started = self.closed = 0

    def start(self) -> None:
        self.started += 1

    def nodes(self) -> Sequence[NodeFacts]:
        return ()

    def submit(self, job: Job, attempt: int) -> None:
        self.submitted.append((job.id, attempt))
        self.queue.append(Started(job.id, attempt, probe_node(), "host"))
        end = self.script[job.id].popleft()
        if end != "silence":
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
