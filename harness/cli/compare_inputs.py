"""What ``compare`` is given: files, folders, journals, standard input, or one side split by a column."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.domain.build import Fork, Tool
from harness.domain.errors import BadInput
from harness.domain.imported import Imported, ImportedRow, ImportProblem
from harness.domain.suggest import did_you_mean
from harness.engines.flags import specs
from harness.engines.imported.reading import decoded, read_output
from harness.judging.comparing import Side
from harness.judging.comparing_cells import BUILD, FACTORS, MACHINE, MODEL, says_fork
from harness.reporting.journal import JOURNAL_NAME
from harness.reporting.journal_rows import journal_rows
from harness.reporting.replay import read_journal

STDIN = "-"
_LARGEST_BYTES = 64 * 2**20
"""Larger files are no output of a benchmark: models lie about in such folders."""
_TOO_LARGE = f"larger than {_LARGEST_BYTES // 2**20} MiB: no output of a benchmark"
_JOURNAL_LINE = re.compile(rb'\s*\{[^\n]*"event"')
_COLUMNS: dict[str, tuple[str, Callable[[ImportedRow], str]]] = {
    "build": (BUILD, lambda row: " ".join(filter(None, [row.build.fork or "", row.build.commit]))),
    "fork": (BUILD, lambda row: row.build.fork or ""),
    "commit": (BUILD, lambda row: row.build.commit),
    "backends": (BUILD, lambda row: row.build.backends),
    "model": (MODEL, lambda row: row.model.quant),
    "file": (MODEL, lambda row: row.model.file),
    "cpu": (MACHINE, lambda row: dict(row.machine).get("cpu", "")),
    "gpu": (MACHINE, lambda row: dict(row.machine).get("gpu", "")),
}
"""Columns beside the settings: what differs by them, and their value in a row."""


_MOST_NAMED = 3
_SIDES = 2
_NO_SETTINGS = _COLUMNS.keys() | set(FACTORS)


@dataclass(frozen=True, slots=True)
class Input:
    """One side as read.

    Attributes:
        side: Its rows and problems.
        digests: By their hashes the names of its files that have rows: equal hashes are the same measurement.
        files: Number of files read.
    """

    side: Side
    digests: Mapping[str, str]
    files: int


def read_input(path: str) -> Input:
    """Read one side.

    Args:
        path: A file, a folder whose files are blocks in natural order, the folder of a journal, or ``-``.

    Raises:
        BadInput: ``E-no-input`` where there is nothing to read, ``E-nothing-readable`` where no row can be used.
    """
    if path == STDIN:
        return _checked(path, [stdin_content()], ())
    place = Path(path)
    if place.is_dir() and (place / JOURNAL_NAME).is_file():
        place /= JOURNAL_NAME
    files = sorted(_files_of(place), key=_natural) if place.is_dir() else [place]
    contents: list[tuple[str, bytes]] = []
    problems: list[ImportProblem] = []
    for file in files:
        read = _content(file)
        if isinstance(read, ImportProblem):
            problems.append(read)
        else:
            contents.append((f"{file}", read))
    if not place.is_dir() and problems:
        raise _unreadable(problems[0], path)
    return _checked(path, contents, problems)


def file_content(path: str) -> bytes:
    """The bytes of a file.

    Raises:
        BadInput: ``E-no-input`` where it cannot be read, ``E-too-large``.
    """
    read = _content(Path(path))
    if isinstance(read, ImportProblem):
        raise _unreadable(read, path)
    return read


def stdin_content() -> tuple[str, bytes]:
    """What to call standard input, and its bytes.

    Raises:
        BadInput: ``E-too-large``.
    """
    name, content = f"{STDIN} (standard input)", sys.stdin.buffer.read(_LARGEST_BYTES + 1)
    if len(content) > _LARGEST_BYTES:
        raise BadInput("E-too-large", _TOO_LARGE, hint="give one file at a time", where=name)
    return name, content


def _unreadable(problem: ImportProblem, path: str) -> BadInput:
    return BadInput(problem.slug, problem.lost, where=path, hint="give a file, a folder, or - for standard input")


def split_input(given: Input, column: str, values: Sequence[str], path: str) -> tuple[Side, Side, str]:
    """Split one side in two by what its rows say.

    Args:
        given: The side.
        column: A setting by the name of its flag or field, or ``build``, ``fork``, ``commit``, ``model``, ``file``.
        values: Baseline's and candidate's; empty: the two that there are, in order of appearance.
        path: Where the side is from, for messages.

    Returns:
        Baseline, candidate, and the factor that they differ in.

    Raises:
        BadInput: ``E-unknown-column``, ``E-split-values``.
    """
    name = _canonical_column(column)
    factor, value_of = _COLUMNS.get(name, (name, lambda row: dict(row.settings).get(name, "")))
    rows = given.side.rows
    found = list(dict.fromkeys(value for row in rows if (value := value_of(row))))
    if not found:
        known = {setting for row in rows for setting, _ in row.settings} | _COLUMNS.keys() | _field_names().keys()
        raise BadInput("E-unknown-column", f"no row says '{column}'", hint=did_you_mean(column, known), where=path)
    wanted = list(values) or found
    _require_two(column, wanted, found, path)
    silent = [
        ImportProblem(
            "E-split-value-missing", row.where, f"{row.workload}: the row does not say {column}", row.workload
        )
        for row in rows
        if not value_of(row)
    ]
    first, second = (tuple(row for row in rows if value_of(row) == value) for value in wanted)
    factor = BUILD if _only_says_fork(rows, name) else factor
    return Side(first, (*given.side.problems, *silent)), Side(second), factor


def split_advice(path: str) -> str:
    """By which columns a single input could be split in two, e.g. ``; it holds two builds: --split fork``.

    Args:
        path: The input; one that cannot be read has no advice: that two are needed comes first.
    """
    try:
        rows = read_input(path).side.rows
    except BadInput:
        return ""
    for name in ("fork", "commit", "backends", "model", "file"):
        factor, value_of = _COLUMNS[name]
        if len({value for row in rows if (value := value_of(row))}) == _SIDES:
            return f"; it holds two {factor}s: --split {name}"
    said: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.settings:
            said.setdefault(name, set()).add(value)
    names = [name for name, values in said.items() if len(values) == _SIDES]
    return f"; its rows differ in {', '.join(names)}: --split {names[0]}" if names else ""


def _require_two(column: str, wanted: Sequence[str], found: Sequence[str], path: str) -> None:
    """Refuse values that are not two, not unlike, or in no row."""
    unknown = [value for value in wanted if value not in found]
    if len(set(wanted)) == len(wanted) == _SIDES and not unknown:
        return
    have = f"the rows have {column}={', '.join(found)}"
    if unknown:
        message = f"no row says {' or '.join(f'{column}={value}' for value in unknown)}, {have}"
    else:
        message = f"a contrast needs two values of '{column}', {have}"
    example = ":".join(found[:_SIDES]) if len(found) >= _SIDES else "BASELINE:CANDIDATE"
    raise BadInput("E-split-values", message, hint=f"say which: --split {column}={example}", where=path)


def _only_says_fork(rows: Iterable[ImportedRow], column: str) -> bool:
    said = [row for row in rows if column in dict(row.settings)]
    return bool(said) and all(says_fork(row, column) for row in said)


def checked_factor(factor: str, sides: Sequence[Side]) -> str:
    """What a declared factor is in the rows' own words.

    Raises:
        BadInput: ``E-unknown-factor``.
    """
    name = _canonical_column(factor)
    said = {setting for side in sides for row in side.rows for setting, _ in row.settings}
    if name not in said | _NO_SETTINGS:
        hint = did_you_mean(factor, said | _NO_SETTINGS | _field_names().keys())
        raise BadInput("E-unknown-factor", f"no row says '{factor}'", hint=hint, where="--factor")
    if _only_says_fork([row for side in sides for row in side.rows], name):
        return BUILD
    return _COLUMNS[name][0] if name in _COLUMNS else name


def require_contrast(baseline: Input, candidate: Input) -> None:
    """Refuse two sides that have a file or a row in common: a measurement does not differ from itself.

    Raises:
        BadInput: ``E-no-contrast``.
    """
    shared = baseline.digests.keys() & candidate.digests.keys()
    hint = "give two measurements; a copy of one is the same one"
    if shared == baseline.digests.keys() == candidate.digests.keys():
        raise BadInput("E-no-contrast", "both sides are the same bytes: no contrast", hint=hint)
    if shared:
        files = [baseline.digests[digest] for digest in baseline.digests if digest in shared]
        message = (
            f"{len(shared)} of {len(candidate.digests)} files of the candidate are the same bytes as the baseline's"
        )
        raise BadInput("E-no-contrast", f"{message}: {_first_of(files)}", hint=f"{hint}: take it out of one side")
    copies = _copies(baseline.side.rows, candidate.side.rows)
    if copies:
        message = f"rows of the candidate say all that rows of the baseline say, their times too: {_first_of(copies)}"
        raise BadInput("E-no-contrast", message, hint=f"{hint}: take it out of one side")


def _copies(ours: Sequence[ImportedRow], theirs: Sequence[ImportedRow]) -> list[str]:
    """Where the candidate's rows are the baseline's: each with a time, and a journal that is a part of another."""
    known = {_measurement(row) for row in ours if row.time}
    found = [row.where for row in theirs if row.time and _measurement(row) in known]
    before, after = ({replace(row, source="") for row in side if row.case} for side in (ours, theirs))
    parts = before and after and (before <= after or after <= before)
    return found + [row.where for row in theirs if parts and row.case and replace(row, source="") in before]


def _first_of(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _measurement(row: ImportedRow) -> ImportedRow:
    """What is equal, the time too, only in a copy of the same measurement."""
    return replace(row, source="", place="")


def _canonical_column(column: str) -> str:
    """A flag for the name of its field in JSON; other names as they are."""
    return _field_names().get(column, column)


def _field_names() -> dict[str, str]:
    tables = [specs(fork, Tool.LLAMA_BENCH) for fork in Fork]
    return {echo.field: name for table in tables for name, spec in table.items() for echo in spec.echoes}


def _files_of(folder: Path) -> Iterable[Path]:
    return (entry for entry in folder.iterdir() if entry.is_file() and not entry.name.startswith("."))


def _natural(path: Path) -> list[tuple[int, str]]:
    """``run_10`` after ``run_9``."""
    parts = re.split(r"(\d+)", path.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _content(file: Path) -> bytes | ImportProblem:
    try:
        with file.open("rb") as opened:
            content = opened.read(_LARGEST_BYTES + 1)  # pipes and devices do not tell their size
    except OSError as error:
        return ImportProblem("E-no-input", f"{file}", f"cannot be read: {error.strerror}", row_lost=False)
    if len(content) > _LARGEST_BYTES:
        return ImportProblem("E-too-large", f"{file}", _TOO_LARGE, row_lost=False)
    return content


def _checked(path: str, contents: Sequence[tuple[str, bytes]], problems: Sequence[ImportProblem]) -> Input:
    """The side made of the files' contents; a copy of an earlier file is no further process."""
    digests: dict[str, str] = {}
    measured: dict[str, str] = {}
    rows: list[ImportedRow] = []
    told = list(problems)
    for name, content in contents:
        digest = hashlib.sha256(content).hexdigest()
        if digest in digests:
            lost = f"the same bytes as {digests[digest]}: a copy is no further process"
            told.append(ImportProblem("E-same-file", name, lost, row_lost=False))
            continue
        digests[digest] = name
        read = read_content(name, content)
        measured |= {digest: name} if read.rows else {}
        rows += read.rows
        told += read.problems
    rows, copies = _without_copies(rows)
    told += copies
    if not rows:
        found = "; ".join(_lost_texts(told)) or "there is no file in it"
        hint = "give what llama-bench printed as JSON, JSONL, CSV, SQL or Markdown, or a journal"
        raise BadInput("E-nothing-readable", f"no row can be used: {found}", hint=hint, where=path)
    return Input(Side(tuple(rows), tuple(told)), measured, len(contents))


def _lost_texts(problems: Iterable[ImportProblem]) -> list[str]:
    """What was lost where, without the slugs: the error that tells it has one."""
    return list(dict.fromkeys(": ".join(filter(None, [problem.where, problem.lost])) for problem in problems))


def _without_copies(rows: Iterable[ImportedRow]) -> tuple[list[ImportedRow], list[ImportProblem]]:
    """The rows without those that say all that another says, its time too: one process, listed twice."""
    kept: dict[object, ImportedRow] = {}
    copies = []
    for row in rows:
        said = _measurement(row) if row.time and not row.case else id(row)
        earlier = kept.setdefault(said, row)
        if earlier is not row:
            lost = f"{row.workload}: all that {earlier.where} says, its time too: a copy is no further process"
            copies.append(ImportProblem("E-same-row", row.where, lost, row.workload, row_lost=False))
    return list(kept.values()), copies


def read_content(name: str, content: bytes) -> Imported:
    """The rows of one file: output of ``llama-bench``, or a journal.

    Args:
        name: Its path, or what to call it.
        content: Its bytes.

    Raises:
        BadInput: As `read_journal`.
    """
    if not _JOURNAL_LINE.match(content) or b'"schema"' not in content.split(b"\n", 1)[0]:
        return read_output(decoded(content), name)
    found = journal_rows(read_journal(Path(name)), name)
    if found.rows or found.problems:
        return found
    return replace(
        found, problems=(ImportProblem("E-nothing-readable", name, "no speed was measured in this journal"),)
    )
