"""``replay``: run cases of a journal or bundle again on this machine, and set the results beside the original ones."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from harness.cli.beside_table import as_json, tell
from harness.cli.beside_table import exit_code as beside_exit_code
from harness.explaining.finding import cases_like
from harness.reporting.outcomes import exit_code
from harness.running.live import LiveLine
from harness.running.options import DEFAULT_REPORTS, known_spreads
from harness.running.replay_run import run_again
from harness.sharing.beside import side_by_side
from harness.sharing.opened import opened
from harness.sharing.replaying import Given, replay_plan
from harness.sharing.unpacking import is_bundle


class _Named(click.ParamType[tuple[str, str]]):
    """``NAME=PATH``."""

    name = "NAME=PATH"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        name, _, path = str(value).partition("=")
        if not name or not path:
            self.fail(f"{value!r} is no NAME=PATH", param, ctx)
        return name, str(Path(path).expanduser().absolute())


@click.command()
@click.argument("case")
@click.argument("journal", required=False, type=click.Path(path_type=Path))
@click.option("--build", "builds", multiple=True, type=_Named(), help="Use this llama-bench, or its folder, as NAME.")
@click.option("--model", "models", multiple=True, type=_Named(), help="Use this model file as NAME.")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="Budget of each job [as recorded].")
@click.option("--reports", type=click.Path(path_type=Path), help="Folder of the new journal [moe-reports/replay-TIME].")
@click.option("--trust", is_flag=True, help="Let a bundle run its recipes and programs, fetch, and set variables.")
@click.option("--format", "form", type=click.Choice(["table", "json", "markdown"]), default="table", show_default=True)
@click.pass_context
def replay(  # noqa: PLR0917 - click passes by name
    context: click.Context,
    case: str,
    journal: Path | None,
    builds: tuple[tuple[str, str], ...],
    models: tuple[tuple[str, str], ...],
    minutes: float | None,
    reports: Path | None,
    trust: bool,
    form: str,
) -> None:
    """Run CASE of JOURNAL (a journal.jsonl or its folder [moe-reports]) again here, or all cases of a bundle.

    CASE is an id, a part of some, a glob, a contrast, or a bundle's file. Arms, workloads, repetitions and policy are
    those of the journal; what is not here is named, with the option that takes it.

    Exit codes: 0 fine and the same finding, 1 a check failed or another finding, 2 bad input, 3 undecided or errors,
    130 Ctrl-C.
    """
    source, pattern = (Path(case), "*") if journal is None and is_bundle(Path(case)) else (journal, case)
    with opened(source or Path(DEFAULT_REPORTS)) as original:
        cases = cases_like(original.state, pattern)
        plan = replay_plan(original, cases, Given(dict(builds), dict(models), minutes, trust))
        folder = reports or Path(DEFAULT_REPORTS) / f"replay-{datetime.now().astimezone():%Y%m%dT%H%M%S}"
        starts = sum(job.process_starts for job in plan.jobs)
        said = Console(stderr=True, highlight=False)
        live = LiveLine(sys.stderr, cases=len(cases), processes=starts, enabled=form == "table", say=said.print)
        with live as line:
            mine = run_again(plan, known_spreads(), folder, line.take)
        found = side_by_side(original.state, mine)
    if form == "json":
        click.echo(json.dumps({**as_json(found), "journal": str(mine.path)}, indent=2))
    else:
        tell(found, form)
    click.echo(f"journal: {mine.path}", err=True)
    own = exit_code(mine.final_verdicts(), complete=mine.complete_plan)
    context.exit(own or beside_exit_code(found))
