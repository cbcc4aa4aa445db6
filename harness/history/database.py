"""The database of the history: where it is, its transactions, and what is said when it is locked, closed or broken.

SQLite in a file by default; a ``postgresql://`` address works alike. A writer has the database for itself: SQLite by
its own lock taken at the beginning, PostgreSQL by an advisory lock, so that two imports wait for each other and never
meet in the middle.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from harness.domain.errors import BadInput, HarnessError, Infrastructure
from harness.domain.secrets import is_secret_name
from harness.domain.suggest import did_you_mean

_WAIT_S = 30.0
_LOCK = 0x6D6F65
"""The number of PostgreSQL's advisory lock of writers, of this database alone."""
_WRITES = "history_writes"
_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
_MOST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Database:
    """A database that can be reached; nothing is asked of it yet.

    Attributes:
        engine: SQLAlchemy's.
        where: Its place for messages, without a password.
        file: SQLite's file; ``None`` elsewhere.
    """

    engine: Engine
    where: str
    file: Path | None

    @property
    def is_sqlite(self) -> bool:
        """Whether it is SQLite."""
        return self.file is not None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state.

        Raises:
            HarnessError: Whatever is wrong with the database, with its slug.
        """
        with self._told(), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that no other writer disturbs: all of it is done, or nothing.

        Raises:
            HarnessError: Whatever is wrong with the database, with its slug.
        """
        with self._told(), self.engine.connect().execution_options(**{_WRITES: True}) as connection, connection.begin():
            if not self.is_sqlite:
                connection.execute(text(f"SET LOCAL lock_timeout = '{round(1000 * _WAIT_S)}ms'"))
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            yield connection

    def dispose(self) -> None:
        """Close its connections."""
        self.engine.dispose()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise database_trouble(error, self.where) from error


def reach(address: str, *, wait_s: float = _WAIT_S) -> Database:
    """A database by its address.

    Args:
        address: A file of SQLite, ``sqlite:///FILE`` or ``postgresql://USER@HOST/NAME``.
        wait_s: Seconds to wait for another writer.

    Raises:
        BadInput: ``E-history-address``: no such address; ``E-history-driver``; ``E-history-folder``.
    """
    url = _url(address)
    where = _shown(url)
    if url.drivername != "sqlite":
        try:
            return Database(create_engine(url, pool_pre_ping=True), where, None)
        except ImportError as missing:
            hint = "pip install 'psycopg[binary]'"
            raise BadInput(
                "E-history-driver", f"PostgreSQL needs a driver: {missing}", hint=hint, where=where
            ) from None
    file = Path(url.database or "").expanduser().absolute()
    if not file.parent.is_dir():
        hint = f"make it: mkdir -p {file.parent}"
        raise BadInput("E-history-folder", "the folder of the history is not there", hint=hint, where=f"{file}")
    engine = create_engine(URL.create("sqlite", database=f"{file}"), connect_args={"timeout": wait_s})
    event.listen(engine, "connect", _take_over_transactions)
    event.listen(engine, "begin", _begin)
    return Database(engine, f"{file}", file)


def _url(address: str) -> URL:
    if "://" not in address:
        return URL.create("sqlite", database=address)
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        raise _bad_address(address.partition("://")[0], "no address of a database") from None
    backend = url.get_backend_name()
    if backend not in _DRIVERS:
        raise _bad_address(backend, f"'{backend}' is no database that the history can be in")
    if backend == "sqlite" and not url.database:
        raise _bad_address(backend, "a history in memory is gone when the command ends")
    return url.set(drivername=_DRIVERS[backend])


def _shown(url: URL) -> str:
    """The address without a password, which may also stand behind the question mark."""
    query = {name: "***" if is_secret_name(name) else value for name, value in url.query.items()}
    return url.set(query=query).render_as_string(hide_password=True)


def _bad_address(word: str, message: str) -> BadInput:
    # The address itself is not repeated: it may hold a password.
    hint = f"{did_you_mean(word, _DRIVERS)} e.g. history.sqlite or postgresql://user@host/name".strip()
    return BadInput("E-history-address", message, hint=hint, where="--history or MOE_HISTORY")


def _take_over_transactions(connection: Any, record: object) -> None:
    """Python's module begins transactions by itself, and too late: we do, and also around what makes tables."""
    del record
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


# ---- what is said ----------------------------------------------------------------------------------------------------

_KEPT = "what was in it before is kept"
_SQLITE = (
    ("locked", Infrastructure, "E-history-locked", "another process writes to it", f"try again; {_KEPT}"),
    ("readonly", BadInput, "E-history-read-only", "it can't be written to", f"make it writable; {_KEPT}"),
    ("unable to open", BadInput, "E-history-unwritable", "it can't be opened or made", "check its folder and rights"),
    ("disk is full", Infrastructure, "E-history-disk", "the disk is full", f"free space; {_KEPT}"),
    ("disk i/o", Infrastructure, "E-history-disk", "the disk fails", f"check the disk; {_KEPT}"),
)
_CORRUPT = "it was not changed: move it away and import the journals again, or mend it with `sqlite3 FILE .recover`"
_POSTGRES = {
    "55P03": (Infrastructure, "E-history-locked", "another process writes to it", f"try again; {_KEPT}"),
    "25006": (BadInput, "E-history-read-only", "the server takes no changes", f"give the primary server; {_KEPT}"),
    "42501": (BadInput, "E-history-denied", "the user has no right to it", "grant it, or give another user"),
    "53100": (Infrastructure, "E-history-disk", "the server's disk is full", f"free space; {_KEPT}"),
}


def database_trouble(error: SQLAlchemyError, where: str) -> HarnessError:
    """What a fault of the database is to its user.

    Args:
        error: The fault.
        where: The database's place.
    """
    origin = error.orig if isinstance(error, DBAPIError) else None
    said = " ".join(f"{origin or error}".split())[:_MOST_SHOWN]
    state = getattr(origin, "sqlstate", None)
    if state in _POSTGRES:
        kind, slug, message, hint = _POSTGRES[state]
        return kind(slug, f"{message} ({said})", hint=hint, where=where)
    for word, kind, slug, message, hint in _SQLITE:
        if word in said.lower() and type(origin).__module__ == "sqlite3":
            return kind(slug, f"{message} ({said})", hint=hint, where=where)
    if type(origin).__module__ == "sqlite3":
        return BadInput("E-history-corrupt", f"no history, or a damaged one ({said})", hint=_CORRUPT, where=where)
    hint = "start the server, or check the address"
    return Infrastructure("E-history-unreachable", f"the database does not answer: {said}", hint=hint, where=where)
