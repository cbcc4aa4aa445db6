"""Records of a run into the tables: twice is as good as once, and what grew since then is added."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import InstrumentedAttribute

from harness.domain.canonical import canonical_json, digest
from harness.history.records import ONE_NIGHT, CellRecord, RunRecord, Setup, differences
from harness.history.series import BuildRef
from harness.history.tables import (
    Base,
    BuildRow,
    CellRow,
    MeasurementRow,
    NodeRow,
    RunRow,
    SeriesRow,
    SpeedRow,
)

NEVER_FINISHED = "E-never-finished"
_LOST = "lost-%"
"""Of the keys of what is lost."""
_AT_ONCE = 500
"""Rows of a statement: SQLite takes so many parameters and no more."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of a run's cells.

    Attributes:
        added: Cells that the history did not have of this run.
        changed: Cells whose verdict or figure is another one than before: the journal grew.
        same: Cells that are as they were.
        series: Ids of the series whose figures are new or changed.
    """

    added: int
    changed: int
    same: int
    series: frozenset[int]


def store(connection: Connection, run: RunRecord) -> Stored:
    """Put a run into the tables.

    Args:
        connection: A writer's transaction.
        run: The run.
    """
    return _Store(connection, run).all()


@dataclass(slots=True)
class _Known:
    """Ids by key of what rows refer to."""

    cells: dict[str, int]
    nodes: dict[str, int]
    builds: dict[str, int]
    series: dict[int, list[_SeriesOf]] = field(default_factory=dict)


@dataclass(slots=True)
class _SeriesOf:
    id: int
    unit: str
    place: str
    setup: dict[str, str]


class _Store:
    """One run on its way into the tables."""

    def __init__(self, connection: Connection, run: RunRecord) -> None:
        self._connection = connection
        self._run = run
        self._touched: set[int] = set()

    def all(self) -> Stored:
        if self._run.lost:
            self._run = self._without_found(self._run)
            if not self._run.cells:
                return Stored(0, 0, 0, frozenset())
        run_id = self._run_id()
        known = self._known()
        before = self._before(run_id)
        added: list[tuple[CellRecord, dict[str, Any]]] = []
        changed: list[tuple[int, CellRecord, dict[str, Any]]] = []
        same = 0
        for cell in self._run.cells:
            row = self._row(cell, run_id, known)
            old = before.get(row["cell_id"])
            if old is None:
                added.append((cell, row))
            elif self._says_more(old, row):
                changed.append((old["id"], cell, row))
                self._touched |= {old["series_id"]} - {None}
            else:
                same += 1
                continue
            self._touched |= {row["series_id"]} - {None}
        self._write(added, changed, known)
        if not self._run.lost:
            self._take_back_lost(known)
        return Stored(len(added), len(changed), same, frozenset(self._touched))

    # ---- what was lost, until it is found ----

    def _without_found(self, run: RunRecord) -> RunRecord:
        """Only cells that nothing else of that night has: another shard may have been imported before."""
        found = self._connection.execute(
            select(CellRow.case)
            .join(MeasurementRow, MeasurementRow.cell_id == CellRow.id)
            .join(RunRow, RunRow.id == MeasurementRow.run_id)
            .where(*self._of_night(), RunRow.key != run.key)
        )
        there = set(found.scalars())
        return replace(run, cells=tuple(each for each in run.cells if each.verdict.case not in there))

    def _take_back_lost(self, known: _Known) -> None:
        """Cells of this run that were said to be lost, before its journal came."""
        lost = select(RunRow.id).where(*self._of_night(), RunRow.key.like(_LOST))
        for ids in _parts(list(known.cells.values())):
            told = (MeasurementRow.run_id.in_(lost), MeasurementRow.cell_id.in_(ids))
            rows = select(MeasurementRow.id).where(*told)
            self._connection.execute(delete(SpeedRow).where(SpeedRow.measurement_id.in_(rows)))
            self._connection.execute(delete(MeasurementRow).where(*told))

    def _of_night(self) -> tuple[ColumnElement[bool], ...]:
        """Runs of this run's matrix and night."""
        first, last = self._run.began - ONE_NIGHT, self._run.began + ONE_NIGHT
        return RunRow.matrix == self._run.matrix, RunRow.began.between(first, last)

    # ---- what rows refer to ----

    def _run_id(self) -> int:
        run = self._run
        row = {
            "key": run.key,
            "matrix": run.matrix,
            "night": run.night,
            "began": run.began,
            "finished": run.finished,
            "source": run.source,
        }
        found = self._connection.execute(select(RunRow.id, RunRow.night).where(RunRow.key == run.key)).first()
        if found is None:
            return self._ids(RunRow, RunRow.key, [row])[run.key]
        self._connection.execute(update(RunRow).where(RunRow.id == found.id).values(finished=run.finished))
        if found.night != run.night:
            self._move(found.id)
        return int(found.id)

    def _move(self, run_id: int) -> None:
        """The run belongs to another night than was said first."""
        night = self._run.night
        self._connection.execute(update(RunRow).where(RunRow.id == run_id).values(night=night))
        of_run = MeasurementRow.run_id == run_id
        series = self._connection.execute(select(MeasurementRow.series_id).where(of_run).distinct()).scalars()
        self._touched |= {each for each in series if each is not None}
        self._connection.execute(update(MeasurementRow).where(of_run).values(night=night))

    def _known(self) -> _Known:
        cells = self._run.cells
        nodes = {each.node.key: each.node for each in cells if each.node}
        builds = {build_key(arm.build): arm.build for each in cells for arm in each.arms if arm.build}
        known = _Known(
            self._ids(CellRow, CellRow.case, [{"case": each.verdict.case} for each in cells]),
            self._ids(
                NodeRow,
                NodeRow.key,
                [{"key": key, "described": node.described, "facts": node.facts} for key, node in nodes.items()],
            ),
            self._ids(BuildRow, BuildRow.key, [{"key": key, **_build_row(build)} for key, build in builds.items()]),
        )
        for ids in _parts(list(known.cells.values())):
            for row in self._connection.execute(
                select(SeriesRow.id, SeriesRow.cell_id, SeriesRow.unit, SeriesRow.place, SeriesRow.setup)
                .where(SeriesRow.cell_id.in_(ids))
                .order_by(SeriesRow.id)
            ):
                series = _SeriesOf(row.id, row.unit, row.place, json.loads(row.setup))
                known.series.setdefault(row.cell_id, []).append(series)
        return known

    def _ids(
        self, table: type[Base], key: InstrumentedAttribute[str], rows: Sequence[Mapping[str, Any]]
    ) -> dict[str, int]:
        """Ids by key, the rows made that are not there."""
        found: dict[str, int] = {}
        for part in _parts(rows):
            statement = _insert(self._connection, table).on_conflict_do_nothing(index_elements=[key.key])
            self._connection.execute(statement, list(part))
        identity: Any = table.__table__.c.id
        for part in _parts([row[key.key] for row in rows]):
            there = self._connection.execute(select(key, identity).where(key.in_(part)))
            found.update({row[0]: row[1] for row in there})
        return found

    # ---- rows ----

    def _before(self, run_id: int) -> dict[int, Mapping[str, Any]]:
        rows = self._connection.execute(
            select(MeasurementRow.__table__).where(MeasurementRow.run_id == run_id)
        ).mappings()
        return {row["cell_id"]: dict(row) for row in rows}

    @staticmethod
    def _says_more(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        """Whether a row is another one; that a case never finished takes nothing back that is known of it."""
        if new["slug"] == NEVER_FINISHED and old["slug"] != NEVER_FINISHED:
            return False
        return any(old[name] != value for name, value in new.items() if name != "night")

    def _row(self, cell: CellRecord, run_id: int, known: _Known) -> dict[str, Any]:
        verdict, figure = cell.verdict, cell.figure
        cell_id = known.cells[verdict.case]
        return {
            "run_id": run_id,
            "cell_id": cell_id,
            "series_id": self._series(cell, cell_id, known) if figure else None,
            "node_id": known.nodes[cell.node.key] if cell.node else None,
            "night": self._run.night,
            "began": self._run.began,
            "unit": figure.unit if figure else "",
            "value": figure.value if figure else None,
            "low": figure.low if figure else None,
            "high": figure.high if figure else None,
            "assumed": figure.assumed if figure else None,
            "n": figure.n if figure else 0,
            "status": str(verdict.status),
            "throughput": str(verdict.throughput or ""),
            "equivalence": str(verdict.equivalence or ""),
            "pitfall": str(verdict.pitfall or ""),
            "slug": verdict.slug,
            "reason": _storable(verdict.reason),
            "seconds": verdict.seconds,
            "synthetic": verdict.synthetic,
        }

    def _series(self, cell: CellRecord, cell_id: int, known: _Known) -> int:
        """The latest series that the figure goes on, or a new one."""
        unit = cell.figure.unit if cell.figure else ""
        siblings = known.series.setdefault(cell_id, [])
        for series in reversed(siblings):
            if (series.unit, series.place) == (unit, cell.place) and not differences(series.setup, cell.setup):
                self._learn(series, cell.setup)
                return series.id
        setup = canonical_json(dict(cell.setup))
        row = {"cell_id": cell_id, "unit": unit, "place": cell.place, "setup": _storable(setup)}
        made = self._connection.execute(insert(SeriesRow).returning(SeriesRow.id), row).scalar_one()
        siblings.append(_SeriesOf(made, unit, cell.place, dict(cell.setup)))
        return made

    def _learn(self, series: _SeriesOf, setup: Setup) -> None:
        """What a newer harness says beside what was known has to be equal from now on."""
        if setup.keys() <= series.setup.keys():
            return
        series.setup = {**setup, **series.setup}
        text = _storable(canonical_json(series.setup))
        self._connection.execute(update(SeriesRow).where(SeriesRow.id == series.id).values(setup=text))

    def _write(
        self,
        added: Sequence[tuple[CellRecord, dict[str, Any]]],
        changed: Sequence[tuple[int, CellRecord, dict[str, Any]]],
        known: _Known,
    ) -> None:
        ids: dict[int, int] = {}
        for part in _parts([row for _, row in added]):
            statement = insert(MeasurementRow).returning(MeasurementRow.cell_id, MeasurementRow.id)
            ids.update({row.cell_id: row.id for row in self._connection.execute(statement, list(part))})
        for identity, _, row in changed:
            self._connection.execute(update(MeasurementRow).where(MeasurementRow.id == identity).values(**row))
            self._connection.execute(delete(SpeedRow).where(SpeedRow.measurement_id == identity))
        owners = [*((ids[row["cell_id"]], cell) for cell, row in added), *((key, cell) for key, cell, _ in changed)]
        speeds = [row for identity, cell in owners for row in _speed_rows(identity, cell, known.builds)]
        for part in _parts(speeds):
            self._connection.execute(insert(SpeedRow), list(part))


def _speed_rows(identity: int, cell: CellRecord, builds: Mapping[str, int]) -> Iterable[dict[str, Any]]:
    for position, arm in enumerate(cell.arms):
        yield {
            "measurement_id": identity,
            "position": position,
            "label": _storable(arm.label),
            "build_id": builds[build_key(arm.build)] if arm.build else None,
            "tps": arm.speed.tps if arm.speed else None,
            "spread": arm.speed.spread if arm.speed else None,
            "processes": arm.speed.processes if arm.speed else 0,
        }


def build_key(build: BuildRef) -> str:
    """The key of a build's row."""
    return f"build-{digest(list(astuple(build)))}"


def _build_row(build: BuildRef) -> dict[str, Any]:
    return {
        "name": build.name,
        "commit": _storable(build.commit),
        "number": build.number,
        "content": build.content,
        "version": _storable(build.version),
    }


def _storable(text: str) -> str:
    """PostgreSQL takes no null character, and neither database lone surrogates."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _insert(connection: Connection, table: type[Base]) -> sqlite.Insert | postgresql.Insert:
    """The dialect's ``INSERT``, of which only it has ``ON CONFLICT``."""
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)


def _parts(rows: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE))
