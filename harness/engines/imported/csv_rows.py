"""CSV: a header, then rows of the same length; other lines are logs."""

from __future__ import annotations

import csv

from harness.domain.imported import Imported, ImportedRow, ImportProblem
from harness.engines.imported.bench_row import Place, bench_row

_NEEDED = {"n_prompt", "n_gen", "avg_ts"}


def read_csv(text: str, source: str) -> Imported:
    """Read ``-o csv``, several tables after one another too. Never raises.

    Args:
        text: What was printed.
        source: Name of the file, for messages.
    """
    header: list[str] = []
    rows: list[ImportedRow] = []
    problems: list[ImportProblem] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        # A last line without its end can be cut inside a field, which only quotation marks tell.
        cells = _cells(line) if number < len(lines) or line.rstrip().endswith('"') else None
        if cells and set(cells) >= _NEEDED:
            header = cells
            if len(set(header)) != len(header):
                problems.append(ImportProblem("E-damaged-row", f"{source}, line {number}", "a column occurs twice"))
                header = []
        elif header and (line.startswith('"') or line.count(",") >= len(header) / 2):
            entry = _row(header, cells, Place(source, f"line {number}"))
            rows += [entry] if isinstance(entry, ImportedRow) else []
            problems += [entry] if isinstance(entry, ImportProblem) else []
    return Imported(tuple(rows), tuple(problems), "csv" if rows or problems else "")


def _row(header: list[str], cells: list[str] | None, place: Place) -> ImportedRow | ImportProblem:
    if cells is None or len(cells) != len(header):
        found = f"{len(cells)} of {len(header)} fields" if cells else "a field is not closed"
        return ImportProblem("E-damaged-row", place.where, f"the beginning of a row, not whole: {found}")
    return bench_row(dict(zip(header, cells, strict=True)), place)


def _cells(line: str) -> list[str] | None:
    """The fields of a line; ``None`` where a quotation is not closed."""
    try:
        return next(csv.reader([line.rstrip("\r")], strict=True), [])
    except csv.Error:
        return None
