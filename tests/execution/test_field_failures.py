"""Failures that people reported, replayed: what was written and how it ended, through the supervisor to the failure.

The engine is the marked stand-in, since no real one does these things on demand. The names are those of the field
reports (docs/reference/field-reports.md).
"""

from __future__ import annotations

import math
import signal
from pathlib import Path

import pytest
from job_support import QUICK, WORKLOADS, job_of, standin_arm

from harness.domain.case import Case, FloorCheck
from harness.domain.failure import Failure, FailureKind
from harness.domain.measurement import ProcessRun
from harness.domain.policy import Policy
from harness.domain.stopping import RunWholeSchedule
from harness.domain.words import Kind, Status
from harness.execution.events import Finished, ProcessDone
from harness.execution.node import probe_node
from harness.execution.run_job import run_job
from harness.judging.judge import judge
from harness.judging.record import JobRecord

TABLE = "| model | size | params | backend | ngl | test | t/s |\n| --- | --- | --- | --- | --- | --- | --- |\n"
USAGE = "usage: llama-bench [options]\n  -m, --model <filename> (default: models/7B/ggml-model-q4_0.gguf)\n"
MANY = 1_000_000_000.0


def replayed(folder: Path, model: Path, **told: object) -> ProcessRun:
    """The first process of an arm that does as reported."""
    job = job_of(standin_arm(folder / "standin", model, "replay", **told), design=QUICK)
    events = list(run_job(job, 1, RunWholeSchedule()))
    assert isinstance(events[-1], Finished)
    assert events[-1].failure is None
    return next(event for event in events if isinstance(event, ProcessDone)).run


CRASHES = {
    "fattn-fatal": (
        {"stdout": TABLE, "stderr": "/src/fattn.cu:66: fatal error\nAborted (core dumped)\n", "code": 134},
        "E-crash",
        "crashed with SIGABRT: /src/fattn.cu:66: fatal error",
    ),
    "fmoe-illegal": (
        {"stderr": "CUDA error: an illegal memory access was encountered\n", "signal": signal.SIGABRT},
        "E-gpu-error",
        "an illegal memory access was encountered",
    ),
    "moe-bench-abort": (
        {"stderr": "ggml-cuda.cu:90: CUDA error\nCUDA error: invalid argument\n", "signal": signal.SIGABRT},
        "E-gpu-error",
        "CUDA error",
    ),
    "xid31": (
        {"stdout": "[\n", "stderr": "CUDA error: unspecified launch failure\n", "signal": signal.SIGABRT},
        "E-gpu-error",
        "unspecified launch failure",
    ),
    "rtr-assert": (
        {"stderr": "iqk_mul_mat.cpp:1: GGML_ASSERT(nrc_x%8 == 0) failed\n", "code": 134},
        "E-crash",
        "GGML_ASSERT(nrc_x%8 == 0) failed",
    ),
    "ncmoe-vendor": ({"signal": signal.SIGSEGV}, "E-crash", "SIGSEGV; missing: pp32, tg4"),
    "ub1024-crash": ({"stdout": "[\n", "signal": signal.SIGSEGV}, "E-crash", "SIGSEGV; missing: pp32, tg4"),
    "compare-commits-pipe": ({"code": 139}, "E-crash", "SIGSEGV"),
    "oom-class, killed": ({"code": 137}, "E-killed", "perhaps by the kernel's memory killer"),
    "oom-class, no word of memory": ({"stderr": "zoom and room: gloomy\n", "code": 1}, "E-exit-code", "exit code 1"),
}
REFUSED = {
    "no-kernel": (
        {
            "stderr": "CUDA error: no kernel image is available for execution on the device\n",
            "signal": signal.SIGABRT,
        },
        "E-gpu-code-missing",
        "no code for this GPU",
    ),
    "ik-stoi-abort": (
        {
            "stderr": "terminate called after throwing an instance of 'std::invalid_argument'\n  what():  stoi\n",
            "signal": signal.SIGABRT,
        },
        "E-argument-refused",
        "cannot read as a number (stoi)",
    ),
    "mmap-removed": (
        {"stdout": USAGE, "stderr": "error: invalid argument: --mmap\n", "code": 1},
        "E-argument-refused",
        "the argument --mmap",
    ),
    "fa-bare": (
        {"stdout": USAGE, "stderr": "error: invalid parameter for argument: -fa\n", "code": 1},
        "E-argument-refused",
        "the argument -fa",
    ),
    "ik-usage-stdout": (
        {"stdout": USAGE + "ROWS", "stderr": "error: invalid parameter for argument: -fmo\n", "code": 1},
        "E-argument-refused",
        "the argument -fmo",
    ),
    "ik-ot-buft, ik_llama.cpp": (
        {"stderr": "Available buffer types:\n  CPU\nerror: Invalid buft override argument exps=CUDA0\n", "code": 1},
        "E-argument-refused",
        "exps=CUDA0",
    ),
    "ik-ot-buft, llama.cpp": (
        {"stdout": "Available buffer types:\n  CPU\nerror: unrecognized buffer type 'CUDA0'\n", "code": 1},
        "E-argument-refused",
        "'CUDA0'",
    ),
}
SHORTAGES = {
    "oom-class, bad_alloc": (
        {"stderr": "terminate called after throwing an instance of 'std::bad_alloc'\n", "code": 134},
        "E-out-of-memory",
        "std::bad_alloc",
    ),
    "fit-cpu-moe-abort": (
        {
            "stderr": "llama_params_fit: tensor_buft_overrides already set by user, abort\n"
            "ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed: out of memory\n",
            "code": 1,
        },
        "E-out-of-memory",
        "nothing was fitted: llama_params_fit: tensor_buft_overrides already set by user, abort",
    ),
    "ts-separator": (
        {"stderr": "allocating 32768.00 MiB on device 0: cudaMalloc failed: out of memory\n", "code": 1},
        "E-out-of-memory",
        "allocating 32768.00 MiB on device 0",
    ),
}
NO_ROWS = {
    "empty-table": ({"stdout": TABLE}, "E-rows-missing", "0 of 2 rows, missing: pp32, tg4"),
    "malformed-fake-success": ({"stdout": "all tests passed\n"}, "E-rows-missing", "0 of 2 rows"),
    "zero-rows-ok": ({"stdout": "[]\n"}, "E-rows-missing", "0 of 2 rows"),
}
ALL = {
    name: (told, kind, slug, said)
    for kind, table in (
        (FailureKind.CRASH, CRASHES),
        (FailureKind.REFUSED, REFUSED),
        (FailureKind.OUT_OF_MEMORY, SHORTAGES),
        (FailureKind.UNPARSABLE, NO_ROWS),
    )
    for name, (told, slug, said) in table.items()
}


@pytest.mark.parametrize("report", ALL)
def test_a_reported_failure_has_its_kind_and_its_words(tmp_path: Path, tiny_model: Path, report: str) -> None:
    """None of them is a measurement, and only a crash or a shortage of memory is the candidate's."""
    told, kind, slug, said = ALL[report]
    failure = failure_of(replayed(tmp_path, tiny_model, **told))
    assert (failure.kind, failure.slug) == (kind, slug), failure.message
    assert said in failure.message
    assert failure.blames_candidate == (kind in (FailureKind.CRASH, FailureKind.OUT_OF_MEMORY))


def test_a_program_that_timeout_ended_was_not_short_of_memory(tmp_path: Path, tiny_model: Path) -> None:
    """Report oom-class: 124 is a timeout, whatever the log says before."""
    failure = failure_of(replayed(tmp_path, tiny_model, stderr="std::bad_alloc\n", code=124))
    assert (failure.kind, failure.blames_candidate) == (FailureKind.TIMEOUT, False)


def test_rows_of_a_process_that_ended_badly_are_not_success(tmp_path: Path, tiny_model: Path) -> None:
    """Report exit-then-score: a whole output, and exit code 1. A floor far below its speed is not met by it."""
    run = replayed(tmp_path, tiny_model, stdout="ROWS", code=1)
    assert failure_of(run).kind is FailureKind.CRASH
    assert "whole rows: pp32, tg4" in failure_of(run).message
    job = job_of(standin_arm(tmp_path / "standin", tiny_model, "replay"), design=QUICK)
    case = Case(Kind.THROUGHPUT, job.arms, WORKLOADS[0], job.node_class, FloorCheck(1.0))
    verdict = judge(case, JobRecord(job, (run,), None, probe_node()), Policy())
    assert (verdict.status, verdict.slug) == (Status.FAIL, "E-exit-code")


def test_rows_before_the_end_of_an_open_array_are_kept(tmp_path: Path, tiny_model: Path) -> None:
    """Report ik-json-unclosed: a crash in the middle, and an early return in the middle."""
    for name, told in (("crash", {"signal": signal.SIGSEGV}), ("return", {"code": 1}), ("silent", {})):
        run = replayed(tmp_path / name, tiny_model, stdout="CUT\n", **told)
        assert [samples.workload for samples in run.samples] == ["pp32"]
        assert "missing: tg4" in failure_of(run).message


@pytest.mark.parametrize(
    ("tps", "said"),
    [(MANY, "above the ceiling"), (math.inf, "0 ns is no duration")],
    ids=["ik-decode-ignored", "zero-rows-ok"],
)
def test_a_speed_that_cannot_be_is_no_measurement(tmp_path: Path, tiny_model: Path, tps: float, said: str) -> None:
    """Exit code 0 and a whole output: a decode that failed and was ignored, and times of nothing."""
    run = replayed(tmp_path, tiny_model, stdout="ROWS", tps=tps)
    assert run.samples == ()
    assert failure_of(run).kind is FailureKind.IMPLAUSIBLE
    assert said in failure_of(run).message


def test_a_model_in_a_folder_with_spaces_is_measured(tmp_path: Path, tiny_model: Path) -> None:
    """Report malformed-fake-success: arguments go to the program as they are, never through a shell."""
    folder = tmp_path / "my models; $(touch made) & 'more'"
    folder.mkdir()
    model = folder / "tiny model.gguf"
    model.symlink_to(tiny_model)
    run = replayed(tmp_path / "a b", model, stdout="ROWS")
    assert run.failure is None
    assert [samples.workload for samples in run.samples] == ["pp32", "tg4"]
    assert not list(tmp_path.rglob("made"))


def failure_of(run: ProcessRun) -> Failure:
    assert run.failure is not None
    return run.failure
