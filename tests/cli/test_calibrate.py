"""``moe-harness calibrate`` on the real wheel and the tiny model: few processes, but every step of a long night."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli.calibrate import calibrate
from harness.domain.cell import cell_of
from harness.domain.errors import BadInput, Infrastructure
from harness.execution.node import probe_node
from harness.planning.planner import make_plan
from harness.planning.schema import Matrix
from harness.reporting.replay import read_journal
from harness.running import calibration_plants
from harness.running.calibration_targets import targets_of_plan
from harness.running.options import plan_matrix
from harness.running.spread_file import Record, change_spreads, read_spreads

needs_calm = pytest.mark.skipif(os.getpriority(os.PRIO_PROCESS, 0) != 0, reason="niced: speeds are not judged")

MATRIX = """
name = "one"
[builds.ik]
fork = "ik_llama.cpp"
wheel = "ik-llama-cpp-python"
[models.tiny]
card = "tiny-moe"
quant = "IQ4_XS"
[flags]
fa = [0, 1]
ngl = 0
t = 1
[[workloads]]
pp = 32
[[workloads]]
tg = 4
[[contrasts]]
name = "fa"
factor = "fa"
baseline = 0
candidate = 1
[policy]
warmup = 1
repetitions = 2
"""
SHORT = ("--minutes", "0.6", "--format", "json")


@pytest.fixture
def folder(tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a matrix and a file of known spreads of its own."""
    (tmp_path / "one.toml").write_text(MATRIX)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOE_SPREADS", str(tmp_path / "spreads.json"))
    return tmp_path


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(calibrate, arguments, catch_exceptions=False)


def earlier(quad_sd: float) -> None:
    """Let an earlier calibration have found a spread for the cell of pp32."""
    target = targets_of_plan(plan_matrix("one.toml"))[0]
    record = Record.model_validate(
        {"when": "2026-11-30T12:00:00Z", "quads": 99, "quad_sd": quad_sd, "process_s": 1, "start_s": 1}
        | {"load_s": None, "repetition_s": 0.1}
    )
    path = Path(os.environ["MOE_SPREADS"])
    change_spreads(path, lambda file: file.with_record(probe_node(), cell_of(target.arm, "pp32"), record))


@needs_calm
def test_a_cell_is_measured_against_itself_and_its_planted_loss_is_found(folder: Path) -> None:
    """In JSON, in the file of known spreads and in the journal."""
    result = invoke("one.toml", *SHORT)
    told = json.loads(result.stdout)
    words = {cell["verdict"] for cell in told["cells"]}
    assert result.exit_code == (1 if "quarantined" in words else 0 if words == {"fine"} else 3)
    assert [cell["cell"]["workload"] for cell in told["cells"]] == ["pp32", "tg4"]
    for cell in told["cells"]:
        assert cell["alike"]["quads"] >= 3
        (plant,) = cell["plants"]
        if plant["throughput"] is None:
            pytest.skip(f"this machine is too busy: {plant['reason']}")
        assert (plant["throughput"], plant["found"]) == ("regressed", True), cell
        assert plant["ratio"]["value"] < 1 - plant["loss"] / 2
        assert not any("slept away" in reason for reason in cell["reasons"])
    node = read_spreads(folder / "spreads.json").nodes[told["node"]["fingerprint"]]
    stored = {entry.cell.workload: entry.records[-1] for entry in node.cells}
    assert stored["pp32"].quad_sd == told["cells"][0]["alike"]["quad_sd"]
    assert 0 < stored["tg4"].repetition_s < stored["tg4"].process_s
    _require_marked_plant(folder / "moe-calibration")


def _require_marked_plant(reports: Path) -> None:
    """The slowed processes say so, and are another content: nothing can take them for measurements of the arm."""
    state = read_journal(reports)
    alike, planted = (tried.runs for tried in state.jobs.values())
    assert len({run.content_key for run in alike}) == 1
    assert not any("planted_slowdown" in run.engine for run in alike)
    slowed = {run.step.arm: run for run in planted}
    assert slowed[0].content_key == alike[0].content_key
    assert slowed[1].content_key != alike[0].content_key
    assert float(slowed[1].engine["planted_slowdown"]) > 0


@needs_calm
def test_a_spread_that_multiplied_is_a_finding(folder: Path) -> None:
    """Exit 1, the reason in the table and the file; --fresh forgets what was known."""
    earlier(1e-5)
    result = invoke("one.toml", "--minutes", "0.6")
    assert result.exit_code == 1
    assert "more than twice the 0.0% known (calibration of 2026-11-30)" in result.stdout
    (node,) = read_spreads(folder / "spreads.json").nodes.values()
    quarantined = {entry.cell.workload: entry.records[-1].quarantine for entry in node.cells}
    assert "its quad SD rose to" in quarantined["pp32"]
    fresh = json.loads(invoke("one.toml", "--fresh", *SHORT).stdout)
    assert fresh["cells"][0]["earlier"] is None
    (node,) = read_spreads(folder / "spreads.json").nodes.values()
    assert [len(entry.records) for entry in node.cells] == [1, 1]


@needs_calm
def test_a_plant_that_is_not_found_is_a_finding(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: a judge that is shown no loss although one is said to be there."""
    monkeypatch.setattr(calibration_plants, "_LADDER", (1e-9,))
    monkeypatch.setattr(calibration_plants, "_NEARLY_CERTAIN", 0.0)
    result = invoke("one.toml", *SHORT)
    assert result.exit_code == 1
    reasons = [reason for cell in json.loads(result.stdout)["cells"] for reason in cell["reasons"]]
    assert any("slept away was not found" in reason for reason in reasons)


@needs_calm
def test_a_time_that_is_too_short_is_told_with_the_time_needed(folder: Path) -> None:
    """Exit 3: nothing was found out, and nothing is kept."""
    result = invoke("--build", "ik", "-m", "tiny-moe", "--minutes", "0.1", "--", "-p", "512", "-n", "0", "-t", "1")
    assert result.exit_code == 3, result.stdout
    needed = re.search(r"^--minutes (\d+) would likely do for all cells\.$", result.stdout, re.MULTILINE)
    assert needed, result.stdout
    assert int(needed[1]) >= 1
    assert read_spreads(folder / "spreads.json").nodes == {}


def test_a_matrix_gives_every_cell_once() -> None:
    """Twelve arms of the shipped matrix are four groups of cells: two forks, two models."""
    targets = targets_of_plan(plan_matrix("local"))
    cells = [cell_of(target.arm, load.name) for target in targets for load in target.workloads]
    assert len(cells) == len(set(cells)) == 8
    assert len(targets) == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-m", "tiny-moe"), "-m needs --build"),
        (("--build", "ik", "--select", "x"), "--select chooses cells of a matrix"),
        (("one.toml", "two.toml"), "expected one matrix"),
        (("--", "-fa", "1"), "flags belong to --build"),
        (("--minutes", "0"), "--minutes"),
    ],
)
def test_a_wrong_command_line_is_told(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    """Exit 2."""
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        (("none.toml",), "E-matrix-missing"),
        (("--build", "nobody"), "E-unknown-build"),
        (("--build", "ik", "-m", "nobody"), "E-unknown-card"),
        (("one.toml", "--select", "!pp", "--select", "!tg"), "E-nothing"),
    ],
)
def test_bad_input_is_told(folder: Path, arguments: tuple[str, ...], slug: str) -> None:
    """By its slug, before anything is measured."""
    with pytest.raises(BadInput) as caught:
        invoke(*arguments)
    assert caught.value.slug.startswith(slug)


def test_a_corrupt_file_of_spreads_is_refused_before_anything_is_measured(folder: Path) -> None:
    """A night's work must not end in a file that can't be written."""
    (folder / "spreads.json").write_text("{")
    with pytest.raises((BadInput, Infrastructure), match=r"E-spreads-unreadable|E-niceness"):
        invoke("one.toml", *SHORT)
    assert (folder / "moe-calibration" / "journal.jsonl").read_bytes() == b""


def test_no_matrix_can_ask_for_a_slowdown() -> None:
    """What a file says never reaches the part of the design that calibrations use."""
    text: dict[str, Any] = {"name": "x", "builds": {"ik": {"fork": "ik_llama.cpp", "wheel": "ik-llama-cpp-python"}}}
    text |= {"models": {"m": {"card": "tiny-moe"}}, "workloads": [{"pp": 8}], "policy": {"slowdown": 0.5}}
    with pytest.raises(ValueError, match="slowdown"):
        Matrix.model_validate(text)
    del text["policy"]
    plan = make_plan(Matrix.model_validate(text))
    assert {(job.design.slowdown, job.design.calibration) for job in plan.jobs} == {(0.0, False)}
