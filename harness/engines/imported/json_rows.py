"""JSON and JSONL: rows with raw samples, whatever stands around them."""

from __future__ import annotations

from harness.domain.imported import Imported, ImportedRow, ImportProblem
from harness.engines.bench_scan import Scan, scan
from harness.engines.imported.bench_row import Place, bench_row


def read_json(text: str, source: str) -> Imported:
    """Read ``-o json`` and ``-o jsonl``. Never raises.

    Args:
        text: What was printed.
        source: Name of the file, for messages.
    """
    found = scan(text)
    read = [
        bench_row(row, Place(source, f"row {number} (line {_line(text, start)})"))
        for number, (row, start) in enumerate(zip(found.rows, found.starts, strict=True), 1)
    ]
    problems = [entry for entry in read if isinstance(entry, ImportProblem)]
    problems += [_damaged(text, source, start) for start in found.damaged_at]
    if _left_open(text, found):
        problems.append(
            ImportProblem(
                "E-incomplete-output", source, "the JSON array is not closed: rows may be missing", row_lost=False
            )
        )
    rows = tuple(entry for entry in read if isinstance(entry, ImportedRow))
    return Imported(rows, tuple(problems), "json" if found.rows or found.damaged_at else "")


def _damaged(text: str, source: str, start: int) -> ImportProblem:
    return ImportProblem("E-damaged-row", f"{source}, line {_line(text, start)}", "the beginning of a row, not whole")


def _left_open(text: str, found: Scan) -> bool:
    """Whether an array was begun before the first row and not ended after the last; JSONL has no such marks."""
    first = min((*found.starts, *found.damaged_at), default=0)
    return text[:first].rstrip().endswith("[") and not found.closed


def _line(text: str, index: int) -> int:
    return text.count("\n", 0, index) + 1
