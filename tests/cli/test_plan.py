"""``moe-harness plan`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli import plan as command
from harness.domain.errors import BadInput
from harness.domain.node import GIB, NodeFacts
from harness.running import options

TEXT = """
name = "small"
[builds.mainline]
fork = "llama.cpp"
wheel = "xllamacpp"
[builds.ik]
fork = "ik_llama.cpp"
wheel = "ik-llama-cpp-python"
[models.file]
path = "model.gguf"
[models.gone]
path = "gone.gguf"
[node_classes.cpu]
[node_classes.gpu]
min_gpus = 1
[flags]
rtr = [0, 1]
[[workloads]]
pp = 8
[[contrasts]]
name = "rtr"
factor = "rtr"
baseline = 0
candidate = 1
where = { build = "ik", node_class = "cpu" }
"""


@pytest.fixture(autouse=True)
def _laptop(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = NodeFacts("CPU", 2, (), 8 * GIB, (), "6.1", 0, "unknown", None, 1, 0)
    monkeypatch.setattr(options, "probe_node", lambda: facts)


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    (tmp_path / "model.gguf").write_bytes(b"x" * 3_000_000)
    file = tmp_path / "small.toml"
    file.write_text(TEXT)
    return file


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(command.plan, [str(argument) for argument in arguments], catch_exceptions=False)


def rows(*arguments: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(invoke(*arguments, "--format", "json").stdout)
    return found


def test_json_has_the_keys_of_the_contract(matrix: Path) -> None:
    """One object a case, no more and no fewer keys."""
    listed = rows(matrix)
    assert {tuple(row) for row in listed} == {
        ("id", "kind", "workload", "arms", "node_class", "status", "reason", "bytes")
    }
    assert listed[2] == {
        "id": "throughput/file/ik+rtr=0/pp8@cpu",
        "kind": "throughput",
        "workload": "pp8",
        "arms": ["ik+rtr=0"],
        "node_class": "cpu",
        "status": None,
        "reason": "",
        "bytes": 3_000_000,
    }


def test_what_cannot_run_says_why(matrix: Path) -> None:
    """Unsupported by the build, no node of the class, file not there, and the note of a contrast."""
    found = {row["id"]: row for row in rows(matrix)}
    unsupported = found["throughput/file/mainline+rtr=1/pp8@cpu"]
    assert (unsupported["status"], "rtr" in unsupported["reason"]) == ("unsupported", True)
    misfit = found["throughput/file/ik+rtr=1/pp8@gpu"]
    assert misfit["status"] == "not_applicable"
    assert misfit["reason"] == "no node is of class gpu: needs 1 GPU, node has none"
    assert found["throughput/gone/ik+rtr=1/pp8@cpu"]["bytes"] is None
    contrast = found["throughput/file/ik+rtr=0..ik+rtr=1/pp8@cpu"]
    assert contrast["reason"] == "as a consequence of rtr: mmap 1 -> 0"


def test_the_table_ends_with_the_sum(matrix: Path) -> None:
    """Ids are whole even in a pipe, every reason is printed once, the last line counts."""
    lines = invoke(matrix).stdout.splitlines()
    assert any(line.startswith("throughput/file/ik+rtr=0..ik+rtr=1/pp8@cpu ") for line in lines)
    assert sum("no node is of class gpu" in line for line in lines) == 1
    assert lines[-1] == "18 cases in 2 jobs (up to 20 process starts), 8 unsupported, 4 not applicable"


def test_select(matrix: Path) -> None:
    """Patterns as of --moe-select."""
    assert [row["id"] for row in rows(matrix, "--select", "*..*", "--select", "!gone")] == [
        "throughput/file/ik+rtr=0..ik+rtr=1/pp8@cpu"
    ]


def test_bad_input_reaches_the_handler(matrix: Path) -> None:
    """Errors are raised as they are, for the one place that prints them; they lead to exit code 2."""
    matrix.write_text(TEXT + "x = 1")
    with pytest.raises(BadInput, match=r"E-matrix-invalid: .*contrasts\[0\]\.x: unknown key 'x'") as caught:
        invoke(matrix)
    assert caught.value.exit_code == 2


def test_packaged_names_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside a checkout both the default and bare names are found."""
    monkeypatch.chdir(tmp_path)
    assert rows()[0]["id"].startswith("throughput/tiny-iq4xs/")
    assert {row["status"] for row in rows("qwen3-30b-a3b")} == {"not_applicable"}


def test_what_is_not_on_this_machine_is_said(matrix: Path, tmp_path: Path) -> None:
    """A missing build or model is a note, not a status: the nodes that will run it may have it. Once in the table."""
    missing = f'[builds.patched]\nfork = "llama.cpp"\npath = "{tmp_path}/build/bin"\n'
    fork = TEXT.replace("rtr = [0, 1]", "fa = [0, 1]").replace('"rtr"', '"fa"')
    matrix.write_text(fork.replace("[models.file]", f"{missing}[models.file]"))
    found = {row["id"]: row for row in rows(matrix)}
    note = found["throughput/gone/patched+fa=0/pp8@cpu"]
    assert note["status"] is None
    assert note["reason"] == (
        f"not on this machine: build patched: no llama-bench at {tmp_path}/build/bin, "
        f"model gone: there is no file {tmp_path}/gone.gguf"
    )
    assert found["throughput/file/ik+fa=0/pp8@cpu"]["reason"] == ""
    assert found["throughput/gone/ik+fa=0/pp8@gpu"]["reason"].startswith("no node is of class gpu")
    lines = [line for line in invoke(matrix).stdout.splitlines() if line.startswith("note (")]
    assert sum("model gone" in line and "build" not in line for line in lines) == 1
