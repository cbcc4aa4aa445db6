"""``explain``: why a case ended as it did, or what the reds of a night share."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.cli.paper import stdout_console
from harness.domain.errors import BadInput
from harness.explaining.finding import the_case
from harness.explaining.night import explain_night
from harness.explaining.one_case import explain_case
from harness.explaining.sections import Section, case_sections, night_sections
from harness.reporting.clean import clean, one_line
from harness.reporting.codec import encode
from harness.reporting.journal import JOURNAL_NAME
from harness.reporting.markdown import code, fenced
from harness.reporting.replay import read_night
from harness.reporting.state import JournalState
from harness.running.options import DEFAULT_REPORTS

_PIPE_WIDTH = 120


@click.command()
@click.argument("case", required=False)
@click.argument("journals", metavar="[JOURNAL]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--all", "everything", is_flag=True, help="Everything instead of one screen.")
@click.option("--format", "form", type=click.Choice(["table", "json", "markdown"]), default="table", show_default=True)
def explain(case: str | None, journals: tuple[Path, ...], everything: bool, form: str) -> None:
    """Explain CASE of JOURNAL (a journal.jsonl or its folder [moe-reports]): its interval, quads, arms side by side.

    CASE is an id, a part of one that names no other, a glob, or a contrast. Without CASE, also with a JOURNAL alone,
    what the reds of the journal share. Several journals are the shards of one night.

    Exit codes: 0 fine, 2 no such case or journal.
    """
    wanted, state = _read(case, journals)
    if wanted is None:
        night = explain_night(state)
        sections = night_sections(night, everything=everything)
        data = encode(night)
    else:
        found = explain_case(state, the_case(state, wanted))
        sections = case_sections(found, everything=everything)
        data = encode(found)
    if form == "json":
        click.echo(json.dumps(data, indent=2))
    elif form == "markdown":
        click.echo("\n".join(_markdown(sections)))
    else:
        _print(sections, stdout_console(_PIPE_WIDTH))


def _read(case: str | None, journals: tuple[Path, ...]) -> tuple[str | None, JournalState]:
    """What is asked, and of what: journals may stand alone."""
    usual = Path(DEFAULT_REPORTS)
    if case is not None and _is_journal(Path(case)):
        if absent := [journal for journal in journals if not journal.exists()]:
            hint = "a CASE comes first: moe-harness explain CASE JOURNAL"
            raise BadInput("E-no-journal", "there is no such journal", hint=hint, where=f"{absent[0]}")
        return None, _planned((Path(case), *journals))
    if journals or _is_journal(usual):
        return case, _planned(journals or (usual,))
    if case is not None and Path(case).is_dir():
        return None, _planned((Path(case),))
    hint = "moe-harness explain JOURNAL sorts the reds of one, moe-harness explain CASE JOURNAL explains a case"
    raise BadInput("E-no-journal", "there is no journal here", hint=hint, where=f"{usual}")


def _planned(journals: tuple[Path, ...]) -> JournalState:
    state = read_night(journals)
    if not state.planned:
        message = "no case is planned in it: not a journal, or one whose first lines are lost"
        raise BadInput("E-no-journal", message, hint="give a journal.jsonl or its folder", where=f"{state.path}")
    for each in state.problems:
        place = f"{state.path}, line {each.line}" if each.line else f"{state.path}"
        click.echo(one_line(f"note: {place}: {each.message}"), err=True)
    return state


def _is_journal(path: Path) -> bool:
    try:
        return path.is_file() or (path / JOURNAL_NAME).is_file()
    except (OSError, ValueError):
        return False


def _markdown(sections: Sequence[Section]) -> Iterator[str]:
    for section in sections:
        yield from (f"## {code(section.title)}", "")
        yield from (f"- {code(line)}" for line in section.lines)
        if section.rows:
            yield from ("", f"| {' | '.join(code(heading) for heading in section.headings)} |")
            yield "|" + "---|" * len(section.headings)
            yield from ("| " + " | ".join(code(cell) for cell in row) + " |" for row in section.rows)
        if section.text:
            yield from ("", *fenced(section.text))
        yield ""


def _print(sections: Sequence[Section], console: Console) -> None:
    for number, section in enumerate(sections):
        if number:
            console.print()
        console.print(Text(one_line(section.title), style="bold"), soft_wrap=True)
        for line in section.lines:
            console.print(Text(f"  {one_line(line)}"), soft_wrap=True)
        if section.rows:
            console.print(_table(section))
        if section.text:
            console.print(Text("\n".join(f"    {line}" for line in clean(section.text).splitlines())), soft_wrap=True)


def _table(section: Section) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 2))
    for heading in section.headings:
        table.add_column(Text(one_line(heading)), overflow="fold")
    for row in section.rows:
        table.add_row(*(Text(_kept(cell)) for cell in row))
    return table


def _kept(cell: str) -> str:
    """One line, with the space before what does not differ."""
    return f"  {one_line(cell)}" if cell.startswith("  ") else one_line(cell)
