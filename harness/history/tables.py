"""The tables of the history, version 3. What a version changes is in `versions`."""

from __future__ import annotations

from datetime import UTC, date, datetime

from sqlalchemy import DateTime, Dialect, ForeignKey, Index, String, Text, TypeDecorator, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

VERSION = 3
_KEY = 40


class UtcTime(TypeDecorator[datetime]):
    """A time that is UTC on both sides: SQLite keeps no zone."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """To the database, without a zone."""
        del dialect
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """From the database."""
        del dialect
        return None if value is None else value.replace(tzinfo=UTC)


class Base(DeclarativeBase):
    """Of all tables."""


class HistoryVersion(Base):
    """One row: the version of the tables."""

    __tablename__ = "moe_history"
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)


class RunRow(Base):
    """A run of a matrix, or a file of somebody's measurements."""

    __tablename__ = "moe_runs"
    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(_KEY), unique=True)
    matrix: Mapped[str] = mapped_column(Text)
    night: Mapped[date] = mapped_column(index=True)
    began: Mapped[datetime] = mapped_column(UtcTime)
    finished: Mapped[bool]
    source: Mapped[str] = mapped_column(Text)


class NodeRow(Base):
    """A machine as it was probed: another driver or kernel is another row."""

    __tablename__ = "moe_nodes"
    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(_KEY), unique=True)
    described: Mapped[str] = mapped_column(Text)
    facts: Mapped[str] = mapped_column(Text)


class BuildRow(Base):
    """A build that was seen to run."""

    __tablename__ = "moe_builds"
    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(_KEY), unique=True)
    name: Mapped[str] = mapped_column(Text)
    commit: Mapped[str] = mapped_column(Text)
    number: Mapped[int]
    content: Mapped[str] = mapped_column(Text)
    version: Mapped[str] = mapped_column(Text)


class CellRow(Base):
    """A cell: a case by its id."""

    __tablename__ = "moe_cells"
    id: Mapped[int] = mapped_column(primary_key=True)
    case: Mapped[str] = mapped_column(Text, unique=True)


class SeriesRow(Base):
    """Figures of a cell that may be compared through time: of one setup, and one place."""

    __tablename__ = "moe_series"
    __table_args__ = (Index("moe_series_of_cell", "cell_id"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    cell_id: Mapped[int] = mapped_column(ForeignKey("moe_cells.id"))
    unit: Mapped[str] = mapped_column(Text)
    place: Mapped[str] = mapped_column(String(_KEY))
    setup: Mapped[str] = mapped_column(Text)


class MeasurementRow(Base):
    """What one run found of one cell: the figure, where there is one, and the verdict."""

    __tablename__ = "moe_measurements"
    __table_args__ = (
        UniqueConstraint("run_id", "cell_id"),
        Index("moe_measurements_of_series", "series_id", "night"),
        Index("moe_measurements_of_cell", "cell_id", "night"),
        Index("moe_measurements_of_night", "night"),
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("moe_runs.id"))
    cell_id: Mapped[int] = mapped_column(ForeignKey("moe_cells.id"))
    series_id: Mapped[int | None] = mapped_column(ForeignKey("moe_series.id"))
    node_id: Mapped[int | None] = mapped_column(ForeignKey("moe_nodes.id"))
    night: Mapped[date]
    began: Mapped[datetime] = mapped_column(UtcTime)
    unit: Mapped[str] = mapped_column(Text)
    value: Mapped[float | None]
    low: Mapped[float | None]
    high: Mapped[float | None]
    assumed: Mapped[float | None]
    n: Mapped[int]
    status: Mapped[str] = mapped_column(Text)
    throughput: Mapped[str] = mapped_column(Text)
    equivalence: Mapped[str] = mapped_column(Text)
    pitfall: Mapped[str] = mapped_column(Text)
    slug: Mapped[str] = mapped_column(Text)
    reason: Mapped[str] = mapped_column(Text)
    seconds: Mapped[float]
    synthetic: Mapped[bool]


class SpeedRow(Base):
    """What one arm did in a measurement."""

    __tablename__ = "moe_speeds"
    measurement_id: Mapped[int] = mapped_column(ForeignKey("moe_measurements.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    label: Mapped[str] = mapped_column(Text)
    build_id: Mapped[int | None] = mapped_column(ForeignKey("moe_builds.id"))
    tps: Mapped[float | None]
    spread: Mapped[float | None]
    processes: Mapped[int]


class ChangeRow(Base):
    """A change of a series as the latest look at it says; ``withdrawn``: the night whose look did not find it again."""

    __tablename__ = "moe_changes"
    __table_args__ = (Index("moe_changes_of_series", "series_id"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    series_id: Mapped[int] = mapped_column(ForeignKey("moe_series.id"))
    kind: Mapped[str] = mapped_column(Text)
    last_before: Mapped[date]
    first_after: Mapped[date]
    earliest: Mapped[date]
    latest: Mapped[date]
    before: Mapped[float]
    after: Mapped[float]
    ratio: Mapped[float]
    low: Mapped[float]
    high: Mapped[float]
    p: Mapped[float]
    first_seen: Mapped[date]
    withdrawn: Mapped[date | None]
    node_changed: Mapped[bool]
    worse: Mapped[bool]
    builds: Mapped[str] = mapped_column(Text)
