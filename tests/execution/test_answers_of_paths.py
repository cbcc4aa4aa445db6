"""Builds by path answer prompts through the program beside their bench: which one, in which process, and what if none.

The servers are stand-ins that answer as ik_llama.cpp's does by its source, with faults that a real one can't be made
to have.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
from pathlib import Path

import pytest
from job_support import ANY, QUICK, processes_below

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.case import Case, ContrastCheck, Expectation, OutputCheck
from harness.domain.failure import FailureKind
from harness.domain.job import Design, Job
from harness.domain.measurement import ProcessRun
from harness.domain.model import Model
from harness.domain.outputs import Source
from harness.domain.policy import Policy
from harness.domain.stopping import RunWholeSchedule
from harness.domain.words import Kind, Status
from harness.domain.workload import OutputProfile, Prompt, Workload
from harness.engines.flags import complete
from harness.execution.events import Finished, ProcessDone
from harness.execution.run_job import run_job
from harness.judging.judge import judge
from harness.judging.record import JobRecord
from harness.ranking import unpack

TESTS = Path(__file__).parent.parent
SERVER, BENCH = TESTS / "standin" / "fake_server.py", TESTS / "standin" / "llama_bench.py"
ANSWERS = TESTS / "engines" / "fake_answers.py"
PROFILE = OutputProfile("o", (Prompt("a", "Hello", "world"), Prompt("b", "Good", "day")), 6, 4, forced=3, top=8)
FAST = dataclasses.replace(QUICK, timeout_s=8.0)


def _program(source: Path, target: Path) -> None:
    text = source.read_text(encoding="utf-8")
    target.write_text(text.replace("#!/usr/bin/env python3", f"#!{sys.executable}", 1), encoding="utf-8")
    shutil.copymode(source, target)


def _arm(folder: Path, model: Path, do: str = "rows", *, server: bool = True) -> Arm:
    """An arm on stand-ins in a folder of its own; the server is a script, so its bytes tell little."""
    folder.mkdir(parents=True)
    _program(BENCH, folder / "llama-bench")
    if server:
        _program(SERVER, folder / "llama-server")
        shutil.copy(ANSWERS, folder)
    (folder / "standin.json").write_text(json.dumps({"do": do, "tps": 100.0}))
    build = Build(f"standin-{folder.name}", Fork.IK_LLAMA_CPP, path=str(folder))
    return Arm(build, Model("tiny", path=str(model)), complete(build, {}))


def _run(*arms: Arm, outputs: OutputProfile = PROFILE, design: Design = QUICK) -> list[ProcessRun]:
    job = Job(arms, (Workload(32, 0),), outputs, ANY, design, cases=())
    events = list(run_job(job, 1, RunWholeSchedule()))
    (finished,) = [event for event in events if isinstance(event, Finished)]
    assert finished.failure is None
    return [event.run for event in events if isinstance(event, ProcessDone)]


def test_a_server_beside_the_bench_answers_in_a_process_of_its_own(tmp_path: Path, tiny_model: Path) -> None:
    runs = _run(_arm(tmp_path / "a", tiny_model), _arm(tmp_path / "b", tiny_model))
    assert [run.failure for run in runs] == [None] * len(runs)
    apart, timed = [run for run in runs if run.step.apart], [run for run in runs if not run.step.apart]
    assert ([run.step.arm for run in apart], runs[:2] == apart) == ([0, 1], True)
    assert all(run.samples and not run.outputs for run in timed)
    for run in apart:
        assert not run.samples
        assert [output.prompt for output in run.outputs] == ["a", "b"]
        for output in run.outputs:
            assert (output.source, len(output.tokens), output.forced_at) == (Source.SERVER, 6, (0, 1, 2))
            assert output.greedy
            assert output.forced
            assert unpack(output.greedy).ids[:, 0].tolist() == list(output.tokens)
            assert [ord(char) for char in output.text if char != "\ufffd"] == [t for t in output.tokens if t < 0x80]
            assert len(output.text) == len(output.tokens), "what is no UTF-8 is replaced, the rest is there"
            assert (output.greedy.top, output.forced.positions, output.prefill) == (8, 3, None)
    assert {run.content_key for run in apart}.isdisjoint(run.content_key for run in timed)
    assert apart[0].outputs == apart[1].outputs
    assert not processes_below(tmp_path)


@pytest.mark.parametrize(
    ("do", "failure"),
    [
        ("never_ready", (FailureKind.TIMEOUT, "E-server-not-ready", "Loading model")),
        ("die_loading", (FailureKind.OUT_OF_MEMORY, "E-out-of-memory", "before it was ready")),
        ("die_answering", (FailureKind.CRASH, "E-crash", "at prompt a: crashed")),
        ("torn", (FailureKind.CRASH, "E-stream-truncated", "the answer broke off at prompt a")),
        ("garbage", (FailureKind.CRASH, "E-stream-truncated", "an event is not JSON")),
        ("cut", (FailureKind.CRASH, "E-stream-truncated", "it has no end after")),
        ("truncated", (FailureKind.CRASH, "E-stream-truncated", "in the middle of a line")),
        ("error_event", (FailureKind.CRASH, "E-answer-error", "500 failed to find free space in the KV cache")),
        ("hang_answering", (FailureKind.TIMEOUT, "E-answer-timeout", "not done in time at prompt a")),
        ("ping", (FailureKind.TIMEOUT, "E-answer-timeout", "not done in time at prompt a: it still goes on")),
        ("cut_prompt", (FailureKind.REFUSED, "E-prompt-too-long", "cut the prompt of 6 tokens to 4 at prompt a")),
        ("error_500", (FailureKind.CRASH, "E-answer-error", "500 failed to decode the batch")),
        ("too_long", (FailureKind.REFUSED, "E-prompt-too-long", "exceeds the available context size")),
        ("too_long_ik", (FailureKind.REFUSED, "E-prompt-too-long", "exceeds the available context size")),
        ("no_tokenizer", (FailureKind.CRASH, "E-answer-error", "no token ids")),
        ("no_logprobs", (FailureKind.ECHO_MISMATCH, "E-logprobs-missing", "at prompt a")),
        ("no_ids", (FailureKind.ECHO_MISMATCH, "E-answer-mismatch", "a token has no id")),
        ("other_prompt", (FailureKind.ECHO_MISMATCH, "E-answer-mismatch", "it answers a prompt of 99 tokens, asked 6")),
        ("few_logprobs", (FailureKind.ECHO_MISMATCH, "E-logprobs-missing", "3 tokens are ranked at each place, asked")),
        ("foreign", (FailureKind.HARNESS, "E-server-foreign", "its model is /somewhere/else.gguf")),
    ],
)
def test_each_fault_of_a_server_has_its_name_and_costs_no_timing(
    tmp_path: Path, tiny_model: Path, do: str, failure: tuple[FailureKind, str, str]
) -> None:
    runs = _run(_arm(tmp_path / do, tiny_model, do), design=FAST)
    apart, *timed = runs
    assert apart.failure
    kind, slug, words = failure
    assert (apart.failure.kind, apart.failure.slug) == (kind, slug), apart.failure
    assert words in apart.failure.message
    assert not apart.outputs
    assert timed
    assert all(run.samples for run in timed)
    assert not processes_below(tmp_path)


def test_a_bench_that_crashes_does_not_cost_the_answers(tmp_path: Path, tiny_model: Path) -> None:
    """Another program of the build gives them, and they are judged by themselves: the speed fails, the outputs pass."""
    arms = _arm(tmp_path / "rows", tiny_model), _arm(tmp_path / "crash", tiny_model, "crash")
    design = dataclasses.replace(QUICK, calibration=True)  # two servers of the same bytes are a contrast here
    runs = _run(*arms, design=design)
    assert [run.step.apart for run in runs if run.failure] == [False]
    record = JobRecord(Job(arms, (Workload(32, 0),), PROFILE, ANY, design, cases=()), tuple(runs))
    outputs = Case(Kind.EQUIVALENCE, arms, PROFILE, ANY, OutputCheck("c", "build"))
    assert judge(outputs, record, Policy()).status is Status.PASS
    speed = Case(Kind.THROUGHPUT, arms, Workload(32, 0), ANY, ContrastCheck("c", "build", Expectation.NO_REGRESSION))
    assert judge(speed, record, Policy()).slug == "E-crash"


def test_what_was_answered_before_a_fault_is_kept_and_the_rest_is_missing(tmp_path: Path, tiny_model: Path) -> None:
    apart, *_ = _run(_arm(tmp_path / "late", tiny_model, "die_second"), design=FAST)
    assert apart.failure
    assert "at prompt b" in apart.failure.message
    assert [output.prompt for output in apart.outputs] == ["a"]


def test_nan_is_told_as_not_finite_and_is_no_failure(tmp_path: Path, tiny_model: Path) -> None:
    """The judge calls it broken; a failure would blame the harness's way of asking."""
    apart, *_ = _run(_arm(tmp_path / "nan", tiny_model, "nan"))
    assert apart.failure is None
    assert [output.finite for output in apart.outputs] == [False, False]
    assert apart.outputs[0].margins is None


def test_without_a_server_the_outputs_are_unsupported_and_the_speed_is_measured(
    tmp_path: Path, tiny_model: Path
) -> None:
    both = _arm(tmp_path / "with", tiny_model), _arm(tmp_path / "without", tiny_model, server=False)
    runs = _run(*both)
    apart = [run for run in runs if run.step.apart]
    for run in apart:
        assert run.failure
        assert run.failure.kind is FailureKind.UNSUPPORTED
        assert run.failure.message == (
            "no llama-server lies beside llama-bench in build 'standin-without', and llama-bench gives no outputs: "
            "compile with the target llama-server"
        )
    assert all(run.samples for run in runs if not run.step.apart)


def test_a_build_of_another_tokenizer_answers_other_tokens(tmp_path: Path, tiny_model: Path) -> None:
    """No failure of the process: the judge sees unlike prompts and calls that broken."""
    one, other = _arm(tmp_path / "one", tiny_model), _arm(tmp_path / "other", tiny_model, "other_tokenizer")
    ours, theirs = (run.outputs[0] for run in _run(one, other) if run.step.apart)
    assert ours.prompt_tokens != theirs.prompt_tokens
