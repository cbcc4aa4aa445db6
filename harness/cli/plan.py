"""``moe-harness plan``: what a matrix expands to and what its budget can decide, without running anything."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from harness.cli.plan_why import classes_of, why_lines
from harness.domain.build import Build
from harness.domain.case import Case
from harness.domain.words import Status
from harness.execution.builds import missing_here, present_build
from harness.models.memory import Memory
from harness.planning.json_schema import matrix_schema
from harness.planning.memory import Needs
from harness.planning.plan import Plan, PlannedCase
from harness.planning.presence import build_missing, model_missing
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
@click.option("--schema", is_flag=True, help="Print the JSON schema of matrix files, for editors, and do nothing else.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def plan(matrix: str | None, patterns: tuple[str, ...], why: str | None, form: str, *, schema: bool) -> None:
    """List the cases of MATRIX, what each needs, what it can decide, and why some can't run on this machine.

    'finds' is the smallest loss of speed that a contrast finds with 95 % within its budget, by the spread that
    `moe-harness calibrate` found on this machine; with a ~ where none is known and one was assumed, with a ? where it
    is not known how many of the schedule's quads fit in the minutes: it holds if all do.

    MATRIX is a file or the name of a matrix that comes with the package; without it, matrices/local.toml.
    """
    if schema:
        click.echo(json.dumps(matrix_schema(), indent=2))
        return
    worked_out = plan_matrix(matrix, patterns)
    ahead = forecast_plan(worked_out, known_spreads())
    for warning in worked_out.warnings:
        click.echo(f"warning: {warning}", err=True)
    if why is not None:
        _print_why(replace(worked_out, cases=select(worked_out.cases, [why])), ahead, form)
    elif form == "json":
        click.echo(json.dumps(rows(worked_out, ahead), indent=2))
    else:
        print_table(worked_out, ahead, _console())


def _print_why(chosen: Plan, ahead: PlanForecast, form: str) -> None:
    listed, classes = rows(chosen, ahead), classes_of(chosen)
    if form == "json":
        click.echo(json.dumps([{**row, "classes": classes} for row in listed], indent=2))
    else:
        click.echo("\n".join(why_lines(chosen.cases, listed, classes)))


def rows(worked_out: Plan, ahead: PlanForecast) -> list[dict[str, Any]]:
    """The plan as data: one row per case. ``status`` is ``null`` where a case can run; then ``reason`` is a note."""
    needs, missing = Needs(worked_out.every_case), _missing_here()
    return [
        {**_row(planned, needs, missing), "budget": _budget(ahead.cases.get(planned.id))}
        for planned in worked_out.cases
    ]


def _budget(forecast: CaseForecast | None) -> dict[str, Any] | None:
    """What is known of a case's chances; ``None`` where it can't run."""
    if forecast is None:
        return None
    spread = forecast.spread
    return {
        "job": forecast.job,
        "minutes": forecast.minutes,
        "quads": forecast.quads,
        "smallest": forecast.smallest,
        "margin": forecast.margin,
        "quad_sd": spread.quad_sd if spread else None,
        "source": spread.source if spread else None,
        "quarantine": forecast.quarantine,
    }


def _missing_here() -> Callable[[Case], list[str]]:
    """What a case needs and this machine lacks; each build and model is looked for once."""
    of_build, of_model = cache(_build_missing), cache(model_missing)
    return lambda case: [text for arm in case.arms for text in (of_build(arm.build), of_model(arm.model)) if text]


def _build_missing(build: Build) -> str:
    """As `build_missing`, for builds whose files are still to be chosen, fetched or made too."""
    reason = "" if build.is_here else missing_here(build)
    return f"build {build.name}: {reason}" if reason else build_missing(present_build(build) or build)


def _row(planned: PlannedCase, needs: Needs, missing: Callable[[Case], list[str]]) -> dict[str, Any]:
    case = planned.case
    return {
        "id": planned.id,
        "kind": case.kind.value,
        "workload": case.workload_name,
        "arms": [arm.label for arm in case.arms],
        "node_class": case.node_class.name,
        "status": planned.status.value if planned.status else None,
        "reason": planned.reason or "; ".join(filter(None, [planned.note, _not_here(missing(case))])),
        "bytes": None if planned.status is Status.UNSUPPORTED else _bytes(needs.most(case)),
    }


def _bytes(memory: Memory | None) -> dict[str, Any] | None:
    """Bytes by device, and what they are for; ``None`` where the model's tensors are not known here."""
    if memory is None:
        return None
    devices = {"ram": memory.ram, **{f"gpu{number}": device for number, device in enumerate(memory.gpus)}}
    return {
        "ram": memory.ram.total,
        "gpus": [device.total for device in memory.gpus],
        "parts": {name: device.parts for name, device in devices.items()},
    }


def _not_here(missing: Sequence[str]) -> str:
    return f"not on this machine: {', '.join(dict.fromkeys(missing))}" if missing else ""


def print_table(worked_out: Plan, ahead: PlanForecast, console: Console) -> None:
    """The plan for a person: a line per case, then why some can't run, what the budget can decide, and the sum.

    Args:
        worked_out: The plan.
        ahead: What its budget can decide.
        console: Where to print.
    """
    listed = rows(worked_out, ahead)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("case", overflow="fold")
    table.add_column("RAM, MiB", justify="right", no_wrap=True)
    table.add_column("GPUs, MiB", justify="right", no_wrap=True)
    table.add_column("finds", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for row in listed:
        ram, gpus = _mib(row["bytes"])
        forecast = ahead.cases.get(row["id"])
        word = row["status"] or ("quarantined" if forecast and forecast.quarantine else "")
        table.add_row(row["id"], ram, gpus, _finds(forecast), word, style="dim" if row["status"] else "")
    console.print(table)
    for line in (*_reasons(listed), *ahead.lines(), summary(worked_out, ahead)):
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
    """Each reason once, with the number of its cases."""
    counts = Counter((row["status"] or "note", row["reason"]) for row in listed if row["reason"])
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


def _console() -> Console:
    """A terminal's width, or a wide page: ids in a pipe or a log are not to be broken."""
    return Console() if sys.stdout.isatty() else Console(width=_PIPE_WIDTH)
