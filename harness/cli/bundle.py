"""``bundle``: pack cases of a journal for somebody with other hardware."""

from __future__ import annotations

import json
from pathlib import Path

import click

from harness.explaining.finding import cases_like
from harness.reporting.clean import one_line
from harness.reporting.replay import read_journal
from harness.running.options import DEFAULT_REPORTS
from harness.sharing.bundle import Extras, pack


@click.command()
@click.argument("case")
@click.argument("journal", required=False, type=click.Path(path_type=Path))
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, dir_okay=False), default="bundle.tar.gz", show_default=True
)
@click.option("--with-weights", is_flag=True, help="Pack model files that the matrix names by path.")
@click.option("--with-builds", is_flag=True, help="Pack the folders of builds that it names by path.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def bundle(  # noqa: PLR0917 - click passes by name
    case: str,
    journal: Path | None,
    out: Path,
    with_weights: bool,
    with_builds: bool,
    form: str,
) -> None:
    """Pack the cases CASE of JOURNAL (a journal.jsonl or its folder [moe-reports]) into one archive.

    CASE is an id, a part of some, a glob, or a contrast. The archive has their part of the journal, shape cards, a
    README with the commands and a list with digests: no folders of this machine, no host, no weights, no programs.
    Variables that look like secrets are refused. The same journal gives the same bytes.

    Exit codes: 0 fine, 2 bad input, 3 it could not be written.
    """
    state = read_journal(journal or Path(DEFAULT_REPORTS))
    found = pack(state, cases_like(state, case), out, Extras(with_weights, with_builds))
    if form == "json":
        click.echo(json.dumps({"bundle": str(found.path), "files": found.files, "needed": found.needed}, indent=2))
        return
    click.echo(f"{found.path}: {out.stat().st_size / 1024:.0f} KiB, {one_line(', '.join(found.files))}")
    for line in found.needed:
        click.echo(f"  whoever runs it brings {one_line(line)}")
    click.echo(f"  there: moe-harness replay {found.path.name}, then moe-harness compare {found.path.name} JOURNAL")
