"""``moe-harness plan --why`` and ``--schema``, and what a plan warns of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.cli import plan as command
from harness.domain.node import GIB, Gpu, NodeFacts
from harness.planning.json_schema import matrix_schema
from harness.running import options

TEXT = """
name = "small"
[builds.mainline]
fork = "llama.cpp"
wheel = "xllamacpp"
[builds.ik]
fork = "ik_llama.cpp"
wheel = "ik-llama-cpp-python"
[models.tiny]
card = "tiny-moe"
[node_classes.cpu]
[node_classes.gpu]
gpu_name = "H200"
[flags]
fmoe = [0, 1]
[[workloads]]
pp = 8
[[contrasts]]
name = "fused"
factor = "fmoe"
baseline = 0
candidate = 1
where = { build = "ik" }
"""


@pytest.fixture(autouse=True)
def _laptop(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu("Small GPU", 4 * GIB, "1", "u")
    facts = NodeFacts("CPU", 2, (), 8 * GIB, (gpu,), "6.1", 0, "unknown", None, 1, 0)
    monkeypatch.setattr(options, "probe_node", lambda: facts)


def invoke(tmp_path: Path, *arguments: str, text: str = TEXT) -> Result:
    file = tmp_path / "small.toml"
    file.write_text(text)
    return CliRunner().invoke(command.plan, [str(file), *arguments], catch_exceptions=False)


def test_all_that_is_known_of_a_case_is_told(tmp_path: Path) -> None:
    """Both classes, with the figures of the one that does not fit; bytes; minutes and what they can find."""
    lines = invoke(tmp_path, "--why", "*fmoe=0..*@cpu").stdout.splitlines()
    assert lines[:2] == ["throughput/tiny/ik+fmoe=0..ik+fmoe=1/pp8@cpu", "  can run"]
    assert "  class cpu (this case): a node fits: CPU, 2 cores, 8 GiB, 1 x Small GPU" in lines
    misfit = "no node is of class gpu: needs 1 GPU named 'H200', node has Small GPU (4 GiB)"
    assert f"  class gpu: {misfit}" in lines
    assert any(line.startswith("  memory: ram ") and "weights" in line for line in lines)
    assert any(line.startswith("  budget: ") and "quads find" in line for line in lines)
    assert sum(line.startswith("  arm ik+fmoe=") for line in lines) == 2


def test_what_a_build_can_not_do_is_told_by_name(tmp_path: Path) -> None:
    """The arm's flags are those that were asked for."""
    lines = invoke(tmp_path, "--why", "mainline+fmoe=1/pp8@cpu").stdout.splitlines()
    assert lines[1].startswith("  unsupported: llama.cpp has no 'fmoe'")
    assert "  budget: none: it does not run" in lines


def test_as_data_rows_have_their_classes_too(tmp_path: Path) -> None:
    """The rows of the plan, and one key more."""
    rows = json.loads(invoke(tmp_path, "--why", "ik+fmoe=0/pp8", "--format", "json").stdout)
    assert [row["id"] for row in rows] == [f"throughput/tiny/ik+fmoe=0/pp8@{name}" for name in ("cpu", "gpu")]
    assert {tuple(row["classes"]) for row in rows} == {("cpu", "gpu")}


def test_entries_that_change_nothing_are_warned_of(tmp_path: Path) -> None:
    """On standard error: the list stays data."""
    idle = '[[exclude]]\nbuild = "ik"\nflags = { fmoe = 3 }\n[[exclude]]\nbuild = "mainline"\nflags = { fmoe = 0 }\n'
    idle += '[[when]]\nplacement = "hybrid"\nflags = { fa = 0 }\n'
    result = invoke(tmp_path, "--format", "json", text=TEXT + idle)
    file = tmp_path / "small.toml"
    assert result.stderr.splitlines() == [
        f"warning: {file}: exclude[0]: excludes nothing: no arm meets it",
        f"warning: {file}: when[0]: adds nothing: it holds nowhere",
    ]
    assert json.loads(result.stdout)


def test_the_schema_is_printed() -> None:
    """Without any matrix."""
    printed = CliRunner().invoke(command.plan, ["--schema"], catch_exceptions=False).stdout
    assert json.loads(printed) == matrix_schema()
