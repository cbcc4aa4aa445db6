"""A stand-in for the work of a job, for ``cost_per_job.py``: jobs that take no time. Marked as such; never shipped.

As a plugin of pytest (``-p cost_standin``) it puts ``instant_job`` in the place of ``run_job``, so that Ray's workers
tell of processes that never ran, and writes to the file of ``MOE_COST`` what the parts of the run took.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

import psutil
import pytest

from harness.domain.job import Job
from harness.domain.measurement import Conditions, ProcessRun, Samples, Step
from harness.domain.node import NodeFacts
from harness.domain.stopping import JobEnd, StoppingRule
from harness.execution import ray_executor
from harness.execution.events import Finished, JobEvent, ProcessDone, Progress, Started
from harness.execution.node import probe_node

ONCE = "once: Ray's start and the first job"
"""A part whose length scatters by more than many jobs take."""
_EVERY = 100
"""Cases between two looks at the driver's memory."""
_NS = 1_000_000
_known_node = cache(probe_node)


def instant_job(
    job: Job,
    attempt: int,
    rule: StoppingRule,
    should_stop: Callable[[], bool] = lambda: False,
    environment: Mapping[str, str] | None = None,
) -> Iterator[JobEvent]:
    """The events of a whole schedule, as ``run_job`` tells them, and nothing is run."""
    del rule, should_stop, environment
    yield Started(job.id, attempt, _known_node(), "instant")
    yield Progress(job.id, attempt, "preparing models", preparing=True)
    steps = [Step(arm, block) for block in range(-1, job.design.blocks) for arm in range(len(job.arms))]
    for number, step in enumerate(steps):
        yield Progress(job.id, attempt, f"process {number + 1} of {len(steps)}")
        yield ProcessDone(job.id, attempt, _instant_run(job, step, number, _known_node()))
    yield Finished(job.id, attempt, None, JobEnd.SCHEDULE)


def events_of(design_blocks: int) -> int:
    """How many events a job of one arm tells."""
    return 3 + 2 * (1 + design_blocks)


def _instant_run(job: Job, step: Step, number: int, node: NodeFacts) -> ProcessRun:
    warmup, repetitions = job.design.warmup, job.design.repetitions
    times = tuple(_NS + 1000 * (number + each) for each in range(warmup + repetitions))
    samples = tuple(Samples(load.name, load.tokens, times, warmup) for load in job.workloads)
    conditions = Conditions(node.niceness, (0,), 1, 0.0, numa_nodes=(0,), model_cached=1.0, foreign_load=0.0)
    return ProcessRun(step, "instant", samples, (), 0.01, 0.001, 1 << 20, conditions, {"version": "instant"})


# ---- what the run takes ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Taken:
    """Seconds of CPU by part of the run, and memory.

    Attributes:
        driver_s: By part, of the driver.
        others_s: Of Ray's processes, from the first case to the last.
        rss_bytes: Of the driver, by the number of cases decided.
    """

    driver_s: dict[str, float] = field(default_factory=dict)
    others_s: float = 0.0
    rss_bytes: dict[int, int] = field(default_factory=dict)


_taken = Taken()
_began = {"at": 0.0, "cases": 0, "others": 0.0}


def cpu_of_others() -> float:
    """Seconds of CPU of all processes below this one."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            total += sum(process.cpu_times())
        except psutil.NoSuchProcess:
            continue
    return total


def _part(name: str) -> None:
    now = time.process_time()
    _taken.driver_s[name] = now - _began["at"]
    _began["at"] = now


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Before anything is planned."""
    ray_executor.run_job = instant_job
    _began["at"] = time.process_time()


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop() -> Generator[None, object, object]:
    """The jobs; before them the plan and the collection."""
    _part("plan and collection")
    result = yield
    _part("run")
    _taken.others_s = cpu_of_others() - _began["others"]
    return result


def pytest_runtest_logstart() -> None:
    """What is there once ends with the first case."""
    if ONCE not in _taken.driver_s:
        _part(ONCE)
        _began["others"] = cpu_of_others()


def pytest_runtest_logfinish() -> None:
    """Look at the memory now and then."""
    _began["cases"] += 1
    if _began["cases"] % _EVERY == 0:
        _taken.rss_bytes[int(_began["cases"])] = psutil.Process().memory_info().rss


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish() -> Generator[None, object, object]:
    """The end of Ray, and the reports."""
    result = yield
    _part("reports")
    return result


@pytest.hookimpl(wrapper=True)
def pytest_terminal_summary() -> Generator[None, object, object]:
    """The closing table."""
    result = yield
    _part("closing table")
    Path(os.environ["MOE_COST"]).write_text(json.dumps(asdict(_taken)), encoding="utf-8")
    return result
