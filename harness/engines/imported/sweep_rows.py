"""``llama-sweep-bench`` and ``llama-batched-bench``: their tables and their JSONL, with the logs that they mix in."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from harness.domain.build import Fork
from harness.domain.imported import Imported, ImportedRow, ImportProblem
from harness.engines.bench_scan import json_objects
from harness.engines.imported.bench_row import Place
from harness.engines.imported.fields import identity_of, plain
from harness.engines.imported.sweep_gaps import missing
from harness.engines.imported.sweep_log import Around, fork_of, settings_of, shared_prompt
from harness.engines.imported.sweep_row import Program, SweepRow, imported, read_row
from harness.engines.imported.table_cells import is_rule, table_cells

_FIELDS = {
    "pp": "pp",
    "tg": "tg",
    "b": "pl",
    "n_kv": "n_kv",
    "t_pp s": "t_pp",
    "s_pp t/s": "speed_pp",
    "t_tg s": "t_tg",
    "s_tg t/s": "speed_tg",
    "t s": "t",
    "s t/s": "speed",
}
"""The field behind each column."""
_OF_SWEEP = frozenset({"pp", "tg", "n_kv", "t_pp s", "s_pp t/s", "t_tg s", "s_tg t/s"})
_OF_BATCHED = frozenset(_FIELDS)
_MEMORY = frozenset({"rss hwm", "vram delta"})
_RESULTS = frozenset(_FIELDS.values()) | {"rss_hwm_mib", "vram_delta_mib", "is_pp_shared"}
_MARKS = frozenset({"n_kv", "t_pp", "speed_pp", "t_tg", "speed_tg"})
_NEEDED = frozenset({"n_kv_max", "pp", "tg", *_MARKS})
_NEEDED_BATCHED = _NEEDED | {"pl", "t", "speed"}
_BEGINNING = re.compile(r'\{\s*"n_kv_max"')
_ROW = re.compile(
    r"\|(?:\s*\d{1,12}\s*\|){3,4}(?:\s*-?(?:\d{1,12}\.\d{2,3}|nan|inf)\s*\|){4,6}(?:\s*(?:n/a|\d{1,12}\.\d)\s*\|){0,2}",
    re.ASCII,
)
_LONGEST_LINE = 4096
"""No row of a table has so many characters, whatever people add to it."""
_FAILED = re.compile(r"llama_decode\(\) failed|failed to decode the batch")
_TOO_LONG = re.compile(
    r"^n_ctx_req = \d{1,12} is greater than n_kv_max = (?P<context>\d{1,12})"
    r" for pp = (?P<pp>\d{1,12}), tg = (?P<tg>\d{1,12}), pl = (?P<pl>\d{1,12})$",
    re.ASCII,
)
_ENDED = "the program ended early: it says that a decode failed"


@dataclass(slots=True)
class _Block:
    """The rows of one process, on their way: those of a table, or JSON objects after one another.

    Attributes:
        program: Whose they are.
        line: Where the block begins.
        context: Tokens of the context, if they are said.
        columns: Of a table.
        said: Fields that are the same for all rows.
        shared: Whether all sequences had one prompt, if it is said.
        fork: The fork, if anything tells it.
        read: Lines with what was read of each row.
    """

    program: Program
    line: int
    context: int | None = None
    columns: tuple[str, ...] = ()
    said: Mapping[str, Any] = field(default_factory=dict)
    shared: bool | None = None
    fork: Fork | None = None
    read: list[tuple[Mapping[str, Any], SweepRow | ImportProblem]] = field(default_factory=list)

    @property
    def rows(self) -> list[SweepRow]:
        """Those whose numbers could be read."""
        return [row for _, row in self.read if isinstance(row, SweepRow)]


def read_sweeps(text: str, source: str) -> Imported:
    """Read what either program printed. Never raises, and makes up no row.

    Args:
        text: What was printed, with whatever stands around it.
        source: Name of the file, for messages.
    """
    blocks, problems = _tables(text, source)
    objects, damaged = _objects(text, source)
    rows: list[ImportedRow] = []
    problems += damaged
    whole = sorted([*blocks, *objects], key=lambda block: block.line)
    failures = [number for number, line in enumerate(text.split("\n"), 1) if _FAILED.search(line)] if whole else []
    for block, after in zip_longest(whole, whole[1:]):
        found = list(_entries(block))
        rows += _by_workload(entry for entry in found if isinstance(entry, ImportedRow))
        problems += [entry for entry in found if isinstance(entry, ImportProblem)]
        first = bisect_right(failures, block.line)
        failed = first < len(failures) and (after is None or failures[first] < after.line)
        problems += _missing(block, source, failed=failed)
    problems += _alike(whole, source)
    forms = sorted({row.program.removeprefix("llama-").removesuffix("-bench") for row in rows})
    return Imported(tuple(rows), tuple(problems), ",".join(forms))


def is_sweep_heading(cells: Iterable[str]) -> bool:
    """Whether cells are the heading of such a table."""
    return {cell.lower() for cell in cells} >= _OF_SWEEP


def _entries(block: _Block) -> Iterator[ImportedRow | ImportProblem]:
    for said, row in block.read:
        if isinstance(row, ImportProblem):
            yield row
        else:
            identity = identity_of({**block.said, **said}, block.fork, whole=False)
            yield from imported(row, identity)


def _by_workload(rows: Iterable[ImportedRow]) -> list[ImportedRow]:
    """Rows of one process that are alike are its repetitions."""
    alike: dict[object, list[ImportedRow]] = {}
    for row in rows:
        alike.setdefault((row.workload, row.settings), []).append(row)
    return [
        replace(same[0], samples_ns=tuple(value for row in same for value in row.samples_ns)) for same in alike.values()
    ]


def _missing(block: _Block, source: str, *, failed: bool) -> list[ImportProblem]:
    where = f"{source}, line {block.line}"
    told = [*missing(block.rows, block.context), *([(_ENDED, True)] if failed else [])]
    return [
        ImportProblem("E-incomplete-output" if lost else "E-not-run", where, words, row_lost=False)
        for words, lost in told
    ]


def _alike(blocks: Iterable[_Block], source: str) -> list[ImportProblem]:
    """Several tables that say the same of themselves: only what people write around them may tell them apart."""
    groups: dict[object, list[_Block]] = {}
    for block in blocks:
        groups.setdefault((block.program, block.fork, f"{sorted(block.said.items())}"), []).append(block)
    return [
        ImportProblem(
            "E-alike-tables",
            f"{source}, line {same[1].line}",
            f"{len(same)} runs of {same[0].program} say the same of how they were measured: taken for processes of one"
            " way of running; put them into files of their own where they are not",
            row_lost=False,
        )
        for same in groups.values()
        if len(same) > 1
    ]


# ---- tables ----------------------------------------------------------------------------------------------------------


def _tables(text: str, source: str) -> tuple[list[_Block], list[ImportProblem]]:
    around, blocks, problems = Around(), list[_Block](), list[ImportProblem]()
    is_open = False
    for number, line in enumerate(text.split("\n"), 1):
        place = Place(source, f"line {number}")
        if (found := _TOO_LONG.match(line)) is not None:
            problems.append(_not_run(found, place))
        if around.line(line) or not line.lstrip().startswith("|") or len(line) > _LONGEST_LINE:
            continue
        cells = table_cells(line)
        if is_sweep_heading(cells):
            is_open = len({cell.lower() for cell in cells}) == len(cells)
            if is_open:
                blocks.append(_block(cells, around, number))
            else:
                problems.append(ImportProblem("E-unknown-table", place.where, "a column occurs twice"))
        elif {"model", "test"} <= {cell.lower() for cell in cells}:
            is_open = False
        elif is_open and not all(map(is_rule, cells)):
            said, row = _row(blocks[-1], cells, line, place)
            if not _goes_on(blocks[-1], row):
                blocks.append(replace(blocks[-1], line=number, read=[]))
            blocks[-1].read.append((said, row))
        elif not is_open and _ROW.fullmatch(line.strip()):
            lost = "a row without a heading: which column is which is not known"
            problems.append(ImportProblem("E-no-heading", place.where, lost))
    return blocks, problems


def _not_run(found: re.Match[str], place: Place) -> ImportProblem:
    lost = (
        f"not run, it does not fit a context of {found['context']}: PP {found['pp']} TG {found['tg']} B {found['pl']}"
    )
    return ImportProblem("E-not-run", place.where, lost, row_lost=False)


def _block(cells: list[str], around: Around, number: int) -> _Block:
    header, who = around.taken_header()
    columns = tuple(cell.lower() for cell in cells)
    program = Program.BATCHED if set(columns) >= _OF_BATCHED else Program.SWEEP
    fork = fork_of(program, {**header, **dict.fromkeys(columns)}, who)
    said = {**around.known(), **settings_of(header)}
    return _Block(program, number, header.get("n_kv_max"), columns, said, shared_prompt(header), fork)


def _row(
    block: _Block, cells: list[str], line: str, place: Place
) -> tuple[Mapping[str, Any], SweepRow | ImportProblem]:
    if len(cells) != len(block.columns) or not line.rstrip().endswith("|"):
        lost = f"{len(cells)} of {len(block.columns)} cells"
        return {}, ImportProblem("E-damaged-row", place.where, lost)
    values = dict(zip(block.columns, cells, strict=True))
    numbers = {_FIELDS[name]: value for name, value in values.items() if name in _FIELDS}
    # Columns that somebody added tell rows apart, as in tables of llama-bench.
    added = {name: plain(value) for name, value in values.items() if name not in _FIELDS and name not in _MEMORY}
    return added, read_row(numbers, block.program, block.shared, place)


# ---- JSONL -----------------------------------------------------------------------------------------------------------


def _objects(text: str, source: str) -> tuple[list[_Block], list[ImportProblem]]:
    """Rows one after another are of one process; a sweep that begins again, or other settings, are another one."""
    blocks: list[_Block] = []
    problems: list[ImportProblem] = []
    around, told, number = Around(), 0, 1
    for start, _, value in json_objects(text):
        number += text.count("\n", told, start)
        for line in text[told:start].split("\n"):
            around.line(line)
        told = start
        if value is None or not value.keys() >= _NEEDED:
            if _BEGINNING.match(text, start) if value is None else value.keys() & _MARKS:
                lost = "the beginning of a row, not whole"
                problems.append(ImportProblem("E-damaged-row", f"{source}, line {number}", lost))
            continue
        program = Program.BATCHED if value.keys() >= _NEEDED_BATCHED else Program.SWEEP
        said = {**around.known(), **settings_of(value)}
        added = {name: one for name, one in value.items() if name not in _RESULTS and name not in said}
        row = read_row(value, program, None, Place(source, f"line {number}"))
        if not blocks or not _continues(blocks[-1], program, said, row):
            fork = fork_of(program, value, json=True)
            blocks.append(_Block(program, number, _whole(value["n_kv_max"]), said=said, fork=fork))
        blocks[-1].read.append((added, row))
    return blocks, problems


def _continues(block: _Block, program: Program, said: Mapping[str, Any], row: SweepRow | ImportProblem) -> bool:
    return block.program is program and block.said == said and _goes_on(block, row)


def _goes_on(block: _Block, row: SweepRow | ImportProblem) -> bool:
    """Whether a row can be of the process of those before it: a sweep only goes deeper."""
    before = next((one for _, one in reversed(block.read) if isinstance(one, SweepRow)), None)
    if isinstance(row, ImportProblem) or before is None or block.program is Program.BATCHED:
        return True
    return row.counts["n_kv"] > before.counts["n_kv"]


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
