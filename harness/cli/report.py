"""``report``: make JUnit, summary and page again from a journal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from harness.history.history import History
from harness.history.series import Series
from harness.pages.writing import write_reports
from harness.reporting.codec import encode
from harness.reporting.outcomes import exit_code
from harness.reporting.page import markdown_page
from harness.reporting.projections import notes
from harness.reporting.replay import read_night
from harness.reporting.state import JournalState
from harness.reporting.summary import print_summary, summary_text


@click.command()
@click.argument("journals", metavar="JOURNAL...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder of the reports [the journal's].")
@click.option(
    "--history", "address", metavar="FILE|URL", help="Show each case's nights in the page, from this history."
)
@click.option("--format", "form", type=click.Choice(["table", "json", "markdown"]), default="table", show_default=True)
@click.pass_context
def report(
    context: click.Context, journals: tuple[Path, ...], out: Path | None, address: str | None, form: str
) -> None:
    """Make junit.xml, summary.txt and report.html again from JOURNAL, a journal.jsonl or the folder that holds it.

    Several are the shards of one night, and need --out; of one shard alone, the report is of its cases. What never
    finished is an error in them. Exit codes: 0 fine, 1 a check failed, 2 no journal, 3 undecided or errors.
    """
    if len(journals) > 1 and out is None:
        raise click.UsageError("several journals have no folder in common for their reports: say --out DIR")
    state = read_night(journals)
    write_reports(state, out or state.path.parent, _nights(address, state) if address else {})
    verdicts = state.final_verdicts()
    if form == "json":
        click.echo(json.dumps(_as_json(state), indent=2))
    elif form == "markdown":
        click.echo(markdown_page(state.name, verdicts, notes(state)), nl=False)
    else:
        _print_table(state)
    context.exit(exit_code(verdicts, complete=state.complete_plan))


def _nights(address: str, state: JournalState) -> Mapping[str, Sequence[Series]]:
    """What a history has on the cases of a journal."""
    with History(address) as history:
        return history.series_of(case for case in history.cells() if case in state.planned)


def _as_json(state: JournalState) -> dict[str, Any]:
    return {
        "matrix": state.name,
        "finished": state.finished,
        "torn": state.torn,
        "problems": [encode(problem) for problem in state.problems],
        "verdicts": [encode(verdict) for verdict in state.final_verdicts()],
    }


def _print_table(state: JournalState) -> None:
    console = Console()
    if console.is_terminal:
        print_summary(console, state.final_verdicts(), notes(state))
    else:
        click.echo(summary_text(state.final_verdicts(), notes(state)), nl=False)
