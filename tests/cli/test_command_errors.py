"""Errors of the command line: one message with its slug, the exit code, and data where data was asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli.main import entry


def run(arguments: list[str]) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        entry(arguments)
    return int(ended.value.code or 0)


def test_a_known_error_is_one_line_and_its_exit_code(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """No traceback, nothing on the stream of results."""
    assert run(["plan", str(tmp_path / "none.toml")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("moe-harness: E-matrix-missing: ")
    assert told.err.count("\n") == 1


@pytest.mark.parametrize("form", [["--format", "json"], ["--format=json"]])
def test_an_error_is_data_where_data_was_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, form: list[str]
) -> None:
    """The slug, message, hint and place, under one key."""
    assert run(["plan", str(tmp_path / "none.toml"), *form]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["slug"] == "E-matrix-missing"


@pytest.mark.parametrize("arguments", [["plam"], ["plan", "--no-such-option"], ["report"]])
def test_wrong_usage_is_exit_2(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    """As click says it."""
    assert run(arguments) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_missing_journal_is_bad_input(tmp_path: Path) -> None:
    """And no finding."""
    assert run(["report", str(tmp_path)]) == 2


@pytest.mark.parametrize("number", ["nan", "inf", "1e400", "-nan"])
@pytest.mark.parametrize("option", ["ab --minutes", "ab --margin", "ab --alpha", "calibrate --minutes"])
def test_what_is_no_finite_number_is_wrong_usage(capsys: pytest.CaptureFixture[str], option: str, number: str) -> None:
    """NaN lies in every range, for no comparison with it is true."""
    command, name = option.split()
    assert run([command, f"{name}={number}", "old", "new"]) == 2
    assert name in capsys.readouterr().err
