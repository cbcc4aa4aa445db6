"""What a person sees while ``ab`` runs, at any width, with and without a terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[1] / "running"))

from ab_support import board_of, events, planned

from harness.cli.ab_report import as_json, markdown, verdict_words
from harness.cli.ab_view import LiveView, PlainView, view_for
from harness.cli.contrast_table import contrast_table, line_of
from harness.domain.verdict import Verdict
from harness.domain.words import Status, Throughput
from harness.execution.events import Finished, Progress
from harness.running.ab import AbPlan
from harness.running.ab_board import Board
from harness.running.ab_run import AbResult

RATIOS = {"pp256": 0.5, "tg64": 1.0}


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def measured(plan: AbPlan, quads: float = 3, ratios: Mapping[str, float] = RATIOS) -> Board:
    board = board_of(plan)
    for event in events(plan, ratios, quads):
        board.take(event)
    return board


def printed(board: Board, width: int) -> list[str]:
    console = Console(file=StringIO(), width=width)
    console.print(contrast_table([line_of(row) for row in board.rows], console))
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [28, 34, 40, 60, 80, 100, 120, 160])
def test_the_table_fits_every_width_and_keeps_workload_change_and_word(width: int) -> None:
    lines = printed(measured(planned()), width)
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    for wanted in ("pp256", "tg64", "%"):
        assert wanted in text
    assert "regressed" in text


def test_more_room_shows_more() -> None:
    board = measured(planned())
    assert "interval" in printed(board, 160)[0]
    assert "1.00" in printed(board, 80)[0]
    assert "old t/s" in printed(board, 64)[0]
    assert "old t/s" not in printed(board, 34)[0]


@pytest.mark.parametrize(("quads", "assumed"), [(1, True), (2, True), (3, False)])
def test_intervals_of_few_quads_are_not_told_as_knowledge(quads: int, assumed: bool) -> None:
    """In the table at any width with an interval in it, in words, on a page and as data."""
    plan = planned()
    board = measured(plan, quads, {"pp256": 0.98, "tg64": 1.0})
    for width in (80, 160):
        text = "\n".join(printed(board, width))
        assert ("dashed: interval if quads scatter by 10 %, which is assumed" in " ".join(text.split())) is assumed
        assert ("99 % interval" in text) is (width == 160 and not assumed)
    ratio = board.rows[0].decision.ratio
    assert ratio is not None
    verdict = Verdict("a", Status.INCONCLUSIVE, "why", throughput=Throughput.INCONCLUSIVE, estimate=ratio)
    result = AbResult(plan, board, {"pp256": verdict}, {}, None, False, Path("reports"))
    told = verdict_words(result, "pp256")
    unknown = "nobody knows yet how far quads scatter, if quads scatter by 10 %"
    assert ("looks" in told, unknown in told) == (not assumed, assumed)
    assert "(if quads scatter by 10 %)" in markdown(result) if assumed else "(99 %)" in markdown(result)
    assert as_json(result)["results"][0]["assumed_quad_sd"] == (0.1 if assumed else None)


def test_beside_known_intervals_the_assumed_ones_are_named() -> None:
    """One is decided at once by two quads, the other one has three."""
    text = " ".join(" ".join(printed(measured(planned()), 160)).split())
    assert "dashed: interval if quads scatter by 10 % (pp256), which is assumed; else 99 %" in text


def test_the_live_screen_says_what_runs_and_how_much_time_is_used() -> None:
    plan = planned()
    terminal = Terminal()
    console = Console(file=terminal, width=100, force_terminal=True, color_system=None)
    with LiveView(console, plan) as view:
        view.draw(measured(plan, 2.5), ended=True)
    text = terminal.getvalue()
    assert "quad 3, process 3 of 4: ik+rtr=1" in text
    assert "of 5:00, a quad takes 0:12" in text
    assert "░" in text


def test_the_live_screen_is_not_drawn_for_every_event() -> None:
    """Drawing takes time on a machine that is measured on."""
    plan, terminal = planned(), Terminal()
    board = measured(plan)
    with LiveView(Console(file=terminal, width=100, force_terminal=True), plan) as view:
        view.draw(board, ended=False)
        size = len(terminal.getvalue())
        for _ in range(20):
            view.draw(board, ended=False)
        assert len(terminal.getvalue()) == size
        view.draw(board, ended=True)
        assert len(terminal.getvalue()) > size


def test_without_a_terminal_a_quad_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    plan = planned()
    board = board_of(plan)
    with PlainView(Console(file=sys.stdout, width=80), plan) as view:
        for event in events(plan, RATIOS, 4):
            view.draw(board, board.take(event))
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "quad 1:" in line]
    assert sum("quad " in line for line in lines) == 1 + 4  # the burn-in tells how long a quad takes
    assert "\x1b" not in "".join(lines)
    decided = [line for line in lines if "pp256 -49" in line and "regressed" in line]
    assert len(decided) == 1, "a decided workload is told of once"


def test_a_log_tells_what_is_made_and_of_no_quad_that_was_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped while its model was still being made."""
    monkeypatch.setattr("harness.running.log_lines.FIRST_S", 0.0)
    plan = planned()
    board = board_of(plan)
    making = Progress(plan.job.id, 1, "making m: weights, 2.1 of 16.1 GiB (13 %)", preparing=True)
    with PlainView(Console(file=sys.stdout, width=80), plan) as view:
        for event in (making, None, Finished(plan.job.id, 1)):
            view.draw(board, board.take(event))
    told = capsys.readouterr().out
    assert told.count("making m: weights, 2.1 of 16.1 GiB (13 %)") == 1
    assert "quad" not in told


def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned()
    assert isinstance(view_for(Console(file=Terminal()), plan), LiveView)
    assert isinstance(view_for(Console(file=StringIO()), plan), PlainView)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(view_for(Console(file=Terminal()), plan), PlainView)


def test_names_can_drive_no_terminal() -> None:
    """A folder can be called anything."""
    plan = planned()
    hostile = replace(plan, arms=replace(plan.arms, names=("\x1b]0;title\x07old\x1b[2J", "new\nline")))
    console = Console(file=StringIO(), width=100, force_terminal=True, color_system=None)
    with PlainView(console, hostile) as view:
        view.draw(measured(hostile), ended=True)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert not re.search(r"\x1b(?!\[\?25|\[0m|\[1?[A-Z])", text)
    assert "new line" in text
