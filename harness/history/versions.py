"""The version of a history's tables: made where there are none, brought up from older ones, refused where newer."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlalchemy import Connection, Table, bindparam, func, insert, inspect, select, text, update

from harness.domain.errors import BadInput
from harness.history.database import Database
from harness.history.tables import VERSION, Base, ChangeRow, HistoryVersion, MeasurementRow


def prepare(database: Database, *, make: bool) -> bool:
    """Bring the tables to this harness's version.

    Args:
        database: The database.
        make: Whether to make them where there are none.

    Returns:
        Whether older tables were brought up: changes are to be looked for again.

    Raises:
        BadInput: ``E-no-history``: there is none; ``E-history-newer``; ``E-history-foreign``.
        HarnessError: What is wrong with the database.
    """
    if not make and database.file is not None and not database.file.is_file():
        raise _none(database)
    with database.reading() as connection:
        found = _version(connection, database)
    if found == VERSION:
        return False
    if found is None and not make:
        raise _none(database)
    with database.writing() as connection:
        return _bring_up(connection, database)


def _bring_up(connection: Connection, database: Database) -> bool:
    """Under the writer's lock, so asked again: another process may have done it meanwhile."""
    found = _version(connection, database)
    if found is None:
        Base.metadata.create_all(connection)
        connection.execute(insert(HistoryVersion), {"version": VERSION})
        return False
    for version in range(found, VERSION):
        _STEPS[version](connection)
    connection.execute(update(HistoryVersion).values(version=VERSION))
    return found < VERSION


def _version(connection: Connection, database: Database) -> int | None:
    """The version of the tables; ``None`` where there are none."""
    tables = inspect(connection).get_table_names()
    if HistoryVersion.__tablename__ not in tables:
        if tables and database.is_sqlite:
            message = f"a database of something else: it has tables such as {tables[0][:40]}"
            raise BadInput("E-history-foreign", message, hint="give another file", where=database.where)
        return None
    found = connection.execute(select(func.max(HistoryVersion.version))).scalar()
    if found is None or found < 1:
        message = "the history does not say its version"
        raise BadInput("E-history-corrupt", message, hint="move it away", where=database.where)
    if found > VERSION:
        raise BadInput(
            "E-history-newer",
            f"its tables have version {found}, this harness knows up to {VERSION}",
            hint="use the version that wrote it, or a newer one; it was not changed",
            where=database.where,
        )
    return found


def _none(database: Database) -> BadInput:
    hint = "moe-harness history import JOURNAL makes one; --history or MOE_HISTORY say where"
    return BadInput("E-no-history", "there is no history yet", hint=hint, where=database.where)


def _add_changes(connection: Connection) -> None:
    """Version 1 had measurements and no changes: those are found again from the measurements."""
    table = ChangeRow.__table__
    if isinstance(table, Table):
        table.create(connection)


_ASSUMED = re.compile(r"\(interval if quads scatter by ([0-9]{1,4}(?:\.[0-9]{1,4})?(?:e\+[0-9]{1,2})?) %, n = ")


def _add_assumed(connection: Connection) -> None:
    """Version 2 kept intervals without what they assume; the verdicts' sentences have it, to two digits."""
    connection.execute(text("ALTER TABLE moe_measurements ADD COLUMN assumed DOUBLE PRECISION"))
    of_ratio = (MeasurementRow.unit == "ratio", MeasurementRow.value.is_not(None))
    rows = connection.execute(select(MeasurementRow.id, MeasurementRow.reason).where(*of_ratio)).all()
    found = [{"row": row.id, "scatter": float(said[1]) / 100} for row in rows if (said := _ASSUMED.search(row.reason))]
    if found:
        chosen = update(MeasurementRow).where(MeasurementRow.id == bindparam("row"))
        connection.execute(chosen.values(assumed=bindparam("scatter")), found)


_STEPS: dict[int, Callable[[Connection], None]] = {1: _add_changes, 2: _add_assumed}
"""By version: what makes the next one of it."""
