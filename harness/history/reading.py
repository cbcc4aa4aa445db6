"""What is asked of the tables: whole nights at once, never one query a cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, or_, select

from harness.domain.words import Status
from harness.history.looking import builds_by_id, change_of
from harness.history.series import BuildRef, CellTrend, Change, NightVerdict
from harness.history.tables import CellRow, ChangeRow, MeasurementRow, NodeRow, RunRow, SpeedRow

_AT_ONCE = 500
_TREND_NIGHTS = 30
_UNSEEN = BuildRef("")


def cells(connection: Connection) -> tuple[str, ...]:
    """All case ids, sorted."""
    return tuple(connection.execute(select(CellRow.case).order_by(CellRow.case)).scalars())


def last_night(connection: Connection) -> date | None:
    """The last night that there is; ``None`` of an empty history."""
    return connection.execute(select(func.max(RunRow.night))).scalar()


def run_nights(connection: Connection) -> dict[str, tuple[date, ...]]:
    """By matrix the nights on which it was run, in order."""
    rows = connection.execute(select(RunRow.matrix, RunRow.night).distinct().order_by(RunRow.matrix, RunRow.night))
    return {matrix: tuple(row.night for row in group) for matrix, group in groupby(rows, key=lambda row: row.matrix)}


def verdicts_of_cells(
    connection: Connection, cases: Iterable[str], until: date | None = None
) -> dict[str, tuple[NightVerdict, ...]]:
    """All verdicts of cells, in order of time.

    Args:
        connection: A transaction.
        cases: The cells' ids.
        until: The last night that counts.
    """
    found: dict[str, tuple[NightVerdict, ...]] = {}
    for part in _parts(sorted(set(cases))):
        condition: ColumnElement[bool] = CellRow.case.in_(part)
        if until is not None:
            condition = and_(condition, MeasurementRow.night <= until)
        order = (CellRow.case, MeasurementRow.night, MeasurementRow.began, MeasurementRow.id)
        rows = connection.execute(_verdicts().where(condition).order_by(*order)).all()
        verdicts = _as_verdicts(connection, rows)
        found.update({case: tuple(group) for case, group in groupby(verdicts, key=lambda each: each.cell)})
    return found


def trends_of_night(connection: Connection, night: date) -> tuple[CellTrend, ...]:
    """The cells of a night as they stood then: its verdicts, the nights before, and the changes that were known."""
    order = (CellRow.case, MeasurementRow.began, MeasurementRow.id)
    rows = connection.execute(_verdicts().where(MeasurementRow.night == night).order_by(*order)).all()
    last = {row.case: row for row in rows}  # of several runs a night the last one counts
    verdicts = _as_verdicts(connection, list(last.values()))
    trends = _trends(connection, night)
    changes = _changes_by(connection, night)
    return tuple(
        CellTrend(verdict, trends.get(row.series_id, ()), changes.get(row.series_id, ()))
        for verdict, row in zip(verdicts, last.values(), strict=True)
    )


def changes_of(connection: Connection, series: Sequence[int]) -> dict[int, tuple[Change, ...]]:
    """The changes of series that hold today, in order of time."""
    found: dict[int, tuple[Change, ...]] = {}
    for part in _parts(series):
        found.update(_changes(connection, and_(ChangeRow.series_id.in_(part), ChangeRow.withdrawn.is_(None))))
    return found


# ---- rows ------------------------------------------------------------------------------------------------------------


def _verdicts() -> Select[*tuple[Any, ...]]:
    return (
        select(
            MeasurementRow.id,
            MeasurementRow.series_id,
            MeasurementRow.night,
            MeasurementRow.began,
            MeasurementRow.unit,
            MeasurementRow.value,
            MeasurementRow.low,
            MeasurementRow.high,
            MeasurementRow.assumed,
            MeasurementRow.n,
            MeasurementRow.status,
            MeasurementRow.throughput,
            MeasurementRow.equivalence,
            MeasurementRow.pitfall,
            MeasurementRow.slug,
            MeasurementRow.reason,
            CellRow.case,
            RunRow.matrix,
            NodeRow.described,
        )
        .join(CellRow, CellRow.id == MeasurementRow.cell_id)
        .join(RunRow, RunRow.id == MeasurementRow.run_id)
        .outerjoin(NodeRow, NodeRow.id == MeasurementRow.node_id)
    )


def _as_verdicts(connection: Connection, rows: Sequence[Row[*tuple[Any, ...]]]) -> list[NightVerdict]:
    arms = _arms(connection, [row.id for row in rows])
    return [_verdict(row, arms.get(row.id, ())) for row in rows]


def _arms(connection: Connection, measurements: Sequence[int]) -> dict[int, tuple[tuple[float | None, BuildRef], ...]]:
    """Speed and build of each arm, by measurement."""
    rows: list[Row[*tuple[Any, ...]]] = []
    for part in _parts(measurements):
        rows += connection.execute(
            select(SpeedRow.measurement_id, SpeedRow.tps, SpeedRow.build_id)
            .where(SpeedRow.measurement_id.in_(part))
            .order_by(SpeedRow.measurement_id, SpeedRow.position)
        ).all()
    builds = builds_by_id(connection, {row.build_id for row in rows if row.build_id is not None})
    return {
        measurement: tuple((row.tps, builds.get(row.build_id, _UNSEEN)) for row in group)
        for measurement, group in groupby(rows, key=lambda row: row.measurement_id)
    }


def _verdict(row: Row[*tuple[Any, ...]], arms: Sequence[tuple[float | None, BuildRef]]) -> NightVerdict:
    return NightVerdict(
        cell=row.case,
        night=row.night,
        time=row.began,
        matrix=row.matrix,
        status=Status(row.status),
        word=row.pitfall or row.throughput or row.equivalence,
        unit=row.unit,
        value=row.value,
        low=row.low,
        high=row.high,
        assumed=row.assumed,
        n=row.n,
        speeds=tuple(tps for tps, _ in arms),
        builds=tuple(build for _, build in arms),
        node=row.described or "",
        slug=row.slug,
        reason=row.reason,
    )


def _trends(connection: Connection, night: date) -> dict[int, tuple[float, ...]]:
    """The figures of the last nights, by series."""
    nights = select(RunRow.night).where(RunRow.night <= night).distinct().order_by(RunRow.night.desc())
    first = connection.execute(nights.limit(_TREND_NIGHTS)).scalars().all()
    if not first:
        return {}
    rows = connection.execute(
        select(MeasurementRow.series_id, MeasurementRow.value)
        .where(MeasurementRow.night.between(first[-1], night), MeasurementRow.value.is_not(None))
        .order_by(MeasurementRow.night, MeasurementRow.began)
    )
    found: dict[int, list[float]] = {}
    for series, value in rows:
        if series is not None and value is not None:
            found.setdefault(series, []).append(value)
    return {series: tuple(values) for series, values in found.items()}


def _changes_by(connection: Connection, night: date) -> dict[int, tuple[Change, ...]]:
    """Changes that were told by a night and not withdrawn then."""
    held = or_(ChangeRow.withdrawn.is_(None), ChangeRow.withdrawn > night)
    return _changes(connection, and_(ChangeRow.first_seen <= night, held))


def _changes(connection: Connection, condition: ColumnElement[bool]) -> dict[int, tuple[Change, ...]]:
    table = ChangeRow.__table__
    order = (ChangeRow.series_id, ChangeRow.first_after)
    rows: Sequence[Mapping[str, Any]] = [
        dict(row) for row in connection.execute(select(table).where(condition).order_by(*order)).mappings()
    ]
    return {
        series: tuple(map(change_of, group)) for series, group in groupby(rows, key=lambda row: int(row["series_id"]))
    }


def _parts(values: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE))
