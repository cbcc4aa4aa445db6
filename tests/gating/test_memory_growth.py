"""Peak memory of a candidate over its baseline's: of which processes, where, and what is no measurement."""

from __future__ import annotations

from collections.abc import Sequence

from gate_support import NEW, OLD, TG, improved, speed, state, verdict

from harness.domain.failure import Failure, FailureKind
from harness.domain.job import Design, Job
from harness.domain.measurement import Conditions, GpuState, ProcessRun, Step
from harness.domain.node import NodeClass
from harness.gating.cells import joined
from harness.gating.trading import Growth, groups_of
from harness.reporting.state import JobTry

Peak = tuple[float, float]
"""Resident memory in bytes, and what the engine took of its GPU."""


def gpu(peak: float | None, *, before: float | None = 50.0, used: bool = True) -> GpuState:
    bytes_of = [None if value is None else int(value) for value in (before, peak)]
    return GpuState("gpu-0", "1", used, 3, memory_before_bytes=bytes_of[0], memory_peak_bytes=bytes_of[1])


def run(arm: int, block: int, resident: float, *gpus: GpuState, failure: Failure | None = None) -> ProcessRun:
    conditions = Conditions(0, (), 1, 0.0, gpus=gpus)
    return ProcessRun(Step(arm, block), f"key{arm}", (), (), 1.0, None, int(resident), conditions, {}, failure)


def growth(runs: Sequence[ProcessRun]) -> Growth | None:
    """Of the one pair of a journal with these processes."""
    job = Job((OLD, NEW), (), None, NodeClass("any"), Design(), ())
    journal = state(
        (speed(), verdict(speed())),
        (speed(TG), improved(speed(TG))),
        jobs={"job-1": JobTry(1, job, runs=tuple(runs), finished=True)},
    )
    (group,) = groups_of(joined([journal]).cells).values()
    return group.growth


def test_bounds_are_of_the_peaks_that_are_furthest_from_each_other() -> None:
    """The value is of the largest ones."""
    found = growth([run(0, 0, 100), run(0, 1, 80), run(1, 0, 110), run(1, 1, 120)])
    assert found == Growth(1.2, 1.1, 1.5, "resident")


def test_a_peak_of_nothing_is_no_measurement() -> None:
    """It neither makes a bound nor is divided by; without any other there is no growth."""
    found = growth([run(0, 0, 100), run(0, 1, 0), run(1, 0, 0), run(1, 1, 120)])
    assert found == Growth(1.2, 1.2, 1.2, "resident")
    assert growth([run(0, 0, 0), run(1, 0, 100)]) is None
    assert growth([run(0, 0, 100), run(1, 0, 0)]) is None


def test_of_a_gpu_counts_what_the_engine_took_of_it() -> None:
    """Less what others held before; a GPU that it did not use, or that tells nothing, is left out."""
    idle = gpu(9_000, used=False)
    found = growth([run(0, 0, 100, gpu(150), idle), run(1, 0, 101, gpu(250), idle)])
    assert found == Growth(2.0, 2.0, 2.0, "GPU")
    untold = growth([run(0, 0, 100, gpu(None)), run(1, 0, 101, gpu(None))])
    assert (untold and untold.where) == "resident"
    found = growth([run(0, 0, 100, gpu(100, before=None)), run(1, 0, 101, gpu(150, before=None))])
    assert found == Growth(1.5, 1.5, 1.5, "GPU")


def test_processes_that_failed_or_were_asked_for_answers_are_not_like_the_others() -> None:
    """A burn-in, too, is not scored."""
    crash = Failure(FailureKind.CRASH, "it crashed", "E-crash")
    found = growth([run(0, 0, 100), run(1, 0, 110), run(1, -1, 900), run(1, 1, 900, failure=crash)])
    assert found is not None
    assert found.value == 1.1
