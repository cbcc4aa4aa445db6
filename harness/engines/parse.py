"""``llama-bench`` output read strictly: whole rows are kept, everything else is named.

Three checks are separate: how the process ended, whether its output is complete, whether the rows are those asked for.
Any of them alone makes a failure, and none makes a whole row worthless.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from harness.domain.failure import Failure, FailureKind
from harness.domain.workload import Timed, Workload
from harness.engines.bench_scan import Scan, scan
from harness.engines.diagnosis import process_failure, tail
from harness.engines.echo import not_echoed
from harness.engines.engine import Exit, Order, Report, Row
from harness.engines.load_log import told_load
from harness.engines.rows import checked_row, self_description, workload_of

_MOST_LOOKED_AT = 20_000
_MOST_QUOTED = 100
"""Characters of an output without rows."""


class OutputFormat(StrEnum):
    """The formats of ``llama-bench`` that the harness asks for."""

    JSON = "json"
    """One array, in both forks: a crash leaves it open."""
    JSONL = "jsonl"
    """A line a row, llama.cpp only."""


def read_bench(order: Order, ended: Exit, printed: Sequence[Workload], form: OutputFormat) -> Report:
    """Make sense of one ``llama-bench`` process. Never raises.

    Args:
        order: What was asked for.
        ended: How the process ended and what it wrote.
        printed: Every workload that it was to print a row of, those not asked for included.
        form: The format it was told to print.

    Returns:
        The rows that are whole and right, in the order's sequence, and what went wrong first: the end of the process,
        then a wrong row, then rows too few or too many, then an unfinished output.
    """
    found = scan(ended.stdout)
    rows, problems = _sort_rows(order, found.rows, printed)
    kept = tuple(rows[load] for load in dict.fromkeys(order.plain) if load in rows)
    problems += _count_problems(order, found, ended.stdout, printed)
    problems += _unfinished(found, form)
    return Report(
        rows=kept,
        outputs=(),
        load_s=None,
        engine=_engine(order, found.rows),
        failure=first_failure(process_failure(ended), problems, order.workloads, kept, ended.stderr),
        load=told_load(order, ended, beside=True),
    )


def first_failure(
    process: Failure | None,
    problems: Sequence[Failure],
    workloads: Iterable[Timed],
    kept: Sequence[Row],
    stderr: str,
) -> Failure | None:
    """The failure that a report carries: how the process ended outweighs what is wrong with its rows.

    Args:
        process: What is wrong with the end of the process.
        problems: What is wrong with its output, first things first.
        workloads: Those asked for.
        kept: The rows that count.
        stderr: Standard error; its end becomes the detail.
    """
    if process is None:
        return replace(problems[0], message=_also(problems), detail=tail(stderr)) if problems else None
    names = {row.workload for row in kept}
    missing = [load.name for load in workloads if load.name not in names]
    rest = [f"whole rows: {', '.join(row.workload for row in kept)}"] if kept else []
    rest += [f"missing: {', '.join(missing)}"] if missing else []
    return replace(process, message="; ".join([process.message, *rest]))


def _also(problems: Sequence[Failure]) -> str:
    return "; ".join(dict.fromkeys(problem.message for problem in problems))


def _sort_rows(
    order: Order, found: Iterable[Mapping[str, Any]], printed: Sequence[Workload]
) -> tuple[dict[Workload, Row], list[Failure]]:
    """Right rows by workload, and what is wrong with the others."""
    rows: dict[Workload, Row] = {}
    problems: list[Failure] = []
    seen: set[Workload] = set()
    for row in found:
        load = workload_of(row)
        if load is None or load not in printed or load in seen:
            problems.append(_unexpected(load, again=load in seen))
            continue
        seen.add(load)
        if load in order.workloads:
            _take(checked_row(order, load, row), load, rows, problems)
    return rows, problems


def _take(outcome: Row | Failure, load: Workload, rows: dict[Workload, Row], problems: list[Failure]) -> None:
    if isinstance(outcome, Row):
        rows[load] = outcome
    else:
        problems.append(outcome)


def _unexpected(load: Workload | None, *, again: bool) -> Failure:
    name = load.name if load else "with unreadable token counts"
    what = f"a second row {name}" if again else f"a row {name} that was not asked for"
    return Failure(FailureKind.UNPARSABLE, what, "E-unexpected-row")


def _count_problems(order: Order, found: Scan, stdout: str, printed: Sequence[Workload]) -> list[Failure]:
    have = {workload_of(row) for row in found.rows}
    missing = [load.name for load in dict.fromkeys(order.plain) if load not in have]
    if not missing:
        return []
    message = f"{len(found.rows)} of {len(printed)} rows, missing: {', '.join(missing)}"
    if first := not found.rows and _first_line(stdout):
        message = f"{message}; it printed: {first}"
    return [Failure(FailureKind.UNPARSABLE, message, "E-rows-missing")]


def _first_line(text: str) -> str:
    """The first line that says anything, cut: of a program that printed no row, it mostly tells which it was."""
    lines = (" ".join(line.split()) for line in text[:_MOST_LOOKED_AT].splitlines())
    first = next((line for line in lines if any(map(str.isalnum, line))), "")
    return first if len(first) <= _MOST_QUOTED else f"{first[: _MOST_QUOTED - 3]}..."


def _unfinished(found: Scan, form: OutputFormat) -> list[Failure]:
    """An open array, or rows that break off. JSONL has no end mark: there only a broken row tells."""
    problems = [f"{found.damaged} damaged row(s)"] if found.damaged else []
    problems += ["the JSON array is not closed"] if form is OutputFormat.JSON and not found.closed else []
    return [Failure(FailureKind.UNPARSABLE, problem, "E-incomplete-output") for problem in problems]


def _engine(order: Order, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    if not rows:
        return {}
    silent = ",".join(not_echoed(order, rows[0]))
    return {**self_description(rows[0]), **({"not_echoed": silent} if silent else {})}
