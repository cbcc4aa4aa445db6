"""``moe-harness plan`` as a user meets it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli import plan as command
from harness.domain.cell import cell_of
from harness.domain.errors import BadInput
from harness.domain.node import GIB, NodeFacts
from harness.running import options
from harness.running.forecasts import forecast_plan
from harness.running.spread_file import Record, change_spreads, spreads_path

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
        ("id", "kind", "workload", "arms", "node_class", "status", "reason", "notes", "outputs", "bytes", "budget")
    }
    assert listed[2].pop("budget")["quads"] is None
    assert listed[2] == {
        "id": "throughput/file/ik+rtr=0/pp8@cpu",
        "kind": "throughput",
        "workload": "pp8",
        "arms": ["ik+rtr=0"],
        "node_class": "cpu",
        "status": None,
        "reason": "",
        "notes": [],
        "outputs": None,
        "bytes": None,
    }


def test_bytes_are_told_by_device_and_use(matrix: Path) -> None:
    """In JSON and in the table; of a file that is no model nothing is known."""
    matrix.write_text(TEXT.replace('path = "model.gguf"', 'card = "qwen3-30b-a3b"\nquant = "Q4_K_M"'))
    found = {row["id"]: row["bytes"] for row in rows(matrix)}
    told = found["throughput/file/ik+rtr=0/pp8@cpu"]
    assert told["gpus"] == []
    assert told["ram"] == sum(told["parts"]["ram"].values())
    assert list(told["parts"]["ram"]) == ["weights", "KV", "compute", "other"]
    printed = next(line for line in invoke(matrix).stdout.splitlines() if line.startswith("throughput/file/ik+rtr=0/"))
    assert f" {told['ram'] / 1024**2:.0f} " in printed


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
    assert lines[-1] == "18 cases in 2 jobs (up to 100 process starts), 8 unsupported, 4 not applicable"


CONTRAST = "throughput/file/ik+rtr=0..ik+rtr=1/pp8@cpu"


@pytest.fixture
def calibrated(matrix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Lets a calibration have found a quad SD of 0.5 % for the contrast, and processes of 3 s."""
    monkeypatch.setenv("MOE_SPREADS", str(tmp_path / "spreads.json"))

    def keep(quarantine: str = "") -> None:
        planned = next(case for case in options.plan_matrix(str(matrix)).cases if case.id == CONTRAST)
        record = Record.model_validate(
            {"when": "2026-11-30T12:00:00Z", "quads": 12, "quad_sd": 0.005, "quarantine": quarantine}
            | {"process_s": 3.0, "start_s": 2.3, "load_s": 1.0, "repetition_s": 0.1}
        )
        cell = cell_of(planned.case.arms[0], "pp8")
        change_spreads(spreads_path(), lambda file: file.with_record(options.probe_node(), cell, record))

    return keep


def test_a_budget_says_what_it_decides_and_why_it_thinks_so(matrix: Path, calibrated: Callable[[str], None]) -> None:
    """Assumed spreads are marked; calibrated ones give minutes too."""
    before = {row["id"]: row["budget"] for row in rows(matrix)}[CONTRAST]
    assert (before["minutes"], before["quad_sd"]) == (None, 0.034)
    assert before["source"].startswith("assumed")
    assert f"~{100 * before['smallest']:g} %" in invoke(matrix).stdout
    calibrated("")
    after = {row["id"]: row["budget"] for row in rows(matrix, "--select", "file", "--select", "!gpu")}[CONTRAST]
    assert after["source"] == "calibration of 2026-11-30"
    assert after["smallest"] < before["smallest"]
    starts = 2 + 2 * 24
    assert after["minutes"] == pytest.approx(starts * 3.0 / 60)
    table = invoke(matrix, "--select", "file/ik").stdout
    assert "spread (1 contrast): quad SD 0.5 %, calibration of 2026-11-30" in table
    assert table.rstrip().endswith("(up to 50 process starts, 2 min at most), 0 unsupported, 2 not applicable")


def test_minutes_of_the_policy_bound_the_quads(matrix: Path, calibrated: Callable[[str], None]) -> None:
    """And what they do not find is listed."""
    calibrated("")
    matrix.write_text(TEXT + "[policy]\nminutes = 0.6\n")
    budget = {row["id"]: row["budget"] for row in rows(matrix)}[CONTRAST]
    assert (budget["quads"], budget["minutes"]) == (2, 0.6)
    assert (
        "not decided within the budget (of 1 contrast): a loss of 2 % in 1"
        in invoke(matrix, "--select", "file/ik").stdout
    )


def test_minutes_promise_nothing_where_nobody_knows_how_long_a_process_takes(matrix: Path) -> None:
    """Neither in the table, nor in the data, nor in the line of a run: minutes of a first quad are not at most."""
    matrix.write_text(TEXT + "[policy]\nminutes = 0.6\n")
    budget = {row["id"]: row["budget"] for row in rows(matrix)}[CONTRAST]
    assert (budget["quads"], budget["minutes"]) == (None, 0.6)
    table = invoke(matrix, "--select", "file/ik").stdout
    (line,) = (line for line in table.splitlines() if line.startswith(CONTRAST))
    assert line.rstrip().endswith("~8 %?")
    assert "it is not known how many quads fit in 36 s of a job (1 contrast)" in table
    assert "what is said to be found holds if all 12 do" in table
    assert "36 s or more, as the first quad of each job is measured whatever it takes)" in table
    headline = forecast_plan(options.plan_matrix(str(matrix), ("file/ik",)), options.known_spreads()).headline()
    assert headline == (
        "1 contrast in 36 s or more, as the first quad of each job is measured whatever it takes: losses of 8 % are"
        " found with 95 % if all quads fit, which no calibration tells (1 by an assumed spread)"
    )


def test_the_first_quad_is_counted_where_the_minutes_have_no_room_for_it(
    matrix: Path, calibrated: Callable[[str], None]
) -> None:
    """Two burn-ins and a quad of 3 s a process: 18 s, whatever the budget of 6 s says."""
    calibrated("")
    matrix.write_text(TEXT + "[policy]\nminutes = 0.1\n")
    budget = {row["id"]: row["budget"] for row in rows(matrix)}[CONTRAST]
    assert (budget["quads"], budget["minutes"]) == (1, pytest.approx(0.3))
    assert "18 s at most)" in invoke(matrix, "--select", "file/ik").stdout


def test_a_quarantine_is_seen_before_the_run(matrix: Path, calibrated: Callable[[str], None]) -> None:
    """In its line, and why below."""
    calibrated("its spread has doubled")
    table = invoke(matrix).stdout
    (line,) = (line for line in table.splitlines() if line.startswith(CONTRAST))
    assert line.rstrip().endswith("quarantined")
    reason = "cell quarantined by the calibration of 2026-11-30: its spread has doubled"
    assert f"inconclusive whatever is measured (1 contrast): {reason}" in table
    assert {row["id"]: row["budget"] for row in rows(matrix)}[CONTRAST]["quarantine"] == reason


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
    assert note["notes"] == [
        f"not on this machine: build patched: no llama-bench at {tmp_path}/build/bin",
        f"not on this machine: model gone: there is no file {tmp_path}/gone.gguf",
    ]
    assert note["reason"] == "; ".join(note["notes"])
    assert found["throughput/file/ik+fa=0/pp8@cpu"]["reason"] == ""
    assert found["throughput/gone/ik+fa=0/pp8@gpu"]["reason"].startswith("no node is of class gpu")
    lines = [line for line in invoke(matrix).stdout.splitlines() if line.startswith("note (")]
    assert sum("model gone" in line and "build" not in line for line in lines) == 1
