"""``moe-harness calibrate --outputs`` on both wheels and a small model: tolerances kept, planted faults found."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli.calibrate import calibrate
from harness.domain.errors import BadInput
from harness.domain.tolerance import ContrastClass
from harness.judging.quants import Limits
from harness.models.corruptions import Kind
from harness.reporting.replay import read_journal
from harness.running import calibrating_outputs
from harness.running.options import known_spreads, plan_matrix

CARD = {
    "format": "shape-card/1",
    "name": "small-moe",
    "shape": {
        "rule": "qwen3moe", "layers": 2, "width": 128, "heads": 4, "kv_heads": 2, "head_width": 32, "experts": 8,
        "experts_used": 2, "expert_width": 128,
    },
    "tokenizer": {"merges": 200, "specials": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]},
    "weights": {"seed": 3},
}  # fmt: skip
MATRIX = """
name = "two-forks"
[builds.mainline]
fork = "llama.cpp"
wheel = "xllamacpp"
[builds.ik]
fork = "ik_llama.cpp"
wheel = "ik-llama-cpp-python"
[models.small]
card = "small.json"
quant = "F16"
[flags]
t = 1
[[workloads]]
pp = 32
[[contrasts]]
name = "fork"
factor = "build"
baseline = "mainline"
candidate = "ik"
[[checks]]
kind = "outputs"
name = "same"
contrasts = ["fork"]
prompts = "prompts.toml"
n_predict = 4
positions = 32
forced = 8
"""
PROMPTS = """
[[prompts]]
name = "sum"
text = "17 + 25 = 42, and 42 - 25 ="
tokens = 32
answer = " 17, as it should be."
[[prompts]]
name = "evening"
text = "And so on, until the evening."
tokens = 48
answer = " Then everybody went home."
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a matrix, a small card, and files of known spreads and tolerances of its own."""
    pytest.importorskip("xllamacpp", reason="moe-harness[local] is not installed")
    (tmp_path / "small.json").write_text(json.dumps(CARD))
    (tmp_path / "two.toml").write_text(MATRIX)
    (tmp_path / "prompts.toml").write_text(PROMPTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOE_SPREADS", str(tmp_path / "spreads.json"))
    monkeypatch.setenv("MOE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(calibrate, arguments, catch_exceptions=False)


def test_tolerances_are_kept_and_planted_faults_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flags and forks have tolerances then, runs get them, and no copy of the model is left behind."""
    monkeypatch.setattr(calibrating_outputs, "FAULTS", (Kind.FEWER_EXPERTS,))
    result = invoke("two.toml", "--outputs", "--format", "json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    (model,) = found["models"]
    assert (model["verdict"], model["troubles"]) == ("fine", [])
    assert {each["contrast"]: each["pairs"] for each in model["tolerances"]} == {"flags": 6, "fork": 9}
    assert all(each["tolerated"]["mean"] > each["seen"]["mean"] for each in model["tolerances"])
    assert [(fault["arm"], fault["contrast"], fault["equivalence"]) for fault in model["faults"]] == [
        ("mainline", "flags", "different"), ("ik", "flags", "different"), ("ik", "fork", "different"),
    ]  # fmt: skip
    assert not list((folder / "cache" / "faults").iterdir())
    job = known_spreads().informed(plan_matrix("two.toml").jobs[0])
    (known,) = job.tolerances
    assert known.contrast is ContrastClass.FORK
    assert known.source.startswith("calibration of ")
    # A journal of its own: every process can be looked at again.
    assert len(read_journal(folder / "moe-calibration").jobs) == 6


def test_a_fault_that_is_missed_ends_with_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a judge that tolerates everything."""
    monkeypatch.setattr(calibrating_outputs, "FAULTS", (Kind.FEWER_EXPERTS,))
    monkeypatch.setattr(calibrating_outputs, "tolerated_after", lambda seen, _: type(seen)(*[1e9] * 9))
    monkeypatch.setattr(calibrating_outputs, "limits_of", lambda _: Limits(tie=99.0, hard=99.0, flip=99.0))
    result = invoke("two.toml", "--outputs", "--format", "markdown", "--select", "equivalence/*")
    assert result.exit_code == 1
    assert "MISSED" in result.stdout
    assert "small: blind" in result.stdout


def test_what_can_t_be_planted_is_said_and_undecided(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No room for a copy: tolerances are kept all the same."""
    monkeypatch.setattr(calibrating_outputs, "FAULTS", (Kind.ROPE_BASE,))
    monkeypatch.setattr("harness.models.corrupting.require_space", full)
    result = invoke("two.toml", "--outputs")
    assert result.exit_code == 3
    assert "small: unproven" in result.stdout
    assert "rope-base: E-disk-full: 1 byte is needed" in result.stdout
    assert "spreads.outputs.json: runs on this node use it" in result.stdout


def full(*_: object) -> None:
    raise BadInput("E-disk-full", "1 byte is needed, 0 are free")


def test_a_matrix_without_output_checks_has_nothing_to_calibrate(folder: Path) -> None:
    (folder / "two.toml").write_text(MATRIX[: MATRIX.index("[[checks]]")])
    with pytest.raises(BadInput, match="no selected case that can run on this machine compares outputs"):
        invoke("two.toml", "--outputs")


def test_it_goes_by_a_matrix(folder: Path) -> None:
    result = invoke("--outputs", "--build", "ik", "-m", "tiny-moe")
    assert result.exit_code == 2
    assert "--outputs goes by the output checks of a matrix" in result.stderr


def test_minutes_mean_nothing_there_and_are_refused(folder: Path) -> None:
    result = invoke("two.toml", "--outputs", "--minutes", "2")
    assert result.exit_code == 2
    assert "--minutes is time to measure speed; --outputs times nothing" in result.stderr


def test_few_prompts_set_no_percentiles_and_that_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor do they for later runs: the job knows on how many positions its tolerance rests."""
    monkeypatch.setattr(calibrating_outputs, "FAULTS", ())
    result = invoke("two.toml", "--outputs", "--format", "markdown")
    assert "fork: " in result.stdout
    assert (
        "are too few to set p25, median, p90, p99, decode median, decode p90: the shipped tolerances of these stand"
        in result.stdout
    )
    assert re.search(r"p99 \S+ -> not set, maximum \S+ -> \d\S*, p25 \S+ -> not set", result.stdout)
    (known,) = known_spreads().informed(plan_matrix("two.toml").jobs[0]).tolerances
    assert known.positions is not None
    assert known.decoded is not None
    assert 0 < known.decoded < known.positions < 400
