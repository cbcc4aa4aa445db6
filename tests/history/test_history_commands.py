"""The commands of the history, on real journals and on what forks may write into them."""

from __future__ import annotations

import csv
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from history_support import CONTRAST, cell, day, nights, run, stepped

from harness.cli.history import history
from harness.domain.errors import BadInput
from harness.history.history import History
from harness.history.series import BuildRef
from harness.pages.nights import nights_data

DATA = Path(__file__).parents[1] / "data"
H200 = DATA / "h200_repack"
SQL = DATA / "recordings" / "llama_cpp-b11434.short.sql"
PITFALL = (
    "pitfall/qwen3-30b-a3b-iq4xs/ik+amb=512+fa=1+offload=experts+rtr=0+ub=2048"
    "..ik+amb=512+fa=1+offload=experts+rtr=1+ub=2048/pp2048@hybrid"
)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A history that nobody else has."""
    path = str(tmp_path / "history.sqlite")
    monkeypatch.setenv("MOE_HISTORY", path)
    return path


def _ask(*arguments: str) -> Result:
    result = CliRunner().invoke(history, arguments, catch_exceptions=True)
    if isinstance(result.exception, BadInput):
        raise result.exception
    return result


def test_real_journals_and_a_dump_of_llama_bench_become_nights(tmp_path: Path) -> None:
    """A folder, a file, two runs in one journal, and SQL; all of it twice."""
    both = tmp_path / "reports"
    both.mkdir()
    parts = [(H200 / name).read_bytes() for name in ("one_quad.jsonl", "two_quads.jsonl")]
    (both / "journal.jsonl").write_bytes(b"".join(parts))
    for added in (9, 0):
        told = json.loads(_ask("import", str(both), str(SQL), "--format", "json").stdout)
        assert [each["night"] for each in told] == ["2026-11-30", "2026-12-01", "2026-12-01"]
        assert sum(each["added"] for each in told) == added
    shown = json.loads(_ask("show", PITFALL, "--format", "json").stdout)
    (series,) = shown["series"]
    assert [round(point["value"], 3) for point in series["points"]] == [0.091, 0.095]
    assert shown["verdicts"][0]["builds"][0]["commit"] == "8337e4cd"
    assert "E-never-finished" in _ask("list").stdout
    assert "2430 t/s" in _ask("list", "--night", "2026-11-30").stdout


def test_a_journal_that_was_cut_and_then_grew_adds_the_rest(tmp_path: Path) -> None:
    """Also one whose last line is torn."""
    journal = tmp_path / "journal.jsonl"
    content = (H200 / "two_quads.jsonl").read_bytes()
    journal.write_bytes(content[: len(content) // 2])
    assert "1 added, 0 changed" in _ask("import", str(journal)).stdout
    shutil.copy(H200 / "two_quads.jsonl", journal)
    assert "0 added, 1 changed" in _ask("import", str(journal)).stdout
    assert "0.095" in _ask("show", PITFALL).stdout


def test_a_change_is_shown_and_a_new_regression_is_a_finding(place: str) -> None:
    with History(place, make=True) as opened:
        nights(opened, stepped(20, 15, -0.10))
    shown = _ask("show", CONTRAST).stdout
    assert f"first night {day(15)}" in shown
    assert "candidate c0000014..c0000015" in shown
    new, known = _ask("regressions", "--night", f"{day(17)}"), _ask("regressions")
    assert (new.exit_code, known.exit_code) == (1, 0)
    assert new.stdout.startswith("new: ")
    assert known.stdout.startswith(f"known since {day(17)}: ")


def test_an_interval_of_an_assumed_scatter_says_so(place: str) -> None:
    """Beside one that was measured: on the terminal, in the data, in the export, on the page."""
    measured, assumed = (cell(CONTRAST, 0.9, BuildRef("head", name)) for name in ("a", "b"))
    assert assumed.figure is not None
    assumed = replace(assumed, figure=replace(assumed.figure, assumed=0.1))
    with History(place, make=True) as opened:
        opened.add(run(1, [measured]))
        opened.add(run(2, [assumed]))
        (page,) = nights_data(opened.series(CONTRAST))
    shown = [line for line in _ask("show", CONTRAST).stdout.splitlines() if line.startswith("2026-")]
    assert ["[0.882, 0.918]" in line for line in shown] == [True, True]
    assert ["if quads scatter by 10 %" in line for line in shown] == [False, True]
    data = json.loads(_ask("show", CONTRAST, "--format", "json").stdout)
    assert [point["assumed"] for point in data["series"][0]["points"]] == [None, 0.1]
    assert [verdict["assumed"] for verdict in data["verdicts"]] == [None, 0.1]
    rows = list(csv.DictReader(io.StringIO(_ask("export").stdout)))
    assert [row["assumed"] for row in rows] == ["", "0.1"]
    assert [point["assumed"] for point in page["points"]] == ["", "if quads scatter by 10 %"]


def test_nothing_of_a_fork_is_alive_on_a_terminal_or_in_a_spreadsheet(place: str) -> None:
    """Escapes, line breaks and formulas in ids, builds, matrices and reasons."""
    evil = "=HYPERLINK(1)\x1b]0;x\x07\x1b[31m\r\n@x"
    head = BuildRef("head", f"={evil}")
    with History(place, make=True) as opened:
        opened.add(run(1, [cell(evil, 1.0, head, reason=evil), cell(CONTRAST, None, head, reason=evil)], matrix=evil))
    outputs = [
        _ask("show", evil).stdout,
        _ask("list").stdout,
        _ask("export").stdout,
        _ask("export", "--format=json").stdout,
    ]
    assert all("\x1b" not in output and "\r" not in output and "\x07" not in output for output in outputs)
    for row in csv.reader(io.StringIO(outputs[2])):
        assert not any(value.startswith(("=", "+", "-", "@")) for value in row)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "x"], "E-no-history"),
        (["import", "none"], "E-no-input"),
        (["import", str(DATA / "recordings" / "README.md")], "E-nothing-readable"),
        (["import", str(DATA / "discussion399" / "mainline.md")], "E-no-time.*--night"),
    ],
)
def test_what_cannot_be_read_is_said(arguments: list[str], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        _ask(*arguments)


def test_tables_without_times_take_the_night_that_is_given() -> None:
    result = _ask("import", str(DATA / "discussion399" / "mainline.md"), "--night", "2025-05-13")
    assert result.exit_code == 0
    assert "2025-05-13" in result.stdout


def test_no_cell_of_a_night_is_said_with_what_there_is(place: str) -> None:
    with History(place, make=True) as opened:
        nights(opened, stepped(3, 1, 0.0))
    with pytest.raises(BadInput, match=r"E-unknown-cell.*no cell of 2020-01-01"):
        _ask("list", "--night", "2020-01-01")
    with pytest.raises(BadInput, match="E-unknown-cell"):
        _ask("list", "nothing*")
