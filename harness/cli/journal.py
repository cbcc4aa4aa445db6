"""``journal``: the journals of shards become one night."""

from __future__ import annotations

import json
from pathlib import Path

import click

from harness.domain.errors import EXIT_OK, EXIT_UNDECIDED
from harness.reporting.clean import one_line
from harness.reporting.joining import LOST
from harness.reporting.merging import merge_journals
from harness.reporting.outcomes import counts_line
from harness.reporting.projections import notes
from harness.reporting.replay import read_journal, read_runs


@click.group()
def journal() -> None:
    """Work on journals."""


@journal.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("journals", metavar="IN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_context
def merge(context: click.Context, out: Path, journals: tuple[Path, ...], form: str) -> None:
    """Merge the journals IN of one night's shards into OUT, a .jsonl file or a folder for journal.jsonl.

    What no journal has is an error of the night, and a case that several have counts by its worst verdict. The order
    does not matter, and OUT can be merged again with what comes later.

    Exit codes: 0 whole, 2 journals of other plans, matrices or policies, 3 cases were lost or a run did not end.
    """
    written = merge_journals(journals, out)
    night = read_journal(written)
    verdicts = night.final_verdicts()
    lost = [verdict.case for verdict in verdicts if verdict.slug == LOST]
    whole = night.finished and night.complete_plan
    if form == "json":
        told = {
            "journal": f"{written}",
            "matrix": night.name,
            "runs": len(read_runs(written)),
            "cases": len(verdicts),
            "lost": lost,
            "whole": whole,
            "notes": notes(night),
        }
        click.echo(json.dumps(told, indent=2))
    else:
        click.echo(f"{one_line(night.name)}, {counts_line(verdicts)}: {written}")
        for note in notes(night):
            click.echo(f"  {one_line(note)}")
    context.exit(EXIT_OK if whole else EXIT_UNDECIDED)
