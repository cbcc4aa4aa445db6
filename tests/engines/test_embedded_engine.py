"""The parent's side of the embedded engine, and the choice of an engine."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from engine_support import MODEL, PP512, PROFILE, TG64, ended, fake_program, order, path_build, recording, wheel_build
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.build import Build, Fork
from harness.domain.errors import BadInput
from harness.domain.failure import FailureKind
from harness.domain.workload import Workload
from harness.engines.bench import BenchEngine
from harness.engines.embedded.request import parse_request
from harness.engines.embedded_engine import EmbeddedEngine
from harness.engines.engine import Order
from harness.engines.flags import complete
from harness.engines.registry import engine_for
from harness.ranking import Table, pack

IK, MAINLINE = Fork.IK_LLAMA_CPP, Fork.LLAMA_CPP
FLAGS = {"ngl": 99, "fa": 1}
HELLO = {"event": "hello", "package": "ik-llama-cpp-python", "libraries": [{"path": "l", "sha256": "s"}]}
LOADED = {"event": "loaded", "load_ns": 2_500_000_000, "implied": {"mmap": "0 because of rtr"}}


def distributions(*best: int) -> dict[str, Any]:
    ids = np.array([[token, token + 1] for token in best], np.int32)
    return dataclasses.asdict(pack(Table(ids, np.log(np.full(ids.shape, 0.25, np.float32)))))


OUTPUT = {
    "event": "output",
    "prompt": "short",
    "tokens": [1, 2],
    "greedy": [5, 6, 7, 8],
    "margins": [0.5, 0.25, 1, 2],
    "text": "upon",
    "logits_sha256": "abc",
    "finite": True,
    "distinct": 4,
    "ranks": {"prefill": distributions(4, 5), "greedy": distributions(5, 6, 7, 8), "forced": None},
}
DONE = {"event": "done", "peak_rss_bytes": 1}


def asked(**changes: Any) -> Order:
    return order(wheel_build(IK), [PP512, TG64], flags=FLAGS, **changes)


def row_lines() -> list[dict[str, Any]]:
    rows = json.loads(recording(IK, "full_1.json"))
    return [{"event": "row", "workload": name, "row": row} for name, row in zip(("pp512", "tg64"), rows, strict=True)]


def lines(*events: dict[str, Any]) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


WHOLE = lines(HELLO, LOADED, *row_lines(), OUTPUT, DONE)


def test_all_that_a_child_says_is_in_the_report() -> None:
    report = EmbeddedEngine(wheel_build(IK)).read(asked(outputs=PROFILE), ended("noise\n" + WHOLE))
    assert report.failure is None
    assert [row.workload for row in report.rows] == ["pp512", "tg64"]
    assert report.load_s == 2.5
    assert report.engine["package"] == "ik-llama-cpp-python"
    assert "sha256" in report.engine["libraries"]
    assert "mmap" in report.engine["implied"]
    (output,) = report.outputs
    assert (output.prompt_tokens, output.tokens, output.margins) == ((1, 2), (5, 6, 7, 8), (0.5, 0.25, 1.0, 2.0))
    assert output.finite


def test_a_prompt_at_a_depth_that_ik_llama_cpp_has_no_label_for_is_told_by_llama_cpps() -> None:
    first = row_lines()[0]
    deep = Workload(512, 0, 4096)
    first["workload"], first["row"]["test"] = deep.name, "pp512 @ d4096"
    wanted = order(wheel_build(IK), [deep], flags=FLAGS)
    report = EmbeddedEngine(wheel_build(IK)).read(wanted, ended(lines(first, DONE)))
    assert report.failure is None
    assert [row.workload for row in report.rows] == ["pp512.d4096"]


def test_margins_that_the_child_cannot_tell_are_not_known() -> None:
    text = lines(HELLO, LOADED, *row_lines(), {**OUTPUT, "margins": [None, 1, 1, 1], "finite": False}, DONE)
    (output,) = EmbeddedEngine(wheel_build(IK)).read(asked(outputs=PROFILE), ended(text)).outputs
    assert output.margins is None
    assert not output.finite


@pytest.mark.parametrize(
    ("left_out", "slug"), [("done", "E-incomplete-output"), ("output", "E-outputs-missing"), ("row", "E-rows-missing")]
)
def test_whatever_is_missing_after_a_clean_exit_is_named(left_out: str, slug: str) -> None:
    text = "".join(line + "\n" for line in WHOLE.splitlines() if f'"event": "{left_out}"' not in line)
    report = EmbeddedEngine(wheel_build(IK)).read(asked(outputs=PROFILE), ended(text))
    assert report.failure is not None
    assert report.failure.slug == slug


def test_a_planted_echo_difference_is_found_in_embedded_rows_too() -> None:
    first, second = row_lines()
    first["row"]["flash_attn"] = False
    report = EmbeddedEngine(wheel_build(IK)).read(asked(), ended(lines(first, second, DONE)))
    assert [row.workload for row in report.rows] == ["tg64"]
    assert report.failure is not None
    assert report.failure.kind is FailureKind.ECHO_MISMATCH


def test_a_row_under_a_wrong_name_is_not_taken() -> None:
    first, second = row_lines()
    first["workload"], second["workload"] = second["workload"], first["workload"]
    report = EmbeddedEngine(wheel_build(IK)).read(asked(), ended(lines(first, second, DONE)))
    assert report.rows == ()
    assert report.failure is not None
    assert report.failure.slug == "E-unexpected-row"


@pytest.mark.parametrize(
    ("code", "slug", "message", "kind"),
    [
        (2, "E-flag-unknown", "no such flag", FailureKind.REFUSED),
        (3, "E-model-missing", "m.gguf is not a file", FailureKind.INPUT_MISSING),
        (3, "E-load", "not a model", FailureKind.REFUSED),
        (3, "E-load", "context: failed to allocate buffer", FailureKind.OUT_OF_MEMORY),
        (4, "E-decode", "llama_decode returned -3", FailureKind.CRASH),
        (1, "E-internal", "KeyError", FailureKind.HARNESS),
    ],
)
def test_a_childs_last_words_decide_the_failure_and_rows_before_them_stand(
    code: int, slug: str, message: str, kind: FailureKind
) -> None:
    failed = {"event": "failed", "slug": slug, "message": message}
    text = lines(HELLO, LOADED, row_lines()[0], failed)
    report = EmbeddedEngine(wheel_build(IK)).read(asked(), ended(text, code=code))
    assert [row.workload for row in report.rows] == ["pp512"]
    assert report.failure is not None
    assert report.failure.kind is kind
    assert message in report.failure.message
    assert "missing: tg64" in report.failure.message


def test_a_crash_without_last_words_is_told_by_the_signal() -> None:
    report = EmbeddedEngine(wheel_build(IK)).read(asked(), ended(lines(HELLO), signal=11))
    assert report.failure is not None
    assert "SIGSEGV" in report.failure.message


@given(cut=st.integers(0, len(WHOLE)))
def test_a_truncated_stream_never_raises_and_never_invents(cut: int) -> None:
    report = EmbeddedEngine(wheel_build(IK)).read(asked(outputs=PROFILE), ended(WHOLE[:cut]))
    printed = {tuple(line["row"]["samples_ns"]) for line in row_lines()}
    assert {row.samples_ns for row in report.rows} <= printed
    assert report.failure is not None or len(report.rows) == len(report.outputs) + 1 == 2


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["event", "row", "workload", "tokens", "greedy", "margins", "slug", "load_ns", "implied"]),
            st.one_of(st.sampled_from(["row", "output", "failed", "loaded", "hello"]), st.integers(), st.none()),
        ),
        max_size=5,
    )
)
def test_lines_of_any_shape_are_read_without_raising(events: list[dict[str, Any]]) -> None:
    report = EmbeddedEngine(wheel_build(IK)).read(asked(), ended(lines(*events)))
    assert report.failure is not None
    assert report.rows == ()


@pytest.mark.parametrize("fork", list(Fork))
def test_the_child_understands_the_request(fork: Fork) -> None:
    """Parent and child hold to one protocol: the child's own reader takes what the parent writes."""
    build = wheel_build(fork)
    deep = Workload(64, 0, 256)
    wanted = order(build, [PP512, deep], flags=complete(build, {"fa": "on", "ot": "exps=CPU", "t": 3}), outputs=PROFILE)
    command = EmbeddedEngine(build).command(wanted)
    request = parse_request(command.stdin)
    assert request.model == MODEL
    assert request.threads == 3
    assert [load.name for load in request.workloads] == ["pp512", "pp64.d256"]
    assert request.flags == json.loads(command.stdin)["flags"]
    assert request.repetitions == 5
    assert request.outputs is not None


def test_the_child_is_found_from_anywhere_and_takes_no_module_of_the_working_directory(tmp_path: Any) -> None:
    """A file json.py beside the user's matrix must not become the child's json."""
    (tmp_path / "json.py").write_text("raise SystemExit(77)", encoding="utf-8")
    command = EmbeddedEngine(wheel_build(IK)).command(asked())
    done = subprocess.run(
        command.argv,
        input="not a request",
        env=command.environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert json.loads(done.stdout)["event"] == "failed"
    assert command.argv[0] == sys.executable


@pytest.mark.parametrize("fork", list(Fork))
def test_the_wheels_libraries_are_located_without_loading_them(fork: Fork, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] in {"xllamacpp", "ik_llama_cpp"}]:
        monkeypatch.delitem(sys.modules, name)
    found = EmbeddedEngine(wheel_build(fork)).locate()
    assert found
    assert all(path.is_file() and ".so" in path.name for path in found)
    assert not {"xllamacpp", "ik_llama_cpp"} & set(sys.modules)


def test_a_missing_wheel_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> importlib.metadata.Distribution:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    with pytest.raises(BadInput) as caught:
        EmbeddedEngine(wheel_build(IK)).locate()
    assert caught.value.slug == "E-wheel-missing"
    assert "pip install 'moe-harness[local]'" in caught.value.hint


def test_an_unverified_wheel_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Newer:
        version = "99.0"

    monkeypatch.setattr(importlib.metadata, "distribution", lambda _name: Newer())
    with pytest.raises(BadInput) as caught:
        EmbeddedEngine(wheel_build(IK)).locate()
    assert caught.value.slug == "E-wheel-unverified"
    assert "99.0" in caught.value.message


def test_an_order_of_nothing_is_refused() -> None:
    engine = EmbeddedEngine(wheel_build(IK))
    assert engine.refusal(order(wheel_build(IK), []))
    assert engine.refusal(order(wheel_build(IK), [Workload(0, 0)]))
    assert engine.refusal(order(wheel_build(IK), [], outputs=PROFILE)) == ""


@pytest.mark.parametrize("fork", list(Fork))
def test_a_path_gets_llama_bench_and_a_wheel_the_embedded_engine(fork: Fork, tmp_path: Any) -> None:
    fake_program(tmp_path / "llama-bench")
    assert isinstance(engine_for(path_build(fork, str(tmp_path))), BenchEngine)
    assert isinstance(engine_for(wheel_build(fork)), EmbeddedEngine)


@pytest.mark.parametrize(
    ("build", "slug", "part"),
    [
        (Build("b", IK, wheel="ik-lama-cpp-python"), "E-unknown-wheel", "ik-llama-cpp-python"),
        (Build("b", IK, wheel="xllamacpp"), "E-wrong-fork", "llama.cpp"),
        (Build("b", MAINLINE, wheel="ik_llama.cpp-python"), "E-wrong-fork", "ik_llama.cpp"),
        (Build("b", IK), "E-build-ambiguous", ""),
        (Build("b", IK, wheel="xllamacpp", path="/x"), "E-build-ambiguous", ""),
    ],
)
def test_a_build_that_no_engine_fits_is_refused(build: Build, slug: str, part: str) -> None:
    with pytest.raises(BadInput) as caught:
        engine_for(build)
    assert caught.value.slug == slug
    assert part in caught.value.hint
    assert caught.value.where.startswith("builds.b")
