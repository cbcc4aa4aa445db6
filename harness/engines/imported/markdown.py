"""Markdown tables: ``model | size | params | backend | ... | test | t/s``, with the build in a line below.

A table says only what is not the build's default, and nothing about repetitions. People edit them before they publish
them: columns are added, cells emphasised, the last line is left out, or the table is quoted, ``> `` before each line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.domain.build import Fork
from harness.domain.imported import Imported, ImportedRow, ImportProblem
from harness.engines.imported.bench_row import Place, bench_row
from harness.engines.imported.fields import plain
from harness.engines.imported.figures import NUMBER
from harness.engines.imported.quantities import quantity
from harness.engines.imported.sweep_rows import is_sweep_heading
from harness.engines.imported.table_cells import is_rule, table_cells

_FIELDS = {
    "ngl": "n_gpu_layers",
    "sm": "split_mode",
    "threads": "n_threads",
    "nkvo": "no_kv_offload",
    "fa": "flash_attn",
    "mla": "mla_attn",
    "amb": "attn_max_batch",
    "gr": "reuse",
    "mmap": "use_mmap",
    "lm": "load_mode",
    "rtr": "repack",
    "defer": "defer_experts",
    "thp": "use_thp",
    "fmoe": "fused_moe",
    "ger": "grouped_er",
    "no-fug": "no_fused_up_gate",
    "no-ooae": "no_ooae",
    "embd": "embeddings",
    "ts": "tensor_split",
    "cuda": "cuda_params",
    "ot": "tensor_buft_overrides",
    "dev": "devices",
    "nopo": "no_op_offload",
    "noh": "no_host",
    "fitt": "fit_target",
    "fitc": "fit_min_ctx",
    "backend": "backends",
    "model": "model_type",
}
"""The field behind each column whose heading is another word; the other headings are the fields' names."""
_IK_COLUMNS = frozenset(
    {
        *("mla", "amb", "gr", "ser", "rtr", "mqkv", "muge", "defer", "sas", "max_gpu", "thp", "fmoe", "ger", "rcache"),
        *("no-fug", "no-ooae"),
    }
)
_MAINLINE_COLUMNS = frozenset(
    {"dev", "nopo", "noh", "lm", "fitt", "fitc", "n_cpu_moe", "cpu_mask", "cpu_strict", "poll", "lazy_mode"}
)
_MAINLINE_WIDTH = 20
"""llama.cpp pads ``t/s`` to this, ik_llama.cpp and the builds before both to 16."""
_NOT_FIELDS = frozenset({"size", "params", "test"})
_SPEEDS = frozenset({"t/s", "tok/s", "tokens/s", "token/s", "tps"})
_UNSURE = frozenset({"n/a", "-", "?", ""})

_QUOTE = re.compile(r"(?:[ \t]{0,3}>){1,20}[ \t]?(?=\||build: )")
_BUILD = re.compile(r"^build: (?P<commit>\S+) \((?P<number>[0-9]+)\)\s*$")
_SPEED = re.compile(rf"(?P<mean>{NUMBER})(?:\s*(?:\u00c2?\u00b1|\ufffd+|\+/?-)\s*(?P<sd>{NUMBER}))?", re.IGNORECASE)
_TEST = re.compile(r"(?:pp ?(?P<prompt>\d{1,12}))?\+?(?:tg ?(?P<gen>\d{1,12}))?(?: @ d(?P<depth>\d{1,12}))?", re.ASCII)
_DEEP_TEST = re.compile(r"tg\d{1,12}@pp\d{1,12}", re.ASCII)


@dataclass(slots=True)
class _Table:
    """A table on its way: its heading, the lines that look like rows of it, its build, and whether another began.

    Lines belong to it that are quoted as deep as its heading: one of another depth is somebody else's.
    """

    columns: list[str]
    line: int
    depth: int
    rows: list[tuple[int, str]] = field(default_factory=list)
    commit: str = ""
    number: int = 0
    ended: bool = False
    closed: bool = False


def read_markdown(text: str, source: str) -> Imported:
    """Read ``-o md``, several tables too. Never raises.

    Args:
        text: What was printed, or what somebody published of it.
        source: Name of the file, for messages.
    """
    tables, problems = _tables(text, source)
    rows: list[ImportedRow] = []
    for table in tables:
        read = _read(table, source)
        rows += [entry for entry in read if isinstance(entry, ImportedRow)]
        problems += [entry for entry in read if isinstance(entry, ImportProblem)]
        if table.rows and not table.ended:
            lost = "no line 'build: ...' below the table: which build it was, and whether the table is whole"
            problems.append(ImportProblem("E-no-build-line", f"{source}, line {table.line}", lost, row_lost=False))
    return Imported(tuple(rows), tuple(problems), "markdown" if tables or problems else "")


def _tables(text: str, source: str) -> tuple[list[_Table], list[ImportProblem]]:
    tables: list[_Table] = []
    problems: list[ImportProblem] = []
    for number, whole in enumerate(text.split("\n"), 1):
        depth, line = _unquoted(whole)
        stripped = line.strip()
        is_open = bool(tables) and not tables[-1].ended and depth == tables[-1].depth
        if (ended := _BUILD.match(stripped)) and is_open:
            tables[-1].commit, tables[-1].number, tables[-1].ended = ended["commit"], int(ended["number"][:9]), True
        elif stripped.startswith("|"):
            cells = table_cells(stripped)
            if _is_heading(cells):
                tables.append(_Table(cells, number, depth))
            elif is_sweep_heading(cells) and tables:
                tables[-1].closed = True
            elif is_open and not tables[-1].closed and not all(map(is_rule, cells)):
                tables[-1].rows.append((number, line))
            elif len(cells) > 1 and (figures := _SPEED.fullmatch(cells[-1])) and figures["sd"]:
                lost = "a row without a heading: which column is which is not known"
                problems.append(ImportProblem("E-no-heading", f"{source}, line {number}", lost))
    return tables, problems


def _unquoted(line: str) -> tuple[int, str]:
    """How deep a line is quoted, as in mail, and the line without that."""
    mark = _QUOTE.match(line)
    return (mark[0].count(">"), line[mark.end() :]) if mark else (0, line)


def _is_heading(cells: list[str]) -> bool:
    return {"model", "test"} <= {cell.lower() for cell in cells}


def _read(table: _Table, source: str) -> list[ImportedRow | ImportProblem]:
    columns = [column.lower() for column in table.columns]
    place = Place(source, f"line {table.line}")
    if len(set(columns)) != len(columns):
        return [ImportProblem("E-unknown-table", place.where, "a column occurs twice: no output of llama-bench")]
    speeds = [column for column in columns if column in _SPEEDS]
    if len(speeds) != 1:
        lost = f"no column t/s, so in which unit the speeds are is not known; columns: {', '.join(table.columns)[:200]}"
        return [ImportProblem("E-unknown-unit", place.where, lost)]
    return [_row(table, columns, speeds[0], line, Place(source, f"line {number}")) for number, line in table.rows]


def _row(table: _Table, columns: list[str], speed: str, line: str, place: Place) -> ImportedRow | ImportProblem:
    cells = _with_patterns(columns, table_cells(line))
    if len(cells) != len(columns) or not line.rstrip().endswith("|"):
        lost = f"{len(cells)} of {len(columns)} cells: {_short(line)}"
        return ImportProblem("E-damaged-row", place.where, lost)
    values = dict(zip(columns, cells, strict=True))
    figures = _SPEED.fullmatch(values[speed])
    if figures is None:
        lost = f"no speed in t/s: {_short(values[speed])}"
        return ImportProblem("E-unknown-unit", place.where, lost, values["test"])
    counts = _counts(values["test"])
    if counts is None:
        return ImportProblem("E-unreadable-workload", place.where, f"no workload: {_short(values['test'])}")
    fork = _fork({name for name, value in values.items() if value.lower() not in _UNSURE}, line)
    found = {"build_commit": table.commit, "build_number": table.number, **counts, **_fields(values, fork)}
    found.update({"model_size": quantity(values.get("size", "")), "model_n_params": quantity(values.get("params", ""))})
    found.update({"avg_ts": figures["mean"], "stddev_ts": figures["sd"]})
    return bench_row(found, place, fork, whole=False)


def _with_patterns(columns: list[str], cells: list[str]) -> list[str]:
    """``-ot`` patterns hold bars, which are printed as they are: what is too many belongs to that column."""
    extra = len(cells) - len(columns)
    if extra <= 0 or "ot" not in columns:
        return cells
    start = columns.index("ot")
    return [*cells[:start], "|".join(cells[start : start + extra + 1]), *cells[start + extra + 1 :]]


def _fields(values: Mapping[str, str], fork: Fork | None) -> dict[str, Any]:
    """Cells by the names of JSON's fields; those that say nothing are left out."""
    names = {**_FIELDS, **({"ot": "override_tensor"} if fork is Fork.IK_LLAMA_CPP else {})}
    known = {name: value for name, value in values.items() if value.lower() not in _UNSURE}
    return {names.get(name, name): plain(value) for name, value in known.items() if name not in _NOT_FIELDS | _SPEEDS}


def _counts(test: str) -> dict[str, Any] | None:
    if _DEEP_TEST.fullmatch(test):
        return {"test": test}
    found = _TEST.fullmatch(test)
    if not found or not test:
        return None
    return {f"n_{name}": int(found[name] or 0) for name in ("prompt", "gen", "depth")}


def _fork(said: set[str], line: str) -> Fork | None:
    """The fork of a row, by columns that only one has, labels that only one writes, or the width of the last cell."""
    if _IK_COLUMNS & said or "@pp" in line:
        return Fork.IK_LLAMA_CPP
    last = line.rstrip().removesuffix("|").rsplit("|", 1)[-1]
    return Fork.LLAMA_CPP if _MAINLINE_COLUMNS & said or " @ d" in line or len(last) == _MAINLINE_WIDTH + 2 else None


def _short(text: str) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= 60 else text[:60] + "...")  # noqa: PLR2004 - what fits a message
