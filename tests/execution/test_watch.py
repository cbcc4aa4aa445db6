"""The watch on real processes: what only it can see, without claims about how fast or idle this machine is."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from fake_nvml import FakeNvml
from job_support import QUICK, job_of, wheel_arm

from harness.domain.job import Design
from harness.domain.measurement import Conditions
from harness.domain.node import Gpu
from harness.domain.quiet import PageCache, Quiet
from harness.domain.stopping import RunWholeSchedule
from harness.execution.events import JobEvent, ProcessDone, Progress
from harness.execution.page_cache import drop, resident_share
from harness.execution.process import ProcessSpec, Supervisor, clean_environment
from harness.execution.run_job import run_job
from harness.execution.telemetry.gpus import GpuSource, NoGpus
from harness.execution.telemetry.nvml import open_nvml
from harness.execution.telemetry.watch import Place, Watch

CORE = max(os.sched_getaffinity(0))
BUSY = "import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass"
PARENT = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY.format(seconds=0.6)!r}])"


@pytest.fixture(autouse=True)
def own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOE_LOCK_DIR", str(tmp_path / "lock"))


def watched(program: str, gpus: GpuSource | None = None, beside: str = "") -> Conditions:
    """Run a program on one core, perhaps with another beside it on the same core."""
    with Supervisor() as ours, Supervisor() as theirs:
        watch = Watch(Place((CORE,), 1, ()), gpus or NoGpus())

        def started(pid: int) -> None:
            watch.started(pid)
            if beside:
                theirs.run(spec(beside))

        return watch.conditions(ours.run(spec(program), on_started=started))


def spec(program: str) -> ProcessSpec:
    return ProcessSpec((sys.executable, "-c", program), clean_environment(), 60.0, cpus=(CORE,))


def test_other_work_on_the_core_is_seen() -> None:
    """The engine sleeps while another process computes on its core: nearly all that the core did was foreign."""
    state = watched("import time; time.sleep(1.0)", beside=BUSY.format(seconds=0.8))
    assert state.foreign_load is not None
    assert state.steal is not None
    assert state.foreign_load + state.steal > 0.5


def test_the_engines_own_work_is_not_foreign() -> None:
    """Two processes share a core: the one that is watched took its part, so the foreign part is not all."""
    state = watched(BUSY.format(seconds=1.0), beside=BUSY.format(seconds=0.8))
    assert state.foreign_load is not None
    assert 0.1 < state.foreign_load < 0.9
    assert state.queue_wait_s is not None
    assert state.queue_wait_s > 0.1
    assert state.involuntary_switches is not None
    assert state.involuntary_switches > 3


def test_gpus_are_looked_at_while_the_engine_runs() -> None:
    """With a fake NVML (marked so): the engine's child is its own, and is seen by its process id."""
    nvml = FakeNvml("GPU-1")
    nvml.pids = ()
    own: list[int] = []

    class Source:
        """Names the busy child, as the driver would."""

        unavailable = ""

        def read(self) -> Sequence[object]:
            with suppress(psutil.NoSuchProcess):
                nvml.pids = tuple(child.pid for pid in own for child in psutil.Process(pid).children())
            return source.read()

        def close(self) -> None:
            source.close()

    source = open_nvml(nvml, [Gpu("fake", 1 << 34, "580", "GPU-1")])
    with Supervisor() as supervisor:
        watch = Watch(Place((CORE,), 1, ()), Source())  # type: ignore[arg-type]

        def started(pid: int) -> None:
            watch.started(pid)
            own.append(pid)

        state = watch.conditions(supervisor.run(spec(PARENT), on_started=started))
    (gpu,) = state.gpus
    assert gpu.used
    assert gpu.samples >= 2
    assert (gpu.sm_mhz, gpu.performance_state, gpu.foreign_processes) == (1980, 0, 0)
    assert state.gpu_telemetry == ""


def test_gpus_that_cannot_be_watched_are_said() -> None:
    assert watched("pass", NoGpus("nvidia-ml-py is not installed")).gpu_telemetry == "nvidia-ml-py is not installed"


def conditions_of(events: Sequence[JobEvent]) -> list[Conditions]:
    return [event.run.conditions for event in events if isinstance(event, ProcessDone)]


def test_every_process_of_a_real_job_is_described(tiny_model: Path) -> None:
    """On a real wheel: pinned cores with their node, a warm model, counts of the kernel."""
    states = conditions_of(list(run_job(job_of(wheel_arm(tiny_model)), 1, RunWholeSchedule())))
    assert len(states) == 2
    for state in states:
        assert len(state.cpus) == state.threads
        assert state.numa_nodes == (0,)
        assert state.model_cached is not None
        assert state.model_cached > 0.99  # the kernel may take a page back
        assert state.foreign_load is not None
        assert state.major_faults is not None
        assert state.queue_wait_s is not None
        assert state.gpus == ()


def page_cache_job(model: Path, page_cache: PageCache, **more: bool) -> list[JobEvent]:
    design = Design(
        **{name: getattr(QUICK, name) for name in ("warmup", "repetitions", "burn_in", "blocks", "timeout_s")},
        quiet=Quiet(page_cache=page_cache, **more),
    )
    return list(run_job(job_of(wheel_arm(model), design=design), 1, RunWholeSchedule()))


@pytest.fixture
def cold_model(tiny_model: Path, tmp_path: Path) -> Path:
    """A copy of the model that is on the disk alone."""
    copy = tmp_path / "model.gguf"
    copy.write_bytes(tiny_model.read_bytes())
    drop([copy])
    if resident_share([copy]) != 0.0:
        pytest.skip("files of this file system never leave the memory")
    return copy


def test_a_cold_model_is_read_first_and_that_is_said(cold_model: Path) -> None:
    """Its hash is known from a first job, so that nothing else reads it before the second one's burn-in."""
    page_cache_job(cold_model, PageCache.LEFT)
    drop([cold_model])
    events = page_cache_job(cold_model, PageCache.WARM)
    assert [state.model_cached for state in conditions_of(events)] == [1.0, 1.0]
    said = [event.message for event in events if isinstance(event, Progress)]
    assert [message for message in said if "page cache" in message] == [
        "reading model.gguf into the page cache, 0.0 GiB"
    ]


def test_a_cold_start_is_cold_for_every_process(cold_model: Path) -> None:
    events = page_cache_job(cold_model, PageCache.COLD)
    assert [state.model_cached for state in conditions_of(events)] == [0.0, 0.0]
    assert all(event.run.failure is None for event in events if isinstance(event, ProcessDone))


def test_an_unpinned_engine_may_run_anywhere(tiny_model: Path) -> None:
    states = conditions_of(page_cache_job(tiny_model, PageCache.LEFT, pinned=False))
    assert [state.cpus for state in states] == [(), ()]
    assert all(state.foreign_load is not None for state in states)
