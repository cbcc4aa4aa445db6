"""``moe-harness plan``: what a matrix expands to and what its budget can decide, without running anything."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from harness.cli.paper import stdout_console
from harness.cli.plan_nodes import cells, closing_lines, headers
from harness.cli.plan_outputs import outputs_text
from harness.cli.plan_rows import rows, why_rows
from harness.cli.plan_why import classes_of, why_lines
from harness.domain.canonical import id_part
from harness.domain.node import NodeFacts
from harness.domain.words import Status
from harness.execution.node import probe_node
from harness.planning.json_schema import matrix_schema
from harness.planning.node_files import described, read_nodes
from harness.planning.plan import Plan
from harness.planning.select import select
from harness.running.forecasts import CaseForecast, PlanForecast, forecast_plan
from harness.running.options import known_spreads, plan_matrix

_PIPE_WIDTH = 240
_MIB = 1024**2


@click.command()
@click.argument("matrix", required=False)
@click.option(
    "--select",
    "patterns",
    multiple=True,
    metavar="PATTERN",
    help="Only cases whose id has this part or matches this glob, or whose contrast has this name; ! takes away.",
)
@click.option(
    "--why",
    metavar="PATTERN",
    help="All that is known of the cases that PATTERN finds, as in --select: each node class, bytes by device, budget.",
)
@click.option(
    "--nodes",
    "paths",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Hold the cases against nodes that are elsewhere: a file that describes one, or a folder of such files.",
)
@click.option(
    "--describe-node", is_flag=True, help="Print this machine's description for --nodes, and do nothing else."
)
@click.option("--schema", is_flag=True, help="Print the JSON schema of matrix files, for editors, and do nothing else.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def plan(
    matrix: str | None,
    patterns: tuple[str, ...],
    why: str | None,
    paths: tuple[Path, ...],
    form: str,
    *,
    describe_node: bool,
    schema: bool,
) -> None:
    """List the cases of MATRIX, what each needs, what it can decide, and why some can't run on this machine.

    With --nodes: on which of the nodes described each fits, and what the others lack.

    'finds' is the smallest loss of speed that a contrast finds with 95 % within its budget, by the spread that
    `moe-harness calibrate` found on this machine; with a ~ where none is known and one was assumed, with a ? where it
    is not known how many of the schedule's quads fit in the minutes: it holds if all do.

    MATRIX is a file or the name of a matrix that comes with the package; without it, matrices/local.toml.
    """
    if schema:
        click.echo(json.dumps(matrix_schema(), indent=2))
        return
    if describe_node:
        click.echo(described(probe_node(), id_part(platform.node())))
        return
    nodes = read_nodes(paths)
    worked_out = plan_matrix(matrix, patterns, nodes=nodes)
    ahead = forecast_plan(worked_out, known_spreads(elsewhere=bool(nodes)))
    for warning in worked_out.warnings:
        click.echo(f"warning: {warning}", err=True)
    if why is not None:
        _print_why(replace(worked_out, cases=select(worked_out.cases, [why])), ahead, nodes, form)
    elif form == "json":
        click.echo(json.dumps(rows(worked_out, ahead, nodes), indent=2))
    else:
        print_table(worked_out, ahead, stdout_console(_PIPE_WIDTH), nodes)


def _print_why(chosen: Plan, ahead: PlanForecast, nodes: Sequence[NodeFacts], form: str) -> None:
    listed, classes = why_rows(chosen, ahead, nodes), classes_of(chosen)
    if form == "json":
        click.echo(json.dumps([{**row, "classes": classes} for row in listed], indent=2))
    else:
        click.echo("\n".join(why_lines(chosen.cases, listed, classes)))


def print_table(worked_out: Plan, ahead: PlanForecast, console: Console, nodes: Sequence[NodeFacts] = ()) -> None:
    """The plan for a person: a line per case, then why some can't run, what the budget can decide, and the sum.

    Args:
        worked_out: The plan.
        ahead: What its budget can decide.
        console: Where to print.
        nodes: Described nodes: what each case needs of them and what they have stands where its bytes do otherwise.
    """
    listed = rows(worked_out, ahead, nodes)
    names = tuple(node.name for node in nodes)
    columns = headers(names) if nodes else ("RAM, MiB", "GPUs, MiB")
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("case", overflow="fold")
    for column in columns:
        table.add_column(column, justify="left" if nodes else "right", no_wrap=not nodes, overflow="fold")
    table.add_column("finds", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for row in listed:
        found = cells(row, columns) if nodes else _mib(row["bytes"])
        forecast = ahead.cases.get(row["id"])
        word = row["status"] or ("quarantined" if forecast and forecast.quarantine else "")
        table.add_row(row["id"], *found, _finds(forecast), word, style="dim" if row["status"] else "")
    console.print(table)
    on_nodes = closing_lines(listed, names) if nodes else ()
    for line in (*on_nodes, *_reasons(listed), *ahead.lines(), summary(worked_out, ahead)):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _mib(found: dict[str, Any] | None) -> tuple[str, str]:
    """RAM, and GPUs one after the other; empty where nothing is known."""
    if found is None:
        return "", ""
    return f"{found['ram'] / _MIB:.0f}", " + ".join(f"{size / _MIB:.0f}" for size in found["gpus"])


def _finds(forecast: CaseForecast | None) -> str:
    if forecast is None or forecast.spread is None:
        return ""
    found = "none" if forecast.smallest is None else f"{100 * forecast.smallest:g} %"
    known = found if forecast.spread.df > 0 else f"~{found}"
    return known if forecast.if_all is None else f"{known}?"


def _reasons(listed: Sequence[dict[str, Any]]) -> list[str]:
    """Each reason and each note once, with the number of its cases."""
    counts = Counter((row["status"], row["reason"]) for row in listed if row["status"])
    counts.update(("note", note) for row in listed for note in row["notes"])
    counts.update(("outputs", outputs_text(row["outputs"])) for row in listed if row["outputs"] and not row["status"])
    return [f"{word} ({_count(number, 'case')}): {reason}" for (word, reason), number in counts.items()]


def summary(worked_out: Plan, ahead: PlanForecast) -> str:
    """The closing line."""
    starts = sum(job.process_starts for job in worked_out.jobs)
    counts = Counter(planned.status for planned in worked_out.cases)
    minutes = f", {ahead.time}" if ahead.time else ""
    return (
        f"{_count(len(worked_out.cases), 'case')} in {_count(len(worked_out.jobs), 'job')}"
        f" (up to {_count(starts, 'process start')}{minutes}),"
        f" {counts[Status.UNSUPPORTED]} unsupported, {counts[Status.NOT_APPLICABLE]} not applicable"
    )


def _count(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "s")
