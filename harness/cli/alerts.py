"""``moe-harness alerts``: what the gate found, and what that turned out to be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from harness.cli.gate import today
from harness.cli.gate_inputs import labels_file, labels_of, policy_of
from harness.cli.paper import stdout_console
from harness.domain.errors import BadInput
from harness.domain.suggest import did_you_mean
from harness.gating.as_json import cell_json
from harness.gating.cells import read_journals
from harness.gating.deciding import decide
from harness.gating.effects import Judged
from harness.gating.labels import Label, add_labels
from harness.gating.telling import gist
from harness.reporting.clean import one_line

_PIPE_WIDTH = 200
_WORDS = {"true": True, "false": False}
_FORMAT = click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
_POLICY = click.option("--policy", "file", type=click.Path(path_type=Path), help="The gate's policy.")


@click.group()
def alerts() -> None:
    """What the gate found, and what it turned out to be: stages that a policy calls auto go by it."""


@alerts.command(name="list")
@click.argument("journals", metavar="JOURNAL...", nargs=-1, required=True, type=click.Path(path_type=Path))
@_POLICY
@_FORMAT
def list_(journals: tuple[Path, ...], file: Path | None, form: str) -> None:
    """List the findings of JOURNALs in every stage, with their ids and labels."""
    found = _alerts(journals, file)
    if form == "json":
        click.echo(json.dumps([cell_json(each) for each in found], indent=2))
    elif not found:
        click.echo("no findings")
    else:
        _print(found)


@alerts.command()
@click.argument("journals", metavar="JOURNAL...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--alert", "ids", multiple=True, required=True, metavar="ID", help="Which finding; repeatable.")
@click.option("--as", "word", type=click.Choice(list(_WORDS)), required=True, help="Was there something?")
@click.option("--by", required=True, metavar="NAME", help="Who says so.")
@click.option("--why", default="", metavar="TEXT", help="How it is known, e.g. the commit that did it.")
@click.option(
    "--policy", "file", required=True, type=click.Path(path_type=Path), help="The policy that names the file."
)
@_FORMAT
def label(  # noqa: PLR0917 - click passes by name
    journals: tuple[Path, ...], ids: tuple[str, ...], word: str, by: str, why: str, file: Path, form: str
) -> None:
    """Label findings of JOURNALs as true or false alerts, in the file that the policy names.

    A label changes no decision on its finding; it counts for the stages that are "auto". Labelled again, the later
    label counts.
    """
    target = labels_file(policy_of(file), file)
    if target is None:
        hint = 'say labels = "gate-labels.toml" in the policy'
        raise BadInput("E-gate-no-labels", "the policy names no file of labels", hint=hint, where=f"{file}: labels")
    known = {each.alert: each for each in _alerts(journals, file)}
    chosen = [_label(_known(name, known), by, why, label=_WORDS[word]) for name in ids]
    add_labels(target, chosen)
    if form == "json":
        click.echo(json.dumps([each.model_dump(mode="json") for each in chosen], indent=2))
        return
    for each in chosen:
        click.echo(one_line(f"{each.id} is labelled {word}: {each.finding} {each.case}"))
    click.echo(f"written to {target}: commit it, and the gate counts it")


def _alerts(journals: Sequence[Path], file: Path | None) -> list[Judged]:
    policy = policy_of(file)
    decision = decide(
        policy, read_journals(journals), today=today(), labels=labels_of(policy, file), file=f"{file or ''}"
    )
    return [each for each in decision.cells if each.alert]


def _known(name: str, known: dict[str, Judged]) -> Judged:
    if name not in known:
        hint = did_you_mean(name, known) if known else "these journals have no findings"
        raise BadInput("E-gate-no-such-alert", f"no journal has an alert '{name}'", hint=hint, where="--alert")
    return known[name]


def _label(each: Judged, by: str, why: str, *, label: bool) -> Label:
    return Label(
        id=each.alert,
        case=each.cell.id,
        contrast=one_line(each.cell.case.contrast),
        finding=f"{each.finding}",
        label=label,
        by=one_line(by),
        date=today(),
        why=one_line(why),
        figures=one_line(gist(each)),
    )


def _print(found: Sequence[Judged]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("alert", "label", "stage", "finding", "case", "what"):
        table.add_column(heading, overflow="fold", no_wrap=heading not in ("case", "what"))
    words: dict[bool | None, str] = {None: "-", True: "true", False: "false"}
    for each in found:
        row: list[Any] = [each.alert, words[each.label], each.staged.stage, each.finding, each.cell.id, gist(each)]
        table.add_row(*(Text(one_line(f"{cell}")) for cell in row))
    stdout_console(_PIPE_WIDTH).print(table)
