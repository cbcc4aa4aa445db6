"""``github``: what a run's job shows on GitHub, and the issues about regressions."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from harness.domain.errors import BadInput
from harness.github.annotations import commands
from harness.github.api import PUBLIC_API, GitHub
from harness.github.issue_plan import Step, plan_issues
from harness.github.issues import LABEL, update_issues
from harness.github.job_summary import MOST_BYTES, job_summary
from harness.github.known_before import with_history
from harness.github.night import Night, read_night
from harness.history.history import History
from harness.reporting.clean import one_line

_JOURNALS = click.argument("journals", metavar="JOURNAL...", nargs=-1, required=True, type=click.Path(path_type=Path))
_TOKENS = ("GITHUB_TOKEN", "GH_TOKEN")
_RUN_ID = re.compile(r"[0-9]{1,20}")
_LABEL = re.compile(r"[^,\x00-\x1f\x7f]{1,50}")


@click.group()
def github() -> None:
    """Job summaries, annotations and issues. JOURNAL is a journal.jsonl or its folder; several are one night."""


@github.command()
@_JOURNALS
@click.option("--most-bytes", type=click.IntRange(10_000, MOST_BYTES), default=MOST_BYTES, show_default=True)
def summary(journals: tuple[Path, ...], most_bytes: int) -> None:
    """Print the Markdown of a job's summary, worst first.

    For example: moe-harness github summary moe-reports >> "$GITHUB_STEP_SUMMARY"

    Exit codes: 0 fine, also with findings; 2 a journal that can't be read, the others are told of all the same.
    """
    night = read_night(journals)
    click.echo(job_summary(night, most_bytes), nl=False)
    _end(night)


@github.command("annotations")
@_JOURNALS
def annotate(journals: tuple[Path, ...]) -> None:
    """Print commands of the runner: errors for what failed, warnings for what is undecided, as many as GitHub shows.

    Exit codes: 0 fine, also with findings; 2 a journal that can't be read.
    """
    night = read_night(journals)
    for line in commands(night):
        click.echo(line)
    _end(night)


@github.command()
@_JOURNALS
@click.option("--repo", default="", metavar="OWNER/NAME", help="Repository of the issues [$GITHUB_REPOSITORY].")
@click.option(
    "--history", "address", default="", metavar="FILE|URL", help="What is worse than the nights before is one, too."
)
@click.option("--label", default=LABEL, show_default=True, help="Label that the issues are found by.")
@click.option(
    "--most-new", type=click.IntRange(0, 100), default=10, show_default=True, help="Issues opened in one run."
)
@click.option("--dry-run", is_flag=True, help="Say what would be done; with a token, seen against what is there.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def issues(  # noqa: PLR0917 - click passes by name
    journals: tuple[Path, ...], repo: str, address: str, label: str, most_new: int, dry_run: bool, form: str
) -> None:
    """Keep one issue for each regression: opened, brought up to date, closed when it is gone.

    A token that may write issues is read from GITHUB_TOKEN or GH_TOKEN, never from the command line. What is
    undecided neither opens nor closes one.

    Exit codes: 0 done, also with regressions; 2 bad input, a token that is refused; 3 GitHub does not answer.
    """
    if not _LABEL.fullmatch(label):
        raise BadInput("E-github-label", "a label has 1 to 50 characters and no comma", where="--label")
    night = read_night(journals)
    if not night.found:
        _end(night)  # nothing was read: no reason to ask GitHub
    if address:
        with History(address) as history:
            night = with_history(night, history.regressions())
    run = run_text(os.environ)
    steps: list[Step] = []
    if dry_run:
        token = _token()
        there = _client(repo, token).issues(label) if token else []
        steps = plan_issues(night, there, run, most_new)
        _print_table(steps, form)
    else:
        client = _client(repo, _token())
        update_issues(
            night, client, label=label, run=run, most_new=most_new, tell=lambda step: _told(step, steps, form)
        )
    if form == "json":
        click.echo(json.dumps([_as_json(step) for step in steps], indent=2))
    elif not steps:
        click.echo("no regression, and no issue about one")
    _end(night)


def run_text(environment: Mapping[str, str]) -> str:
    """Markdown that names the run that we are part of: a link on GitHub, else only that it was run by hand."""
    server = environment.get("GITHUB_SERVER_URL", "")
    repository = environment.get("GITHUB_REPOSITORY", "")
    run = environment.get("GITHUB_RUN_ID", "")
    if (
        _RUN_ID.fullmatch(run)
        and re.fullmatch(r"https://[A-Za-z0-9.-]+", server)
        and re.fullmatch(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+", repository)
    ):
        return f"[run {run}]({server}/{repository}/actions/runs/{run})"
    return "a run by hand"


def _client(repo: str, token: str) -> GitHub:
    repository = repo or os.environ.get("GITHUB_REPOSITORY", "")
    return GitHub(repository, token, os.environ.get("GITHUB_API_URL", "") or PUBLIC_API)


def _token() -> str:
    return next((said for name in _TOKENS if (said := os.environ.get(name, ""))), "")


def _told(step: Step, steps: list[Step], form: str) -> None:
    steps.append(step)
    _print_table([step], form)


def _print_table(steps: Sequence[Step], form: str) -> None:
    if form == "table":
        for step in steps:
            number = f"#{step.number}" if step.number else ""
            why = f" ({step.why})" if step.why else ""
            click.echo(f"{step.act:9} {number:6} {one_line(step.case)}{why}")


def _as_json(step: Step) -> dict[str, Any]:
    return {
        "act": str(step.act),
        "case": step.case,
        "number": step.number or None,
        "title": step.title,
        "body": step.body,
        "why": step.why,
    }


def _end(night: Night) -> None:
    """All has been told that could be: now what could not."""
    if night.problems:
        raise night.problems[0]
