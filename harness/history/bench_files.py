"""What ``llama-bench`` and its relatives printed, as runs of the history: a row is a process, rows alike a cell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import groupby
from statistics import fmean, median

from harness.domain.build import Tool
from harness.domain.canonical import canonical_json, digest, id_part
from harness.domain.errors import BadInput
from harness.domain.imported import BENCH, ImportedRow
from harness.domain.measurement import NS
from harness.domain.verdict import ArmSpeed, Verdict
from harness.domain.words import Kind, Status
from harness.engines.flags import specs
from harness.history.records import ArmRecord, CellRecord, Figure, NodeRecord, RunRecord
from harness.history.series import BuildRef
from harness.judging.intervals import LogMean
from harness.judging.wording import speed_text

_FROM_SO_MANY = 3
"""Of three samples or more the first is warm-up."""
_ALPHA = 0.01
_CLASS = "imported"


def bench_runs(rows: Sequence[ImportedRow], source: str, night: date | None = None) -> tuple[RunRecord, ...]:
    """Runs of a file: one for each night, build and machine in it, in order of time.

    Args:
        rows: Its rows.
        source: Its name.
        night: The night of all rows; ``None``: the day that each says, UTC.

    Raises:
        BadInput: ``E-no-time``: rows don't say when they were measured, and no night is given.
    """
    ordered = sorted(rows, key=lambda row: (_began(row, night), _who(row)))
    groups = groupby(ordered, key=lambda row: (_began(row, night).date() if night is None else night, _who(row)))
    return tuple(_run(list(group), source, when) for (when, _), group in groups)


def _began(row: ImportedRow, night: date | None) -> datetime:
    try:
        found = datetime.fromisoformat(row.time)
    except ValueError:
        if night is None:
            message = "rows that don't say when they were measured: their night is not known"
            raise BadInput("E-no-time", message, hint="give it: --night 2026-12-31", where=row.where) from None
        return datetime(night.year, night.month, night.day, tzinfo=UTC)
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def _who(row: ImportedRow) -> str:
    build = row.build
    other = [row.program] if row.program != BENCH else []
    return canonical_json([str(build.fork or ""), build.commit, build.number, list(map(list, row.machine)), *other])


def _run(rows: Sequence[ImportedRow], source: str, night: date) -> RunRecord:
    """The first row tells runs of a night apart: a file that grew is the run that it was."""
    first = rows[0]
    began = _began(first, night)
    name = str(first.build.fork or first.program)
    return RunRecord(
        key=f"run-{digest([name, _who(first), began.isoformat(), first.model.file])}",
        matrix=f"{first.program} of {name}",
        night=night,
        began=began,
        finished=True,
        source=source,
        cells=tuple(_cells(rows)),
    )


def _cells(rows: Sequence[ImportedRow]) -> Iterator[CellRecord]:
    alike: dict[str, list[ImportedRow]] = {}
    for row in rows:
        alike.setdefault(canonical_json([row.workload, _setup(row)]), []).append(row)
    ids = [_case(same[0]) for same in alike.values()]
    for case, same in zip(ids, alike.values(), strict=True):
        yield _cell(case if ids.count(case) == 1 else _case(same[0], digest(_setup(same[0]))), same)


def _case(row: ImportedRow, more: str = "") -> str:
    """An id of a case's form: flags that are not at their default are shown; ``more`` tells apart what looks alike."""
    fork = row.build.fork
    usual = {name: str(spec.default) for name, spec in specs(fork, Tool.LLAMA_BENCH).items()} if fork else {}
    shown = [
        f"{id_part(name)}={id_part(value)}" for name, value in row.settings if name in usual and value != usual[name]
    ]
    arm = "+".join([id_part(str(fork or row.program)), *shown, *([f"x={more}"] if more else [])])
    model = id_part((row.model.file or row.model.architecture).removesuffix(".gguf"))
    return f"{Kind.THROUGHPUT}/{model}/{arm}/{id_part(row.workload)}@{_CLASS}"


def _setup(row: ImportedRow) -> dict[str, str]:
    model = {"model file": row.model.file, "model quant": row.model.quant, "model tensors": f"{row.model.n_params:g}"}
    return {**dict(row.settings), **{name: value for name, value in model.items() if value}}


def _cell(case: str, rows: Sequence[ImportedRow]) -> CellRecord:
    logs = [_log_speed(row) for row in rows]
    tps = math.exp(fmean(logs))
    low, high = LogMean.of(logs).interval(_ALPHA) if len(logs) > 1 else (tps, tps)
    first = rows[0]
    label = str(first.build.fork or first.program)
    speed = ArmSpeed(label, tps, LogMean.of(logs).standard_error if len(logs) > 1 else None, len(logs))
    reason = f"{speed_text(tps)} t/s in {len(rows)} process{'es' * (len(rows) > 1)} of {first.program}"
    build = BuildRef(label, first.build.commit, first.build.number)
    return CellRecord(
        verdict=Verdict(case, Status.PASS, reason, arms=(speed,)),
        figure=Figure(tps, low, high, len(rows), "t/s"),
        arms=(ArmRecord(label, build if first.build.commit or first.build.number else None, speed),),
        node=_node(dict(first.machine)),
        setup=_setup(first),
    )


def _log_speed(row: ImportedRow) -> float:
    """Of one process: the median of its samples without the first, or the mean where the file has no samples."""
    if row.summary is not None:
        return math.log(row.summary.mean_tps)
    kept = row.samples_ns[1:] if len(row.samples_ns) >= _FROM_SO_MANY else row.samples_ns
    return math.log(row.tokens * NS / median(kept))


def _node(machine: Mapping[str, str]) -> NodeRecord | None:
    if not machine:
        return None
    text = canonical_json(dict(machine))
    key = f"told-{digest(dict(machine))}"
    return NodeRecord(key, key, ", ".join(machine[name] for name in sorted(machine)), text)
