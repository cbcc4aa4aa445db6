"""Another machine's results beside the original ones, as ``replay`` and ``compare`` show them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.cli.paper import stdout_console
from harness.domain.errors import EXIT_FINDING, EXIT_OK, EXIT_UNDECIDED
from harness.domain.verdict import Verdict
from harness.judging.wording import assumption_text, speeds_text
from harness.reporting.clean import one_line
from harness.reporting.codec import encode
from harness.reporting.markdown import code
from harness.reporting.summary import verdict_words
from harness.sharing.beside import Agreement, Beside, Machines

_PIPE_WIDTH = 160
_HEADINGS = ("case", "original", "here", "both")
_HONEST = (
    "a contrast is a ratio on one machine and stands beside another's; t/s of two machines are shown and not judged"
)
_STYLES = {Agreement.SAME: "green", Agreement.OTHER: "bold red", Agreement.OPEN: "yellow"}


def exit_code(found: Machines) -> int:
    """A finding that is another one here comes before what is undecided or not in both."""
    words = {row.agreement for row in found.rows}
    if Agreement.OTHER in words:
        return EXIT_FINDING
    return EXIT_UNDECIDED if words & {Agreement.OPEN, Agreement.ABSENT} else EXIT_OK


def tell(found: Machines, form: str) -> None:
    """Print both sides as a table, JSON or Markdown."""
    if form == "json":
        click.echo(json.dumps(as_json(found), indent=2))
    elif form == "markdown":
        click.echo(markdown(found))
    else:
        _print(found, stdout_console(_PIPE_WIDTH))


def as_json(found: Machines) -> dict[str, Any]:
    """Both sides as data."""
    return {**encode(found), "summary": _summary(found.rows)}


def markdown(found: Machines) -> str:
    """Both sides for a page, each kind of work in a table of its own."""
    lines = [f"- original: {code(found.original)}", f"- here: {code(found.mine)}{_same(found)}", f"- {_HONEST}"]
    for work, rows in _by_work(found.rows):
        lines += ["", f"## {code(work)}", "", f"| {' | '.join(_HEADINGS)} |", "|---|---|---|---|"]
        lines += ["| " + " | ".join(code(one_line(cell)) for cell in _cells(row)) + " |" for row in rows]
    return "\n".join([*lines, "", f"**{_summary(found.rows)}**"])


def _print(found: Machines, console: Console) -> None:
    console.print(Text(one_line(f"original  {found.original}"), style="dim"), soft_wrap=True)
    console.print(Text(one_line(f"here      {found.mine}{_same(found)}"), style="dim"), soft_wrap=True)
    for work, rows in _by_work(found.rows):
        table = Table(title=Text(one_line(work)), title_justify="left", box=None, pad_edge=False, header_style="bold")
        for heading in _HEADINGS:
            table.add_column(heading, overflow="fold")
        for row in rows:
            *cells, both = _cells(row)
            told = Text("\n".join(map(one_line, both.splitlines())), style=_STYLES.get(row.agreement, ""))
            table.add_row(*(Text("\n".join(map(one_line, cell.splitlines()))) for cell in cells), told)
        console.print()
        console.print(table)
    console.print()
    console.print(Text(_HONEST, style="dim"), soft_wrap=True)
    console.print(Text(_summary(found.rows), style="bold"))


def _by_work(rows: Sequence[Beside]) -> list[tuple[str, list[Beside]]]:
    return [(work, list(of_work)) for work, of_work in groupby(rows, key=lambda row: row.work)]


def _same(found: Machines) -> str:
    return ", the same machine by all that speeds depend on" if found.same else ""


def _cells(row: Beside) -> tuple[str, str, str, str]:
    overlap = {True: "intervals overlap", False: "intervals do not overlap", None: ""}[row.overlap]
    both = "\n".join(filter(None, [str(row.agreement), overlap, row.content]))
    return (row.case, _side(row.original), _side(row.mine), both)


def _side(verdict: Verdict | None) -> str:
    if verdict is None:
        return "not there"
    estimate = verdict.estimate
    ratio = ""
    if estimate and estimate.unit == "ratio":
        held = assumption_text(estimate)
        ratio = f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]" + (f" {held}" if held else "")
    speeds = speeds_text(verdict.arms) if verdict.arms else ""
    return "\n".join(filter(None, [verdict_words(verdict), ratio, speeds]))


def _summary(rows: Sequence[Beside]) -> str:
    counts = Counter(row.agreement for row in rows)
    told = ", ".join(f"{counts[word]} {word}" for word in Agreement if counts[word])
    return f"{len(rows)} case{'' if len(rows) == 1 else 's'}: {told}"
