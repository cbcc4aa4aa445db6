"""``import``: what a file of somebody's measurements says, as rows that programs can read, and what was lost of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.cli.compare_inputs import STDIN, file_content, read_content, stdin_content
from harness.cli.paper import stdout_console
from harness.domain.errors import EXIT_FINDING, EXIT_OK, BadInput
from harness.domain.imported import Imported, ImportedBuild, ImportedModel, ImportedRow, ImportProblem
from harness.domain.measurement import NS
from harness.domain.workload import names_a_time
from harness.judging.comparing_cells import build_word, model_word
from harness.judging.samples import MS_PER_S
from harness.judging.wording import speed_text
from harness.reporting.clean import clean, one_line
from harness.reporting.journal import JOURNAL_NAME

_PIPE_WIDTH = 160


@click.command("import")
@click.argument("file", metavar="FILE")
@click.option("--expect", metavar="WORKLOAD", multiple=True, help="A workload that must be there, e.g. pp512.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_context
def import_file(context: click.Context, file: str, expect: tuple[str, ...], form: str) -> None:
    """Read FILE, what llama-bench, llama-sweep-bench or llama-batched-bench printed, or a journal; - is standard input.

    Rows have flags by one name, raw samples in ns, and build, model and machine as the file says. Nothing is judged.

    Exit codes: 0 everything was read, 1 something was lost, 2 no row can be used.
    """
    found = _read(file)
    problems = (*found.problems, *_not_as_expected(found.rows, expect, file))
    if not found.rows:
        raise _nothing_usable(file, problems)
    if form == "json":
        told = {
            "format": found.form,
            "rows": list(map(row_json, found.rows)),
            "problems": list(map(_problem, problems)),
        }
        click.echo(json.dumps(told, indent=2, allow_nan=False))
    else:
        _print_table(found.rows, problems, stdout_console(_PIPE_WIDTH))
    context.exit(EXIT_FINDING if any(map(_loses, problems)) else EXIT_OK)


def _read(file: str) -> Imported:
    if file == STDIN:
        return read_content(*stdin_content())
    folder = Path(file)
    name = f"{folder / JOURNAL_NAME}" if folder.is_dir() else file
    return read_content(name, file_content(name))


def _nothing_usable(file: str, problems: Sequence[ImportProblem]) -> BadInput:
    told = "; ".join(dict.fromkeys(f"{problem.where}: {problem.lost}" for problem in problems))
    hint = "give what llama-bench, llama-sweep-bench or llama-batched-bench printed, in any format, or a journal"
    slug = problems[0].slug if len(problems) == 1 else "E-nothing-readable"
    return BadInput(slug, f"no row can be used: {clean(told)}", hint=hint, where=file)


def _not_as_expected(rows: Sequence[ImportedRow], expect: Sequence[str], file: str) -> list[ImportProblem]:
    """Workloads that were promised and are not there, and those that are there and were not."""
    have = dict.fromkeys(row.workload for row in rows)
    missing = [
        ImportProblem("E-rows-missing", file, f"{name}: there is no row of it", name)
        for name in expect
        if name not in have
    ]
    more = [
        ImportProblem("E-unexpected-row", file, f"{name}: a row that was not expected", name, row_lost=False)
        for name in (have if expect else ())
        if name not in expect
    ]
    return [*missing, *more]


def _loses(problem: ImportProblem) -> bool:
    """Whether a row is gone for good, or may be: an output that breaks off does not say what it would have had."""
    return problem.row_lost or problem.slug == "E-incomplete-output"


# ---- data ------------------------------------------------------------------------------------------------------------


def row_json(row: ImportedRow) -> dict[str, Any]:
    """A row as data: times are whole ns where the file has whole numbers."""
    summary = row.summary
    return {
        "program": row.program,
        "workload": row.workload,
        "tokens": row.tokens,
        "samples_ns": [int(value) if value.is_integer() else value for value in map(float, row.samples_ns)],
        "discarded": row.discarded,
        "summary": None
        if summary is None
        else {"mean_tps": summary.mean_tps, "sd_tps": summary.sd_tps, "assumed_repetitions": summary.repetitions},
        "settings": dict(row.settings),
        "build": _build(row.build),
        "model": _model(row.model),
        "machine": dict(row.machine),
        "time": row.time,
        "case": row.case,
        "where": row.where,
    }


def _build(build: ImportedBuild) -> dict[str, Any]:
    return {
        "fork": build.fork.value if build.fork else "",
        "commit": build.commit,
        "number": build.number,
        "backends": build.backends,
        "content": build.content,
    }


def _model(model: ImportedModel) -> dict[str, Any]:
    return {
        "file": model.file,
        "architecture": model.architecture,
        "quant": model.quant,
        "size_bytes": model.size_bytes,
        "n_params": model.n_params,
    }


def _problem(problem: ImportProblem) -> dict[str, Any]:
    return {
        "slug": problem.slug,
        "where": problem.where,
        "lost": clean(problem.lost),
        "workload": problem.workload,
        "row_lost": problem.row_lost,
    }


# ---- a terminal ------------------------------------------------------------------------------------------------------


def _print_table(rows: Sequence[ImportedRow], problems: Sequence[ImportProblem], console: Console) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("workload", no_wrap=True)
    table.add_column("t/s", justify="right", no_wrap=True)
    table.add_column("samples", justify="right", no_wrap=True)
    for heading in ("build", "model", "settings that differ", "where"):
        table.add_column(heading, overflow="fold")
    shared = set.intersection(*(set(row.settings) for row in rows))
    for row in rows:
        own = " ".join(f"{name}={value}" for name, value in row.settings if (name, value) not in shared)
        cells = (row.workload, _speed(row), _samples(row), build_word(row.build), model_word(row.model), own, row.place)
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    console.print(table)
    for problem in problems:
        kind = "lost" if _loses(problem) else "note"
        console.print(Text(f"{kind}: {one_line(str(problem))}"), soft_wrap=True)
    console.print(Text(_closing(rows, problems), style="bold"), soft_wrap=True)


def _closing(rows: Sequence[ImportedRow], problems: Sequence[ImportProblem]) -> str:
    counts = Counter("lost" if _loses(problem) else "notes" for problem in problems)
    told = [f"{len(rows)} row{'' if len(rows) == 1 else 's'}", *(f"{counts[word]} {word}" for word in counts)]
    return ", ".join(told)


def _speed(row: ImportedRow) -> str:
    """The median of the samples that are kept, or the mean that the table has."""
    if row.summary is not None:
        return f"{speed_text(row.summary.mean_tps)} (mean)"
    kept = row.samples_ns[row.discarded or 0 :]
    time = median(kept)
    return f"{MS_PER_S * time / NS:.0f} ms" if names_a_time(row.workload) else speed_text(row.tokens * NS / time)


def _samples(row: ImportedRow) -> str:
    return f"({row.summary.repetitions}?)" if row.summary else f"{len(row.samples_ns)}"
