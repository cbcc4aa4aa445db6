"""The history: what commands, reports and gates ask of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, select

from harness import settings
from harness.domain.errors import BadInput
from harness.domain.suggest import did_you_mean
from harness.history import reading
from harness.history.database import Database, reach
from harness.history.importing import Stored, store
from harness.history.looking import look_again, points_of
from harness.history.nights import look
from harness.history.records import RunRecord, differences
from harness.history.regressions import is_regressed, regressions
from harness.history.series import (
    CellTrend,
    Change,
    MissingNight,
    NightPoint,
    NightVerdict,
    Regression,
    Series,
)
from harness.history.tables import CellRow, MeasurementRow, SeriesRow
from harness.history.versions import prepare
from harness.models.storage import make_folder
from harness.reporting.joining import LOST


def default_address() -> str:
    """``MOE_HISTORY``, else ``moe-harness/history.sqlite`` in ``XDG_STATE_HOME`` or ``~/.local/state``."""
    if chosen := settings.history():
        return chosen
    base = os.environ.get("XDG_STATE_HOME", "")
    # The XDG rule: a relative path there is to be ignored.
    root = Path(base) if base.startswith("/") else Path.home() / ".local" / "state"
    return str(root / "moe-harness" / "history.sqlite")


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did.

    Attributes:
        run: What was read.
        stored: What became of its cells.
        changes: Changes that were not known before, by case id.
    """

    run: RunRecord
    stored: Stored
    changes: Mapping[str, tuple[Change, ...]]


class History:
    """A history that is open. A context manager.

    Args:
        address: A file or a URL; empty: the default one.
        make: Whether it is made where there is none.

    Raises:
        HarnessError: What is wrong with the address, the database or its version.
    """

    def __init__(self, address: str = "", *, make: bool = False) -> None:
        if make and not address and "://" not in default_address():
            make_folder(Path(default_address()).parent)
        self._database = reach(address or default_address())
        if prepare(self._database, make=make):
            self._look_everywhere()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.dispose()

    @property
    def where(self) -> str:
        """Its place, without a password."""
        return self._database.where

    @property
    def database(self) -> Database:
        """The database itself."""
        return self._database

    # ---- writing ----

    def add(self, run: RunRecord) -> Imported:
        """Put a run in, and look for changes where its figures are new. All of it or nothing."""
        with self._database.writing() as connection:
            stored = store(connection, run)
            found = look_again(connection, stored.series)
            rows = connection.execute(
                select(SeriesRow.id, CellRow.case)
                .join(CellRow, CellRow.id == SeriesRow.cell_id)
                .where(SeriesRow.id.in_(found))
            )
            names = {row.id: row.case for row in rows}
        return Imported(run, stored, {names[series]: changes for series, changes in sorted(found.items())})

    def _look_everywhere(self) -> None:
        with self._database.writing() as connection:
            look_again(connection, connection.execute(select(SeriesRow.id)).scalars().all())

    # ---- reading ----

    def cells(self) -> tuple[str, ...]:
        """All case ids, sorted."""
        with self._database.reading() as connection:
            return reading.cells(connection)

    def last_night(self) -> date:
        """The last night.

        Raises:
            BadInput: ``E-no-history``: nothing was imported.
        """
        with self._database.reading() as connection:
            found = reading.last_night(connection)
        if found is None:
            raise BadInput("E-no-history", "nothing was imported yet", where=self.where)
        return found

    def night(self, night: date) -> tuple[CellTrend, ...]:
        """The cells of a night as they stood then, by case id; none where nothing was run."""
        with self._database.reading() as connection:
            return reading.trends_of_night(connection, night)

    def verdicts(self, case: str) -> tuple[NightVerdict, ...]:
        """All verdicts of a cell, in order of time.

        Raises:
            BadInput: ``E-unknown-cell``.
        """
        with self._database.reading() as connection:
            self._require(connection, case)
            return reading.verdicts_of_cells(connection, [case])[case]

    def verdicts_of(self, cases: Iterable[str]) -> dict[str, tuple[NightVerdict, ...]]:
        """All verdicts of many cells, in order of time; those that the history does not know are left out."""
        with self._database.reading() as connection:
            return reading.verdicts_of_cells(connection, cases)

    def series(self, case: str) -> tuple[Series, ...]:
        """The series of a cell in order of their first nights; none where it has no figures.

        Raises:
            BadInput: ``E-unknown-cell``.
        """
        with self._database.reading() as connection:
            self._require(connection, case)
        return self.series_of([case])[case]

    def series_of(self, cases: Iterable[str]) -> dict[str, tuple[Series, ...]]:
        """The series of many cells, for plots; those that the history does not know have none."""
        wanted = list(dict.fromkeys(cases))
        with self._database.reading() as connection:
            verdicts = reading.verdicts_of_cells(connection, wanted)
            return {case: tuple(_all_series(connection, case, verdicts.get(case, ()))) for case in wanted}

    def regressions(self, night: date | None = None) -> tuple[Regression, ...]:
        """The cells that are worse on a night than before, new ones first, then the largest.

        Args:
            night: The night; ``None``: the last one.

        Raises:
            BadInput: ``E-no-history``: nothing was imported.
        """
        asked = night or self.last_night()
        with self._database.reading() as connection:
            trends = reading.trends_of_night(connection, asked)
            bad = [trend.last.cell for trend in trends if is_regressed(trend.last)]
            return regressions(asked, trends, reading.verdicts_of_cells(connection, bad, asked))

    def unknown_cell(self, case: str, known: Iterable[str]) -> BadInput:
        """The error for a cell that is not there, with the nearest one that is."""
        hint = did_you_mean(case, known) or "nothing was imported yet"
        return BadInput("E-unknown-cell", f"no cell '{case}'", hint=hint, where=self.where)

    def _require(self, connection: Connection, case: str) -> None:
        known = reading.cells(connection)
        if case not in known:
            raise self.unknown_cell(case, known)


def _all_series(connection: Connection, case: str, verdicts: Sequence[NightVerdict]) -> Iterator[Series]:
    rows = connection.execute(
        select(SeriesRow.id, SeriesRow.unit, SeriesRow.setup, MeasurementRow.began, MeasurementRow.night)
        .join(MeasurementRow, MeasurementRow.series_id == SeriesRow.id)
        .join(CellRow, CellRow.id == SeriesRow.cell_id)
        .where(CellRow.case == case)
        .order_by(MeasurementRow.night, MeasurementRow.began, MeasurementRow.id)
    ).all()
    of_series: dict[int, list[NightVerdict]] = {}
    figures = (each for each in verdicts if each.value is not None)
    for row, verdict in zip(rows, figures, strict=True):
        of_series.setdefault(row.id, []).append(verdict)
    units = {row.id: row.unit for row in rows}
    setups = {row.id: json.loads(row.setup) for row in rows}
    changes = reading.changes_of(connection, list(of_series))
    nights = reading.run_nights(connection)
    before: int | None = None
    for series, found in of_series.items():
        began = (
            ""
            if before is None
            else _why_new(setups[before], setups[series], of_series[before][-1].node, found[0].node)
        )
        outliers = look(points_of(connection, [series])[series], units[series]).outliers
        yield Series(
            cell=case,
            unit=units[series],
            node=found[-1].node,
            began=began,
            points=tuple(_point(each, far) for each, far in zip(found, outliers, strict=True)),
            missing=tuple(_missing(found, verdicts, nights)),
            changes=changes.get(series, ()),
        )
        before = series


def _why_new(old: Mapping[str, str], new: Mapping[str, str], old_node: str, new_node: str) -> str:
    told = list(differences(old, new))
    if old_node != new_node:
        told.append(f"machine {old_node} -> {new_node}")
    return "; ".join(told) or "the machine's driver or kernel is another one"


def _point(verdict: NightVerdict, far: bool) -> NightPoint:
    value = verdict.value or 0.0
    return NightPoint(
        night=verdict.night,
        time=verdict.time,
        value=value,
        low=value if verdict.low is None else verdict.low,
        high=value if verdict.high is None else verdict.high,
        assumed=verdict.assumed,
        n=verdict.n,
        status=verdict.status,
        word=verdict.word,
        node=verdict.node,
        builds=verdict.builds,
        outlier=far,
    )


def _missing(
    found: Sequence[NightVerdict], verdicts: Sequence[NightVerdict], nights: Mapping[str, Sequence[date]]
) -> Iterator[MissingNight]:
    """Nights on which the cell's matrices were run, between the first and the last figure of a series."""
    first, last = found[0].night, found[-1].night
    there = {each.night for each in found}
    why = {each.night: "lost" if each.slug == LOST else str(each.status) for each in verdicts if each.value is None}
    elsewhere = {each.night for each in verdicts if each.value is not None} - there
    matrices = {each.matrix for each in verdicts}
    run = {night for matrix in matrices for night in nights.get(matrix, ()) if first < night < last}
    for night in sorted(run - there):
        yield MissingNight(night, "measured elsewhere" if night in elsewhere else why.get(night, "not run"))
