"""SQL: ``INSERT`` statements, taken apart and never run.

ik_llama.cpp doubles quotation marks inside values, llama.cpp prints them as they are. Both put every value in quotation
marks and join them by ``', '``; a dump of a database has bare numbers too, and no list of columns.
"""

from __future__ import annotations

import re

from harness.domain.imported import Imported, ImportedRow, ImportProblem
from harness.engines.imported.bench_row import Place, bench_row

_CREATE = re.compile(
    r"CREATE TABLE (?:IF NOT EXISTS )?[\"`]?(?P<table>\w+)[\"`]?\s*\((?P<columns>[^()]*)\)", re.IGNORECASE
)
_INSERT = re.compile(
    r"INSERT INTO [\"`]?(?P<table>\w+)[\"`]?\s*(?:\((?P<columns>[^()]*)\))?\s*VALUES\s*\(", re.IGNORECASE
)
_VALUE = re.compile(r"\s*(?:'(?P<text>(?:[^']|'')*)'|(?P<bare>[^\s',()]+))\s*(?P<end>[,)])")
_LINE_END = re.compile(r"'\s*\)\s*;")
_NEEDED = {"n_prompt", "n_gen", "avg_ts"}


def read_sql(text: str, source: str) -> Imported:
    """Read ``-o sql``. Never raises, and runs nothing of it.

    Args:
        text: What was printed.
        source: Name of the file, for messages.
    """
    tables = {found["table"]: _names(found["columns"]) for found in _CREATE.finditer(text)}
    rows: list[ImportedRow] = []
    problems: list[ImportProblem] = []
    for found in _INSERT.finditer(text):
        columns = _names(found["columns"] or "") or tables.get(found["table"], [])
        if not set(columns) >= _NEEDED:
            continue
        line = text.count("\n", 0, found.start()) + 1
        entry = _row(columns, text, found.end(), Place(source, f"line {line}"))
        rows += [entry] if isinstance(entry, ImportedRow) else []
        problems += [entry] if isinstance(entry, ImportProblem) else []
    return Imported(tuple(rows), tuple(problems), "sql" if rows or problems else "")


def _row(columns: list[str], text: str, start: int, place: Place) -> ImportedRow | ImportProblem:
    values = _values(text, start)
    if len(values) != len(columns):
        values = _split_values(text, start)
    if len(values) != len(columns):
        return ImportProblem("E-damaged-row", place.where, "the beginning of a row, not whole")
    return bench_row(dict(zip(columns, values, strict=True)), place)


def _names(columns: str) -> list[str]:
    """First words of a list of columns, types or not behind them."""
    names = [part.split()[0].strip('"`') for part in columns.split(",") if part.strip()]
    return names if len(set(names)) == len(names) else []


def _values(text: str, start: int) -> list[str]:
    """The values up to the closing bracket; none where they are not well formed."""
    values: list[str] = []
    while found := _VALUE.match(text, start):
        quoted = found["text"]
        values.append(found["bare"] if quoted is None else quoted.replace("''", "'"))
        start = found.end()
        if found["end"] == ")":
            return values
    return []


def _split_values(text: str, start: int) -> list[str]:
    """The values of one line whose own quotation marks are not doubled, as llama.cpp prints them."""
    line = text[start:].split("\n", 1)[0].strip()
    ends = list(_LINE_END.finditer(line))
    return line[1 : ends[-1].start()].split("', '") if ends and line.startswith("'") else []
