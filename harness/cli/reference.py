"""``moe-harness reference``: outputs on record, made on purpose and never replaced silently."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from harness.cli.paper import plain_table, stdout_console
from harness.domain.case import OutputCheck
from harness.domain.errors import EXIT_FINDING, EXIT_OK, EXIT_UNDECIDED
from harness.domain.golden import MODEL, TENSORS, Asked, Golden
from harness.domain.workload import OutputProfile
from harness.judging.outputs_golden import unfit
from harness.planning.goldens import recordings
from harness.planning.plan import PlannedCase
from harness.reporting.clean import clean, one_line
from harness.running.golden_file import Goldens
from harness.running.live import LiveLine
from harness.running.options import goldens_of, known_spreads, plan_matrix
from harness.running.recording import Change, Recording, record_outputs, recording_plan, write_all

_PIPE_WIDTH = 200
_OF_BUILD = ("package", "package_version", "build_commit")
_FOLDER = click.option(
    "--references", "folder", type=click.Path(path_type=Path), help="Folder of references [beside the matrix]."
)
_FORMAT = click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
_MATRIX = click.argument("matrix", required=False)


@click.group()
def reference() -> None:
    """Keep outputs on record, for checks with a reference: kind = "outputs", reference = true."""


@reference.command()
@_MATRIX
@click.option("-k", "--select", "patterns", multiple=True, metavar="PATTERN", help="Only for cases whose id matches.")
@_FOLDER
@click.option("--yes", is_flag=True, help="Replace what is on record by what differs from it.")
@click.option("--reports", type=click.Path(path_type=Path), default="moe-references", show_default=True)
@_FORMAT
@click.pass_context
def update(  # noqa: PLR0917 - click passes by name
    context: click.Context,
    matrix: str | None,
    patterns: tuple[str, ...],
    folder: Path | None,
    yes: bool,
    reports: Path,
    form: str,
) -> None:
    """Run the arms whose outputs MATRIX wants on record, on this machine, and record them.

    What is new is written. What is on record and differs is shown, with how far it is off, and replaced with --yes
    only. What is equal to the bit stays as it was recorded.

    Exit codes: 0 all is on record, 1 something differs and was not replaced, 2 bad input, 3 an arm gave nothing to
    record, 130 Ctrl-C.
    """
    plan = recording_plan(plan_matrix(matrix, patterns))
    goldens = goldens_of(matrix, folder)
    goldens.require_writable()
    starts = sum(job.process_starts for job in plan.jobs)
    said = Console(stderr=True, highlight=False)
    with LiveLine(sys.stderr, cases=len(plan.cases), processes=starts, enabled=form == "table", say=said.print) as line:
        found = record_outputs(plan, goldens, known_spreads(), reports, line.take)
    written = write_all(found, goldens, replacing=yes)
    if form == "json":
        click.echo(json.dumps([_as_json(each, written, goldens) for each in found], indent=2, allow_nan=False))
    else:
        _print_update(found, written, goldens)
    context.exit(_exit_code(found, written))


@reference.command(name="list")
@_MATRIX
@_FOLDER
@_FORMAT
@click.pass_context
def list_(context: click.Context, matrix: str | None, folder: Path | None, form: str) -> None:
    """Say what MATRIX wants on record, what is, and what nothing asks for any more.

    Whether a reference is of the model that lies here is found when it is used.

    Exit codes: 0 all is there, 1 something is missing or can't be used, 2 bad input.
    """
    goldens = goldens_of(matrix, folder)
    rows = _rows(recordings(plan_matrix(matrix).every_case), goldens)
    if form == "json":
        click.echo(json.dumps(rows, indent=2))
    else:
        _print_rows(rows, goldens)
    context.exit(EXIT_OK if all(row["state"] in {"there", "unused"} for row in rows) else EXIT_FINDING)


def _exit_code(found: Sequence[Recording], written: Sequence[str]) -> int:
    if any(each.change is Change.FAILED for each in found):
        return EXIT_UNDECIDED
    return EXIT_FINDING if any(each.change.replaces and each.key not in written for each in found) else EXIT_OK


def _as_json(found: Recording, written: Sequence[str], goldens: Goldens) -> dict[str, Any]:
    return {
        "key": found.key,
        "change": found.change.value,
        "equivalence": found.equivalence.value if found.equivalence else None,
        "why": found.why,
        "written": found.key in written,
        "file": str(goldens.path(found.key)),
    }


def _print_update(found: Sequence[Recording], written: Sequence[str], goldens: Goldens) -> None:
    table = plain_table("reference", "change", "written", "how it compares")
    for each in found:
        cells = (each.key, each.change.value, "yes" if each.key in written else "no", each.why)
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    stdout_console(_PIPE_WIDTH).print(table)
    for each in found:
        if each.detail:
            click.echo(clean(f"\n{each.key}\n{each.detail}"))
    kept = [each for each in found if each.change.replaces and each.key not in written]
    if kept:
        click.echo(f"{len(kept)} on record were not replaced: --yes records them anew")
    click.echo(f"folder: {goldens.folder}")


def _rows(wanted: Sequence[PlannedCase], goldens: Goldens) -> list[dict[str, Any]]:
    asked: dict[str, PlannedCase] = {}
    for planned in wanted:
        if isinstance(planned.case.check, OutputCheck):
            asked[planned.case.check.reference] = planned
    rows = [_row(goldens.read(key), planned, goldens) for key, planned in asked.items()]
    unused = [goldens.read(key) for key in goldens.present() if key not in asked]
    return [*rows, *(_row(golden, None, goldens) for golden in unused)]


def _row(golden: Golden, planned: PlannedCase | None, goldens: Goldens) -> dict[str, Any]:
    """One reference as data; ``state`` is ``there``, ``unused``, or the slug of why it can't be used."""
    record, state, why = golden.record, golden.slug or "there", golden.problem
    profile = planned.case.workload if planned else None
    if record and isinstance(profile, OutputProfile):
        if differs := record.asked.differs_from(Asked.of(profile)):
            state, why = "E-reference-prompts", differs
        elif fault := unfit(record.run.outputs, record.arm, profile):
            state, why = "E-no-baseline", fault
    engine = record.run.engine if record else {}
    path = goldens.path(golden.key)
    return {
        "key": golden.key,
        "state": state if planned else "unused",
        "why": why,
        "when": record.when if record else "",
        "harness": record.harness if record else "",
        "build": " ".join(engine[fact] for fact in _OF_BUILD if engine.get(fact, "unknown") != "unknown"),
        "model_sha256": engine.get(MODEL, ""),
        "tensor_types": engine.get(TENSORS, ""),
        "node": record.node.described if record else "",
        "bytes": path.stat().st_size if path.is_file() else 0,
    }


def _print_rows(rows: Sequence[dict[str, Any]], goldens: Goldens) -> None:
    if not rows:
        click.echo(f"the matrix asks for no reference, and none is in {goldens.folder}")
        return
    table = plain_table("reference", "state", "recorded", "by", "KiB")
    for row in rows:
        size = f"{row['bytes'] / 1024:.0f}" if row["bytes"] else ""
        cells = (row["key"], row["state"], row["when"][:10], row["build"], size)
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    stdout_console(_PIPE_WIDTH).print(table)
    for row in rows:
        if row["why"]:
            click.echo(one_line(f"{row['key']}: {row['why']}"))
    click.echo(f"folder: {goldens.folder}")
