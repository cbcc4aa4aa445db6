"""A journal whose lines are JSON and whose values no harness writes: each such line is told, none ends a command."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from harness.domain.errors import HarnessError
from harness.reporting.replay import read_journal

JOURNAL = Path(__file__).parents[1] / "data" / "gate" / "slow.jsonl"
Change = Callable[[dict[str, Any]], object]


def samples(event: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = event["run"]["samples"][0]
    return found


REFUSED: dict[str, tuple[str, Change]] = {
    "a try without end": ("job_submitted", lambda event: event.update({"try": math.inf})),
    "a try that is a text": ("job_started", lambda event: event.update({"try": "1"})),
    "a case that is a number": ("planned", lambda event: event.update(case=-1)),
    "a case that is nothing": ("planned", lambda event: event.update(case=None)),
    "a job that is a table": ("job_started", lambda event: event.update(job={})),
    "an event that is a list": ("job_started", lambda event: event.update(event=[1])),
    "a case without arms": ("planned", lambda event: event["spec"].update(arms=[])),
    "a verdict on another case": ("verdict", lambda event: event["verdict"].update(case="x")),
    "a ceiling below zero": ("run_started", lambda event: event["policy"].update(ceiling_tps=-1)),
    "a margin that is no number": ("run_started", lambda event: event["policy"].update(margin=math.nan)),
    "a slowdown that is no number": ("job_submitted", lambda event: event["spec"]["design"].update(slowdown=math.nan)),
}
TAKEN: dict[str, tuple[str, Change]] = {
    "half a character": ("job_submitted", lambda event: event["spec"]["arms"][0]["model"].update(quant="\ud800<b>")),
    "a negative time": ("process", lambda event: samples(event).update(all_ns=[-1] * len(samples(event)["all_ns"]))),
    "no tokens": ("process", lambda event: samples(event).update(tokens=0)),
}


def changed(folder: Path, kind: str, change: Change) -> Path:
    """The journal with the last line of a kind changed."""
    events = [json.loads(line) for line in JOURNAL.read_text().splitlines()]
    change([event for event in events if event["event"] == kind][-1])
    path = folder / "journal.jsonl"
    path.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    return path


def commands(path: Path) -> None:
    """What is made of journals; bad input is an answer, anything else that is raised ends the test."""
    case = next(json.loads(line)["case"] for line in JOURNAL.read_text().splitlines() if ".." in line[:400])
    for arguments in (
        ["report", f"{path}", "--out", f"{path.parent / 'out'}"],
        ["gate", f"{path}"],
        ["explain", f"{path}"],
        ["explain", case, f"{path}"],
        ["github", "summary", f"{path}"],
        ["history", "import", f"{path}", "--history", f"{path.parent / 'history.sqlite'}"],
        ["compare", f"{JOURNAL}", f"{path}"],
        ["bundle", case, f"{path}", "-o", f"{path.parent / 'b.tar.gz'}"],
    ):
        result = CliRunner().invoke(cli, arguments, standalone_mode=False)
        assert result.exception is None or isinstance(result.exception, HarnessError), arguments


@pytest.mark.parametrize("name", REFUSED)
def test_a_line_with_a_value_that_cannot_be_is_told_and_costs_no_other(name: str, tmp_path: Path) -> None:
    path = changed(tmp_path, *REFUSED[name])
    assert (
        1 <= len([problem for problem in read_journal(path).problems if problem.line]) <= 2
    )  # a plan's line takes its verdict's along
    commands(path)


@pytest.mark.parametrize("name", TAKEN)
def test_a_value_that_nothing_can_be_made_of_ends_no_command(name: str, tmp_path: Path) -> None:
    path = changed(tmp_path, *TAKEN[name])
    assert read_journal(path).problems == ()
    commands(path)


EVIL = (
    "=cmd\n::error::pwned\n##[add-mask]x\n<img src=x> \x1b]0;t\x07\x1b[31m\x00\u202e\u200f @all"
    " ![i](https://evil.example) `x`"
)
NAMES = {
    *("reason", "host", "cpu_model", "kernel", "governor", "slug"),
    *("matrix", "message", "build_commit", "node", "word"),
}
TERMINAL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # escapes and directions
    "|^(::|##)",  # commands of a runner
    re.MULTILINE,
)


def hostile(value: object, name: str = "") -> object:
    """A value with its texts replaced, where their names say that engines, forks and machines write them."""
    if isinstance(value, dict):
        return {key: hostile(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [hostile(each, name) for each in value]
    return EVIL if isinstance(value, str) and name in NAMES else value


def test_no_text_of_a_journal_drives_a_terminal_or_a_runner(tmp_path: Path) -> None:
    """Escapes, directions of writing, and lines that begin as commands of a runner; in pages, markup."""
    path, history = tmp_path / "journal.jsonl", f"{tmp_path / 'history.sqlite'}"
    lines = [json.dumps(hostile(json.loads(line))) for line in JOURNAL.read_text().splitlines()]
    path.write_text("".join(f"{line}\n" for line in lines))
    case = next(iter(case for case in read_journal(path).planned if ".." in case))
    for arguments in (
        ["report", f"{path}"],
        ["gate", f"{path}"],
        ["explain", case, f"{path}"],
        ["history", "import", f"{path}", "--history", history],
        ["history", "list", "--history", history],
        ["history", "show", case, "--history", history],
        ["history", "export", "--history", history],
        ["compare", f"{JOURNAL}", f"{path}"],
    ):
        told = CliRunner().invoke(cli, arguments, standalone_mode=False).output
        assert "cmd" in told, arguments
        assert TERMINAL.search(told) is None, arguments
    page = CliRunner().invoke(cli, ["compare", f"{JOURNAL}", f"{path}", "--format", "markdown"]).output
    assert "<img" in page
    assert "<img" not in re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", page)
