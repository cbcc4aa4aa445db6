"""Changes of series whose figures are new: looked for once at import, so that reading a night computes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from harness.history.nights import SeriesPoint, look
from harness.history.series import BuildRange, BuildRef, Change, ChangeKind
from harness.history.tables import BuildRow, ChangeRow, MeasurementRow, SeriesRow, SpeedRow

_AT_ONCE = 200
_FIGURES = ("last_before", "first_after", "earliest", "latest", "before", "after", "ratio", "low", "high", "p")


def look_again(connection: Connection, series: Iterable[int]) -> dict[int, tuple[Change, ...]]:
    """Look for changes in series, and keep what was found.

    Args:
        connection: A writer's transaction.
        series: Their ids.

    Returns:
        The changes by series, those alone that were not known before.
    """
    ids = sorted(series)
    new: dict[int, tuple[Change, ...]] = {}
    for start in range(0, len(ids), _AT_ONCE):
        part = ids[start : start + _AT_ONCE]
        rows = connection.execute(select(SeriesRow.id, SeriesRow.unit).where(SeriesRow.id.in_(part)))
        units = {row.id: row.unit for row in rows}
        known = _known(connection, part)
        points = points_of(connection, part)
        for each in part:
            new[each] = _update(connection, each, points.get(each, []), units[each], known.get(each, []))
    return {each: changes for each, changes in new.items() if changes}


def points_of(connection: Connection, series: Sequence[int]) -> dict[int, list[SeriesPoint]]:
    """All figures of series, in order of time."""
    rows = connection.execute(
        select(
            MeasurementRow.series_id,
            MeasurementRow.id,
            MeasurementRow.night,
            MeasurementRow.value,
            MeasurementRow.node_id,
        )
        .where(MeasurementRow.series_id.in_(series))
        .order_by(MeasurementRow.series_id, MeasurementRow.night, MeasurementRow.began, MeasurementRow.id)
    ).all()
    builds = _builds_of(connection, series)
    found: dict[int, list[SeriesPoint]] = {}
    for row in rows:
        point = SeriesPoint(row.night, row.value, row.node_id, builds.get(row.id, ()))
        found.setdefault(row.series_id, []).append(point)
    return found


def _builds_of(connection: Connection, series: Sequence[int]) -> dict[int, tuple[BuildRef | None, ...]]:
    """The builds of each measurement of series."""
    rows = connection.execute(
        select(SpeedRow.measurement_id, SpeedRow.build_id)
        .join(MeasurementRow, MeasurementRow.id == SpeedRow.measurement_id)
        .where(MeasurementRow.series_id.in_(series))
        .order_by(SpeedRow.measurement_id, SpeedRow.position)
    ).all()
    builds = builds_by_id(connection, {row.build_id for row in rows if row.build_id is not None})
    return {
        measurement: tuple(builds.get(row.build_id) for row in group)
        for measurement, group in groupby(rows, key=lambda row: row.measurement_id)
    }


def builds_by_id(connection: Connection, ids: Iterable[int]) -> dict[int, BuildRef]:
    """Builds by the id of their row."""
    wanted = sorted(ids)
    found: dict[int, BuildRef] = {}
    for start in range(0, len(wanted), _AT_ONCE):
        rows = connection.execute(
            select(
                BuildRow.id, BuildRow.name, BuildRow.commit, BuildRow.number, BuildRow.content, BuildRow.version
            ).where(BuildRow.id.in_(wanted[start : start + _AT_ONCE]))
        )
        found.update({row[0]: BuildRef(*row[1:]) for row in rows})
    return found


# ---- changes that are kept -------------------------------------------------------------------------------------------


def _known(connection: Connection, series: Sequence[int]) -> dict[int, list[Mapping[str, Any]]]:
    rows = connection.execute(select(ChangeRow.__table__).where(ChangeRow.series_id.in_(series))).mappings()
    found: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["series_id"], []).append(dict(row))
    return found


def _update(
    connection: Connection, series: int, points: Sequence[SeriesPoint], unit: str, known: Sequence[Mapping[str, Any]]
) -> tuple[Change, ...]:
    """Keep what was found beside what was known: the night on which it was first told stays."""
    if not points:
        connection.execute(delete(ChangeRow).where(ChangeRow.series_id == series))
        return ()
    rest = list(known)
    new = []
    for change in look(points, unit).changes:
        same = next((row for row in rest if _is_same(row, change)), None)
        if same is None:
            new.append(change)
            connection.execute(insert(ChangeRow), {"series_id": series, "withdrawn": None, **change_row(change)})
        else:
            rest.remove(same)
            kept = replace(change, first_seen=min(same["first_seen"], change.first_seen))
            _set(connection, same["id"], {"withdrawn": None, **change_row(kept)})
    for row in rest:
        if row["withdrawn"] is None:
            _set(connection, row["id"], {"withdrawn": points[-1].night})
    return tuple(new)


def _set(connection: Connection, identity: int, values: Mapping[str, Any]) -> None:
    connection.execute(update(ChangeRow).where(ChangeRow.id == identity).values(**values))


def _is_same(row: Mapping[str, Any], change: Change) -> bool:
    """Whether both are of one direction and may be of one night: more nights tell its place and size better."""
    overlap = row["earliest"] <= change.latest and change.earliest <= row["latest"]
    return bool(overlap and row["worse"] == change.worse)


def change_row(change: Change) -> dict[str, Any]:
    """A change as its row."""
    return {
        **{name: getattr(change, name) for name in _FIGURES},
        "kind": str(change.kind),
        "first_seen": change.first_seen,
        "node_changed": change.node_changed,
        "worse": change.worse,
        "builds": json.dumps([asdict(each) for each in change.builds]),
    }


def change_of(row: Mapping[str, Any]) -> Change:
    """A row as its change."""
    return Change(
        kind=ChangeKind(row["kind"]),
        first_seen=row["first_seen"],
        node_changed=row["node_changed"],
        worse=row["worse"],
        builds=tuple(_range(each) for each in json.loads(row["builds"])),
        **{name: row[name] for name in _FIGURES},
    )


def _range(data: Mapping[str, Any]) -> BuildRange:
    builds = {name: BuildRef(**value) for name, value in data.items() if name != "arm"}
    return BuildRange(arm=data["arm"], **builds)
