"""Result rows found in what ``llama-bench`` printed as JSON or JSONL, whatever else stands around them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_ROW_START = re.compile(r'\{\s*"')
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[{}]')
_STRING_OR_NAN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[-+]?\b(?:nan|inf(?:inity)?)\b', re.IGNORECASE)
_ROW_FIELDS = frozenset({"build_commit", "n_prompt", "n_gen", "avg_ns"})
"""Any of them makes an object a row, or what is left of one; others are logs."""
_DEEPEST = 4
"""Rows are flat and logs nearly so: deeper nesting is a row of unclosed beginnings, not worth a walk to the end."""
_LONGEST = 4 * 2**20
"""Characters of one object: a row with ten thousand repetitions has a twentieth of it."""
MOST_BEGINNINGS = 200_000
"""Of objects in one text: no output has so many rows and logs, and each takes some microseconds."""
_LIST_END = re.compile(r"\s*\]")


@dataclass(frozen=True, slots=True)
class Scan:
    """What was found.

    Attributes:
        rows: Whole rows in order, as printed.
        damaged: Beginnings of rows that are no whole row.
        closed: The JSON array was closed after the last row.
        starts: Index in the text at which each row begins.
        damaged_at: Index at which each damaged one begins.
    """

    rows: tuple[Mapping[str, Any], ...]
    damaged: int
    closed: bool
    starts: tuple[int, ...] = ()
    damaged_at: tuple[int, ...] = ()


def scan(text: str) -> Scan:
    """Find the rows. Never raises, and takes nothing for a row that is not one whole JSON object with samples.

    Args:
        text: Standard output.
    """
    rows: list[Mapping[str, Any]] = []
    starts: list[int] = []
    damaged: list[int] = []
    position = 0
    for start, end, value in json_objects(text):
        whole = value is not None and "samples_ns" in value
        if value is None or (not whole and _ROW_FIELDS & value.keys()):
            damaged.append(start)
        if value is not None and whole:
            rows.append(value)
            starts.append(start)
        position = end
    closed = _LIST_END.match(text, position) is not None
    return Scan(tuple(rows), len(damaged), closed, tuple(starts), tuple(damaged))


def json_objects(text: str) -> Iterator[tuple[int, int, Mapping[str, Any] | None]]:
    """Whatever begins like a JSON object: where it begins, where to go on behind it, and its value. Never raises.

    Args:
        text: What was printed.

    Yields:
        Index of the beginning, index behind it, and the object; ``None`` where it is no whole one, or where there are
        more than any output has: that is the last.
    """
    position = 0
    for _ in range(MOST_BEGINNINGS):
        start = _ROW_START.search(text, position)
        if start is None:
            return
        end = _object_end(text, start.start())
        value = _decoded(text[start.start() : end]) if end else None
        position = end if value is not None else start.start() + 1
        yield start.start(), position, value
    if start := _ROW_START.search(text, position):
        yield start.start(), len(text), None


def json_lines(text: str) -> Iterator[Mapping[str, Any]]:
    """The lines that are one JSON object each; other lines are passed over. Never raises.

    Args:
        text: Standard output.
    """
    for line in text.split("\n"):
        value = _decoded(line) if line.lstrip().startswith("{") else None
        if value is not None:
            yield value


def _object_end(text: str, start: int) -> int:
    """Index after the brace that closes the object at ``start``; 0 where nothing closes it."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(token.group(), 0)
        if depth > _DEEPEST or token.end() - start > _LONGEST:
            return 0
        if depth == 0:
            return token.end()
    return 0


def _decoded(chunk: str) -> Mapping[str, Any] | None:
    """The object, with C's spellings of NaN and infinity understood; ``None`` for anything else."""
    try:
        try:
            value = json.loads(chunk, object_pairs_hook=_no_key_twice)
        except ValueError:  # C's spellings are rare, and to look for them takes longer than to read
            value = json.loads(_STRING_OR_NAN.sub(_python_word, chunk), object_pairs_hook=_no_key_twice)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _python_word(found: re.Match[str]) -> str:
    """C prints ``-nan`` and ``inf``; Python's JSON reads ``NaN`` and ``Infinity``."""
    word = found.group()
    if word.startswith('"'):
        return word
    if "nan" in word.lower():
        return "NaN"
    return "-Infinity" if word.startswith("-") else "Infinity"


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A row that says a field twice is two rows run into one another.

    Raises:
        ValueError: A key occurs twice.
    """
    row = dict(pairs)
    if len(row) != len(pairs):
        raise ValueError("a key occurs twice")
    return row
