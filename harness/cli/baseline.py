"""``moe-harness baseline``: which build is the baseline of which branch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.builds.baselines import SIGN, Change, baselines, baselines_file, drift, history, roll_back, set_baseline
from harness.builds.provenance import short_commit
from harness.reporting.clean import one_line

_FORMAT = click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
_WHY = click.option("--why", default="", help="What to remember about it.")


@click.group()
def baseline() -> None:
    """Remember which build is the baseline of which branch: @BRANCH means it, wherever a build is named."""


@baseline.command(name="set")
@click.argument("branch")
@click.argument("build")
@_WHY
@_FORMAT
def set_(branch: str, build: str, why: str, form: str) -> None:
    """Make BUILD, a name of the catalogue, the baseline of BRANCH."""
    _tell(branch.removeprefix(SIGN), [set_baseline(branch.removeprefix(SIGN), build, why)], form)


@baseline.command()
@click.argument("branch", required=False)
@_FORMAT
def show(branch: str | None, form: str) -> None:
    """The history of BRANCH, newest first; without it the baseline of every branch."""
    if branch is not None:
        name = branch.removeprefix(SIGN)
        _tell(name, list(reversed(history(name))), form)
        return
    rows = [_row(name, changes[-1]) for name, changes in baselines().items()]
    _print(rows, form)


@baseline.command()
@click.argument("branch")
@_WHY
@_FORMAT
def rollback(branch: str, why: str, form: str) -> None:
    """Make the baseline that BRANCH had before the baseline again; the history keeps both."""
    _tell(branch.removeprefix(SIGN), [roll_back(branch.removeprefix(SIGN), why)], form)


def _tell(branch: str, changes: Sequence[Change], form: str) -> None:
    _print([_row(branch, change) for change in changes], form)


def _row(branch: str, change: Change) -> dict[str, Any]:
    told = change.model_dump(mode="json", exclude={"entry"})
    entry = change.entry.model_dump(mode="json", exclude_defaults=True)
    return {"branch": branch, **told, "entry": entry, "drift": drift(change)}


def _print(rows: Sequence[dict[str, Any]], form: str) -> None:
    if form == "json":
        click.echo(json.dumps(rows, indent=2))
        return
    if not rows:
        click.echo(f"no baselines in {baselines_file().path}: moe-harness baseline set BRANCH BUILD")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("branch", "build", "commit", "since", "by", "why"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        why = " ".join(filter(None, ["rolled back." if row["rollback"] else "", row["why"]]))
        commit = short_commit(row["entry"].get("told", {}).get("commit", ""))
        cells = [row["branch"], row["build"], commit, row["when"][:16].replace("T", " "), row["who"], why]
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    Console().print(table)
    for row in {row["branch"]: row for row in reversed(rows)}.values():  # the newest of each branch
        if row["drift"]:
            branch, build = row["branch"], row["build"]
            remedy = f"to make what is there now the baseline: moe-harness baseline set {branch} {build}"
            click.echo(one_line(f"{SIGN}{branch} is still the build that was set, but {row['drift']}; {remedy}"))
