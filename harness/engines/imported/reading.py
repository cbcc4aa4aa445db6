"""Which format a text is in, and its rows."""

from __future__ import annotations

import codecs
import re
from dataclasses import replace

from harness.domain.imported import Imported, ImportProblem
from harness.engines.imported.csv_rows import read_csv
from harness.engines.imported.json_rows import read_json
from harness.engines.imported.markdown import read_markdown
from harness.engines.imported.sql_rows import read_sql
from harness.engines.imported.sweep_rows import read_sweeps

_USAGE = re.compile(r"^usage: \S*llama-bench\S* \[options\]", re.MULTILINE)
_READERS = (read_json, read_sql, read_csv, read_markdown)
"""Richest first: JSON alone has raw samples, Markdown leaves most columns out."""
_MARKED = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def read_output(text: str, source: str) -> Imported:
    """Find the rows of ``llama-bench`` in a text of any of its formats. Never raises, and makes up no row.

    Where a text holds several of its formats (``-o md -oe json`` prints the same rows in two), the richest is read and
    the others are named. Rows of ``llama-sweep-bench`` and ``llama-batched-bench`` are read beside them.

    Args:
        text: What was printed, with whatever stands around it.
        source: Name of the file, for messages.
    """
    bench, sweeps = _read_bench(text, source), read_sweeps(text, source)
    if not sweeps.rows and not sweeps.problems:
        return bench
    if not bench.form:
        return sweeps
    problems = dict.fromkeys((*bench.problems, *sweeps.problems))
    form = ",".join(filter(None, (bench.form, sweeps.form)))
    return Imported((*bench.rows, *sweeps.rows), tuple(problems), form)


def _read_bench(text: str, source: str) -> Imported:
    """The rows of ``llama-bench``."""
    found = [reader(text, source) for reader in _READERS]
    best = next((one for one in found if one.rows), None)
    if best is None:
        problems = tuple(problem for one in found for problem in one.problems)
        form = next((one.form for one in found if one.form), "")
        return Imported(problems=problems or (_nothing(text, source),), form=form)
    others = [one.form for one in found if one.rows and one is not best]
    if not others:
        return best
    lost = f"{', '.join(others)} beside {best.form}: not read, since the same rows can be printed in both"
    return replace(best, problems=(*best.problems, ImportProblem("E-two-formats", source, lost, row_lost=False)))


def decoded(content: bytes) -> str:
    """The text of a file: UTF-8, UTF-16 where it is marked (PowerShell's ``>``), else Windows' Western European."""
    marked = next((name for mark, name in _MARKED if content.startswith(mark)), "utf-8")
    try:
        text = content.decode(marked)
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")
    return text.replace("\r\n", "\n")


def _nothing(text: str, source: str) -> ImportProblem:
    if _USAGE.search(text):
        lost = "the usage text of llama-bench: it refused an argument, standard error says which"
        return ImportProblem("E-usage-text", source, lost, row_lost=False)
    begun = text.strip() == "["
    lost = "an array without a row: it failed before the first" if begun else "no row of llama-bench in any format"
    return ImportProblem("E-nothing-readable", source, lost, row_lost=False)
