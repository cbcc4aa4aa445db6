"""The contract that every executor keeps: one suite for all of them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from job_support import QUICK, job_of, processes_below, standin_arm, wheel_arm

from harness.domain.failure import FailureKind
from harness.domain.job import Job
from harness.domain.node import NodeClass
from harness.domain.stopping import JobEnd, RunWholeSchedule
from harness.execution.dispatch import Dispatcher
from harness.execution.events import Ended, Finished, JobEvent, ProcessDone, Started
from harness.execution.executor import Executor
from harness.execution.executors import NAMES, executor_factory

_PATIENCE_S = 60.0


@pytest.fixture(scope="module", params=NAMES)
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    """Each executor, started once for the suite: an embedded cluster takes seconds."""
    made = executor_factory(request.param, RunWholeSchedule())()
    made.start()
    yield made
    made.close()


def run_to_end(executor: Executor, job: Job, attempt: int = 1) -> list[JobEvent]:
    """Submit one try and collect its events."""
    executor.submit(job, attempt)
    return collect(executor, lambda events: any(isinstance(event, Finished) for event in events))


def collect(executor: Executor, enough: Callable[[list[JobEvent]], bool]) -> list[JobEvent]:
    """Poll until there is enough."""
    events: list[JobEvent] = []
    deadline = time.monotonic() + _PATIENCE_S
    while not enough(events):
        assert time.monotonic() < deadline, f"nothing more came after {events}"
        events.extend(executor.poll(0.2))
    return events


def wait_for(path: Path) -> int:
    """A process id that a stand-in writes down."""
    deadline = time.monotonic() + _PATIENCE_S
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < deadline, f"{path.name} never came"
        time.sleep(0.02)
    return int(path.read_text())


def assert_gone(pid: int) -> None:
    """The process ends soon."""
    deadline = time.monotonic() + 10
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.05)


def runs_of(events: list[JobEvent]) -> list[ProcessDone]:
    return [event for event in events if isinstance(event, ProcessDone)]


def test_events_come_in_order_and_every_process_is_reported(executor: Executor, tiny_model: Path) -> None:
    """A job on the real wheel: started, its processes, finished; each process has samples of every workload."""
    job = job_of(wheel_arm(tiny_model, fa=0), wheel_arm(tiny_model, fa=1))
    events = run_to_end(executor, job)
    assert isinstance(events[0], Started)
    assert events[-1] == Finished(job.id, 1, end=JobEnd.SCHEDULE)
    runs = runs_of(events)
    assert [run.run.step for run in runs] == list(job.schedule())
    for done in runs:
        assert done.run.failure is None
        assert [samples.workload for samples in done.run.samples] == ["pp32", "tg4"]
        assert all(len(samples.all_ns) == QUICK.warmup + QUICK.repetitions for samples in done.run.samples)
        assert done.run.conditions.niceness == 0
        assert done.run.max_rss_bytes > 20 * 1024**2
    assert len({done.run.content_key for done in runs}) == 2


def test_a_crash_keeps_whole_rows_and_blames_the_candidate(
    executor: Executor, tiny_model: Path, tmp_path: Path
) -> None:
    """A segfault after one row: that row is kept, the failure names the signal, the job itself ends well."""
    events = run_to_end(executor, job_of(standin_arm(tmp_path / "crash", tiny_model, "crash", crash_after=1)))
    (done,) = runs_of(events)  # the arm is out after its first process
    assert done.run.failure is not None
    assert done.run.failure.kind is FailureKind.CRASH
    assert "SIGSEGV" in done.run.failure.message
    assert done.run.samples_of("pp32") is not None
    assert done.run.samples_of("tg4") is None
    assert isinstance(events[-1], Finished)
    assert events[-1].failure is None


def test_the_other_arm_goes_on_when_one_fails(executor: Executor, tiny_model: Path, tmp_path: Path) -> None:
    """An arm out of memory does not cost the other arm its own cases."""
    job = job_of(standin_arm(tmp_path / "oom", tiny_model, "oom"), standin_arm(tmp_path / "rows", tiny_model, "rows"))
    runs = runs_of(run_to_end(executor, job))
    by_arm = {arm: [done.run for done in runs if done.run.step.arm == arm] for arm in (0, 1)}
    assert [run.failure.kind for run in by_arm[0] if run.failure] == [FailureKind.OUT_OF_MEMORY]
    assert len(by_arm[1]) == 2
    assert not any(run.failure for run in by_arm[1])


def test_a_hanging_engine_is_killed_at_its_deadline(executor: Executor, tiny_model: Path, tmp_path: Path) -> None:
    """The process is gone and the failure is a timeout."""
    arm = standin_arm(tmp_path / "hang", tiny_model, "hang")
    (done,) = runs_of(run_to_end(executor, job_of(arm, design=replace(QUICK, timeout_s=1.0))))
    assert done.run.failure is not None
    assert done.run.failure.kind is FailureKind.TIMEOUT
    assert_gone(wait_for(tmp_path / "hang" / "hanging.pid"))


def test_an_exit_without_output_is_no_measurement(executor: Executor, tiny_model: Path, tmp_path: Path) -> None:
    """Exit code 0 and nothing written: unparsable, never a pass."""
    (done,) = runs_of(run_to_end(executor, job_of(standin_arm(tmp_path / "nothing", tiny_model, "nothing"))))
    assert done.run.failure is not None
    assert done.run.failure.kind is FailureKind.UNPARSABLE


def test_a_daemon_left_by_an_engine_is_killed(executor: Executor, tiny_model: Path, tmp_path: Path) -> None:
    """A grandchild in a session of its own does not outlive the job."""
    events = run_to_end(executor, job_of(standin_arm(tmp_path / "daemon", tiny_model, "daemon")))
    assert isinstance(events[-1], Finished)
    assert_gone(wait_for(tmp_path / "daemon" / "daemon.pid"))


def test_what_is_missing_ends_the_job_with_its_reason(executor: Executor, tiny_model: Path, tmp_path: Path) -> None:
    """A build that is not there: one clear failure, no process, nothing said about the candidate."""
    arm = standin_arm(tmp_path / "gone", tiny_model, "rows")
    (tmp_path / "gone" / "llama-bench").unlink()
    events = run_to_end(executor, job_of(arm))
    assert runs_of(events) == []
    assert isinstance(events[-1], Finished)
    failure = events[-1].failure
    assert failure is not None
    assert failure.slug == "E-build-missing"
    assert not failure.blames_candidate


def test_equal_arms_are_no_contrast(executor: Executor, tiny_model: Path) -> None:
    """Two builds with the same bytes and flags are refused before anything runs."""
    arm = wheel_arm(tiny_model)
    events = run_to_end(executor, job_of(arm, replace(arm, build=replace(arm.build, name="other-name"))))
    assert runs_of(events) == []
    assert isinstance(events[-1], Finished)
    assert events[-1].failure is not None
    assert events[-1].failure.slug == "E-no-contrast"


def test_a_calibration_runs_equal_arms(executor: Executor, tiny_model: Path) -> None:
    """An arm against itself is measured where the design says so: both have processes, of one content."""
    arm = wheel_arm(tiny_model)
    events = run_to_end(executor, job_of(arm, arm, design=replace(QUICK, calibration=True)))
    runs = [done.run for done in runs_of(events)]
    assert [run.step.arm for run in runs if run.step.scored] == [0, 1]
    assert len({run.content_key for run in runs}) == 1
    assert events[-1].failure is None  # type: ignore[union-attr]


def test_a_cancelled_job_ends_and_leaves_nothing(executor: Executor, tiny_model: Path, tmp_path: Path) -> None:
    """Cancelling kills an engine that does not listen, and does not blame it; the end arrives; the next job runs."""
    job = job_of(standin_arm(tmp_path / "cancelled", tiny_model, "deaf"))
    executor.submit(job, 1)
    collect(executor, lambda events: any(isinstance(event, Started) for event in events))
    pid = wait_for(tmp_path / "cancelled" / "hanging.pid")
    executor.cancel(job.id)
    events = collect(executor, lambda events: any(isinstance(event, Finished) for event in events))
    assert events[-1].failure is not None  # type: ignore[union-attr]
    assert events[-1].failure.kind is FailureKind.INTERRUPTED  # type: ignore[union-attr]
    assert all(done.run.failure and done.run.failure.slug == "E-interrupted" for done in runs_of(events))
    assert_gone(pid)
    later = run_to_end(executor, job_of(standin_arm(tmp_path / "next", tiny_model, "rows")))
    assert later[-1].failure is None  # type: ignore[union-attr]


def test_measurements_do_not_overlap(executor: Executor, tiny_model: Path, tmp_path: Path) -> None:
    """Two jobs at once on one slot: the second starts no engine before the first has ended."""
    jobs = [job_of(standin_arm(tmp_path / name, tiny_model, "rows", tps=tps)) for name, tps in (("x", 1), ("y", 2))]
    for job in jobs:
        executor.submit(job, 1)
    events = collect(executor, lambda events: sum(isinstance(event, Finished) for event in events) == 2)
    order = [event.job for event in events if isinstance(event, ProcessDone | Finished)]
    assert order == sorted(order, key=order.index), "events of two jobs were interleaved"


def test_a_node_that_does_not_fit_is_said(executor: Executor, tiny_model: Path, tmp_path: Path) -> None:
    """A demand that no node meets is an error that names it, not a wait for ever."""
    job = replace(
        job_of(standin_arm(tmp_path / "big", tiny_model, "rows")),
        node_class=NodeClass("big", min_ram_gib=1_000_000),
    )
    events = run_to_end(executor, job)
    assert isinstance(events[-1], Finished)
    assert events[-1].failure is not None
    assert "1000000" in events[-1].failure.message.replace("1e+06", "1000000")


def test_closing_kills_what_runs(executor: Executor, tiny_model: Path, tmp_path: Path) -> None:
    """After close no engine is left, even if nobody waited for the end."""
    if executor.name == "ray":
        pytest.skip("an embedded cluster is shared by this suite; tests/running kills whole drivers")
    other = executor_factory(executor.name, RunWholeSchedule())()
    other.start()
    other.submit(job_of(standin_arm(tmp_path / "closed", tiny_model, "hang")), 1)
    pid = wait_for(tmp_path / "closed" / "hanging.pid")
    other.close()
    other.close()
    assert_gone(pid)
    assert processes_below(tmp_path) == []


def test_a_killed_ray_worker_is_retried_and_then_given_up(tiny_model: Path, tmp_path: Path) -> None:
    """The worker dies with kill -9: the try ends as a lost node, another is made, three in all, and none is silent."""
    dispatcher = Dispatcher(executor_factory("ray", RunWholeSchedule()))
    job = job_of(standin_arm(tmp_path / "killed", tiny_model, "hang"))
    dispatcher.add([job])
    seen: list[JobEvent] = []
    try:
        for event in dispatcher.events():
            if event is not None:
                seen.append(event)
            pid_file = tmp_path / "killed" / "hanging.pid"
            if pid_file.exists() and pid_file.read_text():
                engine = int(pid_file.read_text())
                pid_file.unlink()
                os.kill(_ray_worker_above(engine), signal.SIGKILL)
                assert_gone(engine)
    finally:
        dispatcher.close()
    finished = [event for event in seen if isinstance(event, Finished)]
    assert [event.attempt for event in finished] == [1, 2, 3]
    assert all(event.failure and event.failure.kind is FailureKind.NODE_LOST for event in finished)
    assert [event for event in seen if isinstance(event, Ended)] == [Ended(job.id, 3)]


def _ray_worker_above(pid: int) -> int:
    """The Ray worker that an engine hangs below: past its supervisor and the shim."""
    for ancestor in psutil.Process(pid).parents():
        if ancestor.name().startswith("ray::"):
            return ancestor.pid
    pytest.fail(f"no Ray worker above {pid}")
