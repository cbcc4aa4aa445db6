"""The engine of ``llama-server``: what it starts, refuses, and makes of a child's last words; and the real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from engine_support import RECORDINGS, ended, fake_program, order, path_build, wheel_build

from harness.domain.build import Build, Fork
from harness.domain.errors import BadInput
from harness.domain.failure import FailureKind
from harness.domain.flags import FlagValue
from harness.domain.measurement import prompt_fact
from harness.domain.workload import Metric, OutputProfile, ProfileWorkload, Prompt, PromptProfile, Timed, Workload
from harness.engines.embedded.errors import EmbeddedError
from harness.engines.embedded_engine import EmbeddedEngine
from harness.engines.engine import Engine, Exit, Order, Report
from harness.engines.flags import complete
from harness.engines.served.request import parse_request
from harness.engines.served_engine import ServedEngine

HELP = (RECORDINGS / "llama_cpp-b11549.server_help.txt").read_text(encoding="utf-8")
LAUNCHER = Path(__file__).parent.parent / "standin" / "wheel_server.py"
CHAT = PromptProfile("chat", "the end of her hat", 6)
TIMED = tuple(ProfileWorkload(CHAT, metric) for metric in Metric if metric is not Metric.PEAK)


def _order(build: Build, *loads: Timed, model: Path = Path("m.gguf"), **flags: FlagValue) -> Order:
    return order(build, loads or TIMED, flags=complete(build, flags), model=model, threads=1, repetitions=3)  # type: ignore[arg-type]


def _request(engine: ServedEngine, wanted: Order) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(engine.command(wanted).stdin)
    return value


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """A build whose folder has a server and a library."""
    fake_program(tmp_path / "bin" / "llama-server")
    fake_program(tmp_path / "bin" / "libllama.so")
    return path_build(Fork.LLAMA_CPP, str(tmp_path))


def test_the_server_is_found_in_the_folder_and_beside_the_bench(build: Build, tmp_path: Path) -> None:
    server, library = (tmp_path / "bin" / name for name in ("llama-server", "libllama.so"))
    assert ServedEngine(build).locate() == (server, library)
    beside = path_build(Fork.LLAMA_CPP, str(tmp_path / "bin" / "llama-bench"))
    assert ServedEngine(beside).locate() == (server, library), "the bench itself need not be there"


def test_a_build_without_a_server_is_told_what_to_compile(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"E-server-missing: builds\.b: no llama-server at .*target llama-server"):
        ServedEngine(path_build(Fork.LLAMA_CPP, str(tmp_path))).locate()


def test_a_program_that_serves_nothing_is_no_server(build: Build) -> None:
    with pytest.raises(BadInput, match="E-not-llama-server"):
        ServedEngine(build, "usage:\n  -p, --n-prompt N\n").locate()


def test_one_slot_no_page_no_cache_and_every_flag_is_said(build: Build) -> None:
    request = _request(ServedEngine(build, HELP), _order(build, fa=0))
    argv = request["argv"]
    told = dict(pairwise(argv))
    assert argv[0].endswith("bin/llama-server")
    assert (told["-np"], told["-t"], told["-tb"], told["--cache-ram"], told["-fit"]) == ("1", "1", "1", "0", "off")
    assert "--no-ui" in argv
    assert told["-fa"] == "off"
    assert not {"--host", "--port"} & set(argv), "the child knows the port"
    assert request["environment"]["LD_LIBRARY_PATH"].endswith("/bin")
    assert request["deadline_s"] == pytest.approx(570), "before it is killed at 600 s"
    assert (request["repetitions"], request["profiles"][0]["cold"]) == (3, True)


def test_older_and_other_servers_are_told_in_their_words(build: Build, tmp_path: Path) -> None:
    older = HELP.replace("--no-ui, --no-webui", "--no-webui").replace("--ui,  --webui, ", "--webui, ")
    assert "--no-webui" in _request(ServedEngine(build, older), _order(build))["argv"]
    other = path_build(Fork.IK_LLAMA_CPP, str(tmp_path))
    argv = _request(ServedEngine(other), _order(other))["argv"]
    told = dict(pairwise(argv))
    assert (told["--webui"], told["-cram"], told["-np"]) == ("none", "0", "1")


@pytest.mark.parametrize(
    ("profile", "cells"),
    [
        (PromptProfile("a", "x" * 100, 20, 1000), 1280),
        (PromptProfile("a", "x" * 100, 20), 256),
        (PromptProfile("a", "x" * 300, 200), 768),
    ],
)
def test_the_context_holds_prompt_and_answer_whatever_the_tokenizer_does(
    build: Build, profile: PromptProfile, cells: int
) -> None:
    argv = _request(ServedEngine(build), _order(build, ProfileWorkload(profile, Metric.TTFT)))["argv"]
    assert argv[argv.index("-c") + 1] == str(cells)


def test_what_a_server_cannot_do_is_refused(build: Build) -> None:
    engine = ServedEngine(build, HELP)
    assert engine.refusal(_order(build)) == ""
    assert "llama-bench does" in engine.refusal(_order(build, Workload(64, 0)))
    assert "no request" in engine.refusal(order(build, []))
    outputs = OutputProfile("o", (Prompt("p", "x"),), 4, 4)
    assert engine.refusal(order(build, [], outputs=outputs)) == ""
    assert "completes no prompts" in engine.refusal(_order(build, embd=1))
    two = [ProfileWorkload(PromptProfile(name, "x", 2), Metric.COLD) for name in ("a", "b")]
    assert "a.cold and b.cold" in engine.refusal(_order(build, *two))


@pytest.mark.parametrize(
    ("line", "kind", "slug"),
    [
        ({"slug": "E-server-not-ready", "message": "m"}, FailureKind.TIMEOUT, "E-server-not-ready"),
        ({"slug": "E-answer-mismatch", "message": "m"}, FailureKind.ECHO_MISMATCH, "E-answer-mismatch"),
        ({"slug": "E-server-foreign", "message": "m"}, FailureKind.HARNESS, "E-server-foreign"),
        ({"slug": "E-server-died", "message": "m", "server_exit": -11}, FailureKind.CRASH, "E-crash"),
        ({"slug": "E-server-died", "message": "m", "server_exit": 0}, FailureKind.CRASH, "E-server-died"),
        ({"slug": "E-server-died", "message": "m", "server_exit": -15}, FailureKind.INTERRUPTED, "E-interrupted"),
    ],
)
def test_last_words_become_failures(build: Build, line: dict[str, Any], kind: FailureKind, slug: str) -> None:
    text = json.dumps({"event": "failed", **line})
    report = ServedEngine(build).read(_order(build), ended(text, "log", code=3))
    assert report.failure
    assert (report.failure.kind, report.failure.slug) == (kind, slug)
    assert report.failure.message.startswith("m")


def test_why_a_server_ended_is_read_from_its_log(build: Build) -> None:
    text = json.dumps({"event": "failed", "slug": "E-server-died", "message": "it ended", "server_exit": 1})
    log = "ggml_gallocr_reserve: failed to allocate CUDA0 buffer of size 17"
    report = ServedEngine(build).read(_order(build), ended(text, log, code=3))
    assert report.failure
    assert report.failure.kind is FailureKind.OUT_OF_MEMORY
    assert report.failure.message.startswith("it ended: out of memory: ggml_gallocr_reserve")


def test_a_child_that_did_not_finish_is_incomplete(build: Build) -> None:
    report = ServedEngine(build).read(_order(build), ended(""))
    assert report.failure
    assert "did not say that it was done" in report.failure.message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"fork": "other"}, "fork"),
        ({"outputs": {"prompts": []}}, "outputs"),
        ({"argv": []}, "argv"),
        ({"argv": [1]}, "argv"),
        ({"environment": {"A": 1}}, "environment"),
        ({"deadline_s": 0}, "deadline_s"),
        ({"deadline_s": "soon"}, "deadline_s"),
        ({"repetitions": 0}, "repetitions"),
        ({"profiles": []}, "nothing is asked"),
        ({"profiles": [{"name": "a", "text": ""}]}, "profiles"),
        ({"alien": 1}, "expected an object of"),
    ],
)
def test_requests_that_are_not_understood_whole_are_refused(change: dict[str, Any], words: str) -> None:
    asked = [{"name": "a", "text": "b", "n_predict": 2}]
    good = {"fork": "llama.cpp", "argv": ["s"], "model": "m", "deadline_s": 5, "profiles": asked}
    assert parse_request(json.dumps(good)).repetitions == 1
    with pytest.raises(EmbeddedError, match=words):
        parse_request(json.dumps({**good, **change}))
    with pytest.raises(EmbeddedError, match="not JSON"):
        parse_request("{")


# ---- for real: the llama.cpp server of the wheel, behind its own argument parser -------------------------------------


@pytest.fixture
def served(tmp_path: Path) -> Build:
    """A folder whose ``llama-server`` is the wheel's real server."""
    pytest.importorskip("xllamacpp")
    program = tmp_path / "real" / "llama-server"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{LAUNCHER.read_text(encoding='utf-8')}", encoding="utf-8")
    program.chmod(0o755)
    return path_build(Fork.LLAMA_CPP, str(program.parent))


def _run(engine: Engine, wanted: Order) -> Report:
    command = engine.command(wanted)
    environment = {"PATH": os.environ["PATH"], **command.environment}
    done = subprocess.run(
        command.argv, input=command.stdin, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    code = done.returncode
    return engine.read(
        wanted, Exit(code if code >= 0 else None, -code if code < 0 else None, False, done.stdout, done.stderr)
    )


def _help(build: Build) -> str:
    command = ServedEngine(build).help_command()
    return subprocess.run(command.argv, capture_output=True, text=True, check=True, timeout=60).stdout


def test_the_help_of_the_real_server_is_the_recorded_one(served: Build) -> None:
    assert _help(served) == HELP


def test_the_real_server_answers_what_the_wheels_library_answers(served: Build, tiny_model: Path) -> None:
    """All four quantities over HTTP; the prompt is cut as the embedded engine cuts it."""
    wanted = _order(served, model=tiny_model, ngl=0)
    report = _run(ServedEngine(served, _help(served)), wanted)
    assert report.failure is None
    assert [row.workload for row in report.rows] == ["chat.cold", "chat.ttft", "chat.prefill", "chat.decode"]
    assert [len(row.samples_ns) for row in report.rows] == [1, 3, 3, 3]
    cold, ttft, prefill, _ = (row.samples_ns for row in report.rows)
    assert report.load_s is not None
    assert cold[0] > report.load_s * 1e9
    assert min(ttft) > min(prefill)
    assert report.rows[3].tokens == 5
    inside = wheel_build(Fork.LLAMA_CPP)
    same = _run(EmbeddedEngine(inside), _order(inside, model=tiny_model))
    assert same.failure is None
    assert report.engine[prompt_fact("chat")] == same.engine[prompt_fact("chat")]


def test_a_length_and_flags_reach_the_real_server(served: Build, tiny_model: Path) -> None:
    """A prompt of 300 tokens in batches of 32 with a quantized cache: its figures say that it processed them all."""
    profile = PromptProfile("long", "the end of her hat", 4, 300)
    loads = [ProfileWorkload(profile, Metric.PREFILL)]
    wanted = _order(served, *loads, model=tiny_model, ngl=0, b=32, ub=32, ctk="q8_0")
    report = _run(ServedEngine(served, _help(served)), wanted)
    assert report.failure is None
    assert (report.rows[0].tokens, len(report.rows)) == (300, 1)


def test_a_prompt_beyond_the_models_context_is_named_by_the_real_server(served: Build, tiny_model: Path) -> None:
    profile = PromptProfile("long", "the end of her hat", 4, 9000)
    report = _run(ServedEngine(served), _order(served, ProfileWorkload(profile, Metric.COLD), model=tiny_model, ngl=0))
    assert report.failure
    assert (report.failure.kind, report.failure.slug) == (FailureKind.REFUSED, "E-prompt-too-long")


def test_a_model_that_the_real_server_cannot_load_is_told_with_its_words(served: Build, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF but nothing else")
    report = _run(ServedEngine(served), _order(served, model=broken, ngl=0))
    assert report.failure
    assert report.failure.message.startswith("the server ended with exit code 1 before it was ready: ")
    assert report.failure.detail
