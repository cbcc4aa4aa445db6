"""Histories to test on: a file of SQLite, and databases of a PostgreSQL that these tests start for themselves."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from requiring import missing  # the folder above is no package

_NUMBERS = count(1)
_WAIT_S = 60.0


def _programs() -> Path:
    """The folder of PostgreSQL's programs, the newest first."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: -float(path.parts[-3]))
    on_path = shutil.which("initdb")
    if not found and on_path is None:
        missing("postgres", "initdb is not there: install the package postgresql")
    return found[0].parent if found else Path(str(on_path)).parent


def _server_user() -> str | None:
    """PostgreSQL refuses root: then its own user runs it."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        missing("postgres", "the tests run as root, and there is no user postgres that could run the server")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The folder of the socket of a server of our own: it listens nowhere else."""
    programs, user = _programs(), _server_user()
    root = Path(tempfile.mkdtemp(prefix="moe-pg-"))  # not pytest's: the server's user may not enter that
    try:
        if user:
            shutil.chown(root, user)
        data = root / "data"
        initdb = [programs / "initdb", "-D", data, "-U", "moe", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(initdb, check=True, capture_output=True, user=user, cwd="/")
        options = ("-c", "fsync=off", "-c", "listen_addresses=", "-c", f"unix_socket_directories={root}")
        log = (root / "log").open("wb")
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, *options], stdout=log, stderr=log, user=user, cwd="/"
        )
        try:
            _wait(programs, root, server)
            yield str(root)
        finally:
            server.terminate()
            server.wait(_WAIT_S)
            log.close()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _wait(programs: Path, root: Path, server: subprocess.Popen[bytes]) -> None:
    ready = [programs / "pg_isready", "-q", "-h", root, "-U", "moe", "-d", "postgres"]
    end = time.monotonic() + _WAIT_S
    while subprocess.run(ready, check=False).returncode:
        if server.poll() is not None or time.monotonic() > end:
            pytest.fail(f"PostgreSQL did not start: {(root / 'log').read_text(errors='replace')[-2000:]}")
        time.sleep(0.1)


@pytest.fixture
def postgres_address(postgres: str) -> str:
    """The address of a new database."""
    import psycopg  # noqa: PLC0415 - only where there is a server

    name = f"history{next(_NUMBERS)}"
    with psycopg.connect(host=postgres, user="moe", dbname="postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"postgresql://moe@/{name}?host={postgres}"


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a new history, in turn of both databases."""
    if request.param == "sqlite":
        return str(tmp_path / "history.sqlite")
    return str(request.getfixturevalue("postgres_address"))
