"""Jobs that are answered by servers: faults named, figures whole, and nothing left behind whatever goes wrong."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from job_support import ANY, QUICK, processes_below

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.failure import Failure, FailureKind
from harness.domain.job import Design, Job
from harness.domain.measurement import ProcessRun
from harness.domain.model import Model
from harness.domain.stopping import StoppingRule
from harness.domain.workload import Metric, ProfileWorkload, PromptProfile
from harness.engines.flags import complete
from harness.execution.events import Finished, ProcessDone
from harness.execution.run_job import run_job

STANDIN = Path(__file__).parent.parent / "standin" / "fake_server.py"
CHAT = PromptProfile("chat", "Hello", 6)
TIMED = tuple(ProfileWorkload(CHAT, metric) for metric in Metric if metric is not Metric.PEAK)
FAST = dataclasses.replace(QUICK, timeout_s=4.0)


class _Everything(StoppingRule):
    """Decides nothing."""

    def undecided(self, job: Job, runs: object) -> frozenset[str]:  # noqa: ARG002 - the protocol's signature
        return frozenset(load.name for load in job.workloads)


def _arm(folder: Path, model: Path, do: str, **told: object) -> Arm:
    """An arm on a stand-in server that lies in a folder of its own and does as told."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "llama-server"
    text = STANDIN.read_text(encoding="utf-8")
    program.write_text(text.replace("#!/usr/bin/env python3", f"#!{sys.executable}", 1), encoding="utf-8")
    shutil.copymode(STANDIN, program)
    (folder / "standin.json").write_text(json.dumps({"do": do, **told}))
    build = Build(f"standin-{folder.name}", Fork.IK_LLAMA_CPP, path=str(folder))
    return Arm(build, Model("tiny", path=str(model)), complete(build, {}))


def _job(*arms: Arm, design: Design = QUICK) -> Job:
    return Job(arms, TIMED, None, ANY, design, cases=())


def _run(job: Job, should_stop: Callable[[], bool] = lambda: False) -> tuple[list[ProcessRun], Failure | None]:
    events = list(run_job(job, 1, _Everything(), should_stop))
    runs = [event.run for event in events if isinstance(event, ProcessDone)]
    (finished,) = [event for event in events if isinstance(event, Finished)]
    return runs, finished.failure


def test_a_job_of_requests_has_all_quantities_of_every_process(tmp_path: Path, tiny_model: Path) -> None:
    """Cold starts are one sample a process, of which none is warm-up; the others are as of any workload."""
    runs, failure = _run(
        _job(_arm(tmp_path / "a", tiny_model, "answer"), _arm(tmp_path / "b", tiny_model, "answer", ms=2.0))
    )
    assert failure is None
    assert [run.failure for run in runs] == [None] * 4
    for run in runs:
        found = {entry.workload: (entry.tokens, len(entry.all_ns), entry.discarded) for entry in run.samples}
        assert found == {
            "chat.cold": (1, 1, 0),
            "chat.ttft": (1, 3, 1),
            "chat.prefill": (6, 3, 1),
            "chat.decode": (5, 3, 1),
        }
        assert run.engine["prompt[chat]"].startswith("6 tokens")
        assert (run.engine["build_number"], run.engine["build_commit"]) == ("42", "abc123")
        assert run.load_s is not None
        assert run.max_rss_bytes > 1 << 20, "the server's memory, not only the child's"
    assert len({run.content_key for run in runs}) >= 2, "a script's key is new each time"
    assert not processes_below(tmp_path)


@pytest.mark.parametrize(
    ("do", "failure"),
    [
        ("never_ready", (FailureKind.TIMEOUT, "E-server-not-ready", "not ready after 2 s (it says 'Loading model')")),
        ("die_loading", (FailureKind.OUT_OF_MEMORY, "E-out-of-memory", "before it was ready: out of memory: ggml")),
        ("exit_0", (FailureKind.CRASH, "E-server-died", "the server ended with exit code 0 before it was ready")),
        (
            "die_answering",
            (FailureKind.CRASH, "E-crash", "signal 11 in the first request of chat: crashed with"),
        ),
        ("hang_answering", (FailureKind.TIMEOUT, "E-answer-timeout", "not done in time in the first request of chat")),
        ("truncated", (FailureKind.CRASH, "E-stream-truncated", "in the middle of a line")),
        ("torn", (FailureKind.CRASH, "E-stream-truncated", "broke off in the first request of chat")),
        ("garbage", (FailureKind.CRASH, "E-stream-truncated", "an event is not JSON")),
        ("no_timings", (FailureKind.CRASH, "E-stream-truncated", "its end has no timings")),
        ("error_event", (FailureKind.CRASH, "E-answer-error", "500 failed to find free space in the KV cache")),
        ("error_500", (FailureKind.CRASH, "E-answer-error", "500 failed to decode the batch")),
        ("error_400", (FailureKind.REFUSED, "E-answer-error", "400 such requests are not liked")),
        ("too_long", (FailureKind.REFUSED, "E-prompt-too-long", "exceeds the available context size")),
        ("no_tokenizer", (FailureKind.CRASH, "E-answer-error", "no token ids")),
        ("short", (FailureKind.ECHO_MISMATCH, "E-answer-mismatch", "it generated 5 tokens, asked 6")),
        ("cached", (FailureKind.ECHO_MISMATCH, "E-answer-mismatch", "processed 3 tokens of prompt, asked 6")),
        ("two_slots", (FailureKind.ECHO_MISMATCH, "E-answer-mismatch", "it has 2 slots, asked 1")),
        ("foreign", (FailureKind.HARNESS, "E-server-foreign", "its model is /somewhere/else.gguf")),
    ],
)
def test_each_fault_of_a_server_has_its_name(
    tmp_path: Path, tiny_model: Path, do: str, failure: tuple[FailureKind, str, str]
) -> None:
    """And costs its own arm alone, and leaves no process behind."""
    runs, of_job = _run(_job(_arm(tmp_path / do, tiny_model, do), design=FAST))
    assert of_job is None
    assert len(runs) == 1, "an arm that failed is not started again"
    assert runs[0].failure
    kind, slug, words = failure
    assert (runs[0].failure.kind, runs[0].failure.slug) == (kind, slug), runs[0].failure
    assert words in runs[0].failure.message
    assert not processes_below(tmp_path)


def test_answers_before_a_fault_are_kept_raw(tmp_path: Path, tiny_model: Path) -> None:
    """A server that dies in its second request has told how long its cold start took."""
    arm = _arm(tmp_path / "late", tiny_model, "answer")
    program = tmp_path / "late" / "llama-server"
    # Dies once the first answer is out.
    program.write_text(
        program.read_text(encoding="utf-8").replace(
            "        self.close_connection = True\n",
            "        self.close_connection = True\n        threading.Timer(0.05, os._exit, [7]).start()\n",
        ).replace("import time\n", "import threading\nimport time\n"),
        encoding="utf-8",
    )  # fmt: skip
    runs, _ = _run(_job(arm, design=dataclasses.replace(FAST, repetitions=200, timeout_s=30.0)))
    assert runs[0].failure
    assert "the server ended with exit code 7 in request" in runs[0].failure.message
    assert [entry.workload for entry in runs[0].samples] == ["chat.cold"]


def test_a_server_that_ignores_being_told_to_end_is_killed(tmp_path: Path, tiny_model: Path) -> None:
    runs, failure = _run(_job(_arm(tmp_path / "deaf", tiny_model, "deaf")))
    assert failure is None
    assert [run.failure for run in runs] == [None, None]
    assert not processes_below(tmp_path)


def test_a_job_that_is_stopped_takes_its_server_with_it(tmp_path: Path, tiny_model: Path) -> None:
    arm = _arm(tmp_path / "hang", tiny_model, "hang_answering")
    stop = threading.Event()

    def stop_when_it_serves() -> None:
        pid_file = tmp_path / "hang" / "server.pid"
        while not pid_file.exists():
            time.sleep(0.02)
        time.sleep(0.3)
        stop.set()

    watcher = threading.Thread(target=stop_when_it_serves)
    watcher.start()
    runs, failure = _run(_job(arm), stop.is_set)
    watcher.join()
    assert failure
    assert failure.kind is FailureKind.INTERRUPTED
    assert runs[0].failure
    assert runs[0].failure.kind is FailureKind.INTERRUPTED
    pid = int((tmp_path / "hang" / "server.pid").read_text())
    assert not os.path.exists(f"/proc/{pid}")  # noqa: PTH110 - a process, not a file of ours
    assert not processes_below(tmp_path)


def test_a_build_without_a_server_fails_its_job_with_what_to_do(tmp_path: Path, tiny_model: Path) -> None:
    arm = _arm(tmp_path / "none", tiny_model, "answer")
    (tmp_path / "none" / "llama-server").unlink()
    _, failure = _run(_job(arm))
    assert failure
    assert (failure.kind, failure.slug) == (FailureKind.INPUT_MISSING, "E-server-missing")
    assert "compile with the target llama-server" in failure.message
