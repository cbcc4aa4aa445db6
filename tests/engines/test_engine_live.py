"""Both wheels really run: what the parent asks, the child does, and what the child says, the parent believes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from engine_support import PROFILE, order, wheel_build

from harness.domain.build import Fork
from harness.domain.failure import FailureKind
from harness.domain.flags import FlagValue
from harness.domain.workload import Workload
from harness.engines.engine import Exit, Order, Report
from harness.engines.flags import complete
from harness.engines.registry import engine_for

WORKLOADS = (Workload(32, 0), Workload(0, 8), Workload(16, 8), Workload(0, 8, 64), Workload(16, 0, 64))
REWRITING: dict[Fork, dict[str, FlagValue]] = {Fork.IK_LLAMA_CPP: {"rtr": 1}, Fork.LLAMA_CPP: {"repack": 0, "mmap": 0}}


def asked(fork: Fork, model: Path, **flags: FlagValue) -> Order:
    build = wheel_build(fork)
    whole = complete(build, flags)
    return order(build, WORKLOADS, flags=whole, repetitions=2, outputs=PROFILE, model=model, threads=2)


def run(wanted: Order) -> Report:
    """Start the engine as execution does, without its supervision."""
    engine = engine_for(wanted.arm.build)
    assert engine.refusal(wanted) == ""
    command = engine.command(wanted)
    environment = {"PATH": os.environ["PATH"], **command.environment}
    done = subprocess.run(
        command.argv, input=command.stdin, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    code = done.returncode
    ended = Exit(code if code >= 0 else None, -code if code < 0 else None, False, done.stdout, done.stderr)
    return engine.read(wanted, ended)


@pytest.mark.parametrize("fork", list(Fork))
@pytest.mark.parametrize("rewriting", [False, True])
def test_every_workload_is_timed_and_every_flag_echoed(fork: Fork, tiny_model: Path, *, rewriting: bool) -> None:
    """At depths too, and with flags that change tensors while they are loaded."""
    report = run(asked(fork, tiny_model, **(REWRITING[fork] if rewriting else {})))
    assert report.failure is None
    assert [row.workload for row in report.rows] == [load.name for load in WORKLOADS]
    assert all(len(row.samples_ns) == 2 for row in report.rows)
    assert [output.prompt for output in report.outputs] == [prompt.name for prompt in PROFILE.prompts]
    assert report.outputs[0].logits_sha256
    assert report.load_s is not None
    assert "not_echoed" not in report.engine
    assert "libraries" in report.engine


@pytest.mark.parametrize("fork", list(Fork))
def test_a_child_that_ran_other_flags_than_asked_is_found_out(fork: Fork, tiny_model: Path) -> None:
    """Planted fault: the child is told fa 0, the order says 1."""
    told = asked(fork, tiny_model, fa=0)
    engine = engine_for(told.arm.build)
    command = engine.command(told)
    done = subprocess.run(
        command.argv,
        input=command.stdin,
        env=command.environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    report = engine.read(asked(fork, tiny_model, fa=1), Exit(0, None, False, done.stdout, done.stderr))
    assert report.rows == ()
    assert report.failure is not None
    assert report.failure.kind is FailureKind.ECHO_MISMATCH
    assert "flash_attn" in report.failure.message


@pytest.mark.parametrize("fork", list(Fork))
def test_a_missing_model_and_an_unknown_buffer_type_are_told_apart(fork: Fork, tiny_model: Path) -> None:
    missing = run(asked(fork, tiny_model.with_name("none.gguf")))
    assert missing.failure is not None
    assert missing.failure.kind is FailureKind.INPUT_MISSING
    unknown = run(asked(fork, tiny_model, ot="exps=NOWHERE"))
    assert unknown.failure is not None
    assert unknown.failure.kind is FailureKind.REFUSED
    assert "NOWHERE" in unknown.failure.message


@pytest.mark.parametrize("fork", list(Fork))
def test_a_file_that_is_no_model_is_refused(fork: Fork, tmp_path: Path) -> None:
    (tmp_path / "not.gguf").write_bytes(b"not a model")
    report = run(asked(fork, tmp_path / "not.gguf"))
    assert report.failure is not None
    assert report.failure.kind is FailureKind.REFUSED
