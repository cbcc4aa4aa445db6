"""``moe-harness history``: what was measured night after night, and what changed in it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import click

from harness.cli.compare_inputs import file_content
from harness.cli.history_export import csv_text
from harness.cli.history_json import imported_json, regression_json, series_json, trend_json, verdict_json
from harness.cli.history_tables import print_cell, print_cells, print_imported, print_regressions
from harness.domain.errors import EXIT_FINDING, EXIT_OK, BadInput
from harness.engines.imported.reading import decoded, read_output
from harness.history.bench_files import bench_runs
from harness.history.history import History
from harness.history.records import RunRecord, lost_records, run_record
from harness.reporting.clean import clean
from harness.reporting.journal import JOURNAL_NAME
from harness.reporting.replay import read_runs
from harness.reporting.state import JournalState

_JOURNAL_LINE = re.compile(rb'\s*\{[^\n]*"event"')
_FORMAT = click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
_WHERE = click.option(
    "--history",
    "address",
    metavar="FILE|URL",
    default="",
    help="The history: a file of SQLite, or postgresql://USER@HOST/NAME [MOE_HISTORY, else one in your state folder].",
)


def _night_option(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option for a night."""
    return click.option(
        "--night",
        type=click.DateTime(["%Y-%m-%d"]),
        callback=lambda _context, _option, value: value and value.date(),
        metavar="DATE",
        help=what,
    )


@click.group()
def history() -> None:
    """Keep what nights measured in a database, and tell what changed in them."""


@history.command("import")
@click.argument("files", metavar="JOURNAL...", nargs=-1, required=True)
@_night_option("The night they belong to [the day a run began, UTC].")
@_WHERE
@_FORMAT
def import_(files: tuple[str, ...], night: date | None, address: str, form: str) -> None:
    """Put JOURNALs into the history: journals or their folders, and what llama-bench printed, e.g. as SQL.

    Importing twice changes nothing; of a journal that grew the rest is added. Runs are taken in order of time.

    Exit codes: 0 all is in, 2 bad input, 3 the database does not answer or is locked. What was imported before an
    error stays.
    """
    runs = sorted(_runs(files, night), key=lambda run: run.began)
    with History(address, make=True) as opened:
        done = [opened.add(run) for run in runs]
    if form == "json":
        click.echo(json.dumps([imported_json(each) for each in done], indent=2, allow_nan=False))
    else:
        print_imported(done, opened.where)


@history.command()
@click.argument("cell")
@_WHERE
@_FORMAT
def show(cell: str, address: str, form: str) -> None:
    """Show the nights of CELL, a case's id: figures, builds, verdicts, machines, gaps, and what changed.

    Exit codes: 0 shown, 2 no such cell.
    """
    with History(address) as opened:
        verdicts, series = opened.verdicts(cell), opened.series(cell)
    if form == "json":
        told = {
            "cell": cell,
            "series": [series_json(each) for each in series],
            "verdicts": [verdict_json(each) for each in verdicts],
        }
        click.echo(json.dumps(told, indent=2, allow_nan=False))
    else:
        print_cell(cell, verdicts, series)


@history.command("list")
@click.argument("pattern", default="*")
@_night_option("The night [the last one].")
@_WHERE
@_FORMAT
def list_(pattern: str, night: date | None, address: str, form: str) -> None:
    """List the cells of a night whose ids match PATTERN (* and ?): last figure, verdict, trend, what changed.

    Exit codes: 0 listed, 2 no cell matches.
    """
    with History(address) as opened:
        asked = night or opened.last_night()
        trends = [each for each in opened.night(asked) if _matches(each.last.cell, pattern)]
        if not trends:
            raise _no_cell(pattern, asked, opened)
    if form == "json":
        click.echo(json.dumps([trend_json(each) for each in trends], indent=2, allow_nan=False))
    else:
        print_cells(asked, trends)


@history.command()
@_night_option("The night [the last one].")
@_WHERE
@_FORMAT
@click.pass_context
def regressions(context: click.Context, night: date | None, address: str, form: str) -> None:
    """Tell which cells are worse on a night than before: new ones first, and since when the others are known.

    Exit codes: 0 none is new, 1 there are new ones, 2 bad input.
    """
    with History(address) as opened:
        asked = night or opened.last_night()
        found = opened.regressions(asked)
    if form == "json":
        click.echo(json.dumps([regression_json(each) for each in found], indent=2, allow_nan=False))
    else:
        print_regressions(asked, found)
    context.exit(EXIT_FINDING if any(each.new for each in found) else EXIT_OK)


@history.command()
@click.argument("pattern", default="*")
@click.option("--format", "form", type=click.Choice(["csv", "json"]), default="csv", show_default=True)
@_WHERE
def export(pattern: str, form: str, address: str) -> None:
    """Write every verdict of the cells whose ids match PATTERN, for a spreadsheet or a program.

    In CSV a text that a spreadsheet would take for a formula begins with an apostrophe.

    Exit codes: 0 written, 2 no cell matches.
    """
    with History(address) as opened:
        cells = [each for each in opened.cells() if _matches(each, pattern)]
        if not cells:
            raise _no_cell(pattern, None, opened)
        verdicts = [each for verdicts in opened.verdicts_of(cells).values() for each in verdicts]
    if form == "json":
        click.echo(json.dumps([verdict_json(each) for each in verdicts], indent=2, allow_nan=False))
    else:
        click.echo(csv_text(verdicts), nl=False)


# ---- what is read ----------------------------------------------------------------------------------------------------


def _runs(files: Sequence[str], night: date | None) -> Iterator[RunRecord]:
    """The runs of files, whatever they are, and what their shards lost: all are read before the first is written."""
    states: list[JournalState] = []
    for file in files:
        path = Path(file) / JOURNAL_NAME if Path(file).is_dir() else Path(file)
        content = file_content(f"{path}")
        if not _JOURNAL_LINE.match(content):
            yield from _bench_runs(content, path, night)
            continue
        for state in read_runs(path):
            yield run_record(state, night)
            _note_problems(f"{path}", (f"line {each.line}: {each.message}" for each in state.problems))
            states.append(replace(state, jobs={}, verdicts={}))  # what was measured would fill the memory
    for lost in lost_records(states, night):
        _note_problems(f"{lost.night}", [lost.source])
        yield lost


def _bench_runs(content: bytes, path: Path, night: date | None) -> Iterator[RunRecord]:
    found = read_output(decoded(content), f"{path}")
    _note_problems("", map(str, found.problems))
    if not found.rows:
        hint = "give a journal.jsonl, its folder, or what llama-bench printed"
        raise BadInput("E-nothing-readable", "no run can be read of it", hint=hint, where=f"{path}")
    yield from bench_runs(found.rows, f"{path}", night)


def _note_problems(where: str, problems: Iterable[str]) -> None:
    for problem in problems:
        click.echo(clean(f"note: {f'{where}, ' if where else ''}{problem}"), err=True)


def _matches(case: str, pattern: str) -> bool:
    """Brackets are no pattern: ids have none, and a typing error is to be seen as one."""
    parts = (".*" if part == "*" else "." if part == "?" else re.escape(part) for part in re.split(r"([*?])", pattern))
    return re.fullmatch("".join(parts), case) is not None


def _no_cell(pattern: str, night: date | None, opened: History) -> BadInput:
    cells = opened.cells()
    elsewhere = [case for case in cells if _matches(case, pattern)]
    if night and elsewhere:
        hint = f"--night; its nights: moe-harness history show '{elsewhere[0]}'"
        return BadInput("E-unknown-cell", f"no cell of {night} matches '{pattern}'", hint=hint, where=opened.where)
    return opened.unknown_cell(pattern, cells)
