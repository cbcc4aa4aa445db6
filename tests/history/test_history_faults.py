"""Databases that are locked, closed, broken, of another version or something else: said, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest
from history_support import CONTRAST, cell, day, nights, noise, run

from harness.domain.errors import BadInput, HarnessError, Infrastructure
from harness.history import database
from harness.history.database import reach
from harness.history.history import History
from harness.history.series import BuildRef

OLD = Path(__file__).parents[1] / "data" / "history" / "version_1.sqlite"
RUN = run(1, [cell(CONTRAST, 1.0, BuildRef("head", "a"))])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A history with a night."""
    path = tmp_path / "history.sqlite"
    with History(str(path), make=True) as history:
        history.add(RUN)
    return path


def test_an_older_history_is_brought_up_and_its_changes_are_found(tmp_path: Path) -> None:
    """A file of version 1 has measurements alone."""
    path = tmp_path / "old.sqlite"
    shutil.copy(OLD, path)
    with History(str(path)) as history:
        (series,) = history.series(CONTRAST)
        assert len(series.points) == 20
        assert [change.first_after for change in series.changes] == [day(12)]
        assert history.add(run(20, [cell(CONTRAST, 0.9, BuildRef("head", "new"))])).stored.added == 1
    with History(str(path)) as history:
        assert len(history.verdicts(CONTRAST)) == 21


def test_a_history_of_version_2_learns_what_its_intervals_assume(address: str) -> None:
    """Of the verdicts' sentences, to two digits; other sentences and figures without intervals say nothing."""
    said = [f"(interval if quads scatter by {sd} %, n = 1 quad)" for sd in ("9.3", "1..2")] + ["no figure"]
    head = BuildRef("head", "a")
    cells = [
        cell(f"{CONTRAST}-{at}", 1.0 if at < 2 else None, head, reason=f"equivalent: ratio 1.000 [0.9, 1.1] {text}")
        for at, text in enumerate(said)
    ]
    with History(address, make=True) as history:
        history.add(run(1, cells))
        with history.database.writing() as connection:
            connection.exec_driver_sql("ALTER TABLE moe_measurements DROP COLUMN assumed")
            connection.exec_driver_sql("UPDATE moe_history SET version = 2")
    with History(address) as history:
        found = [history.verdicts(each.verdict.case)[0] for each in cells]
        assert [(each.assumed, each.value) for each in found] == [
            (pytest.approx(0.093), 1.0),
            (None, 1.0),
            (None, None),
        ]
        assert history.add(run(1, cells)).stored.changed == 1  # a journal has all its digits
    with History(address) as history:
        assert [point.assumed for point in history.series(cells[0].verdict.case)[0].points] == [None]


def test_a_newer_history_is_refused_and_left_alone(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE moe_history SET version = 99")
    connection.close()
    content = file.read_bytes()
    for make in (False, True):
        with pytest.raises(BadInput, match=r"E-history-newer.*version 99"):
            History(str(file), make=make)
    assert file.read_bytes() == content


def test_a_locked_history_is_waited_for_and_then_said(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers and writers alike; what was in it stays."""
    monkeypatch.setattr(database, "_WAIT_S", 0.2)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    held = reach(str(file), wait_s=0.2)
    with pytest.raises(Infrastructure, match="E-history-locked"), held.writing():
        pass
    other.execute("ROLLBACK")
    other.close()
    held.dispose()
    with History(str(file)) as history:
        assert len(history.verdicts(CONTRAST)) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to read-only files")
def test_a_read_only_history_can_be_read_and_not_written(file: Path) -> None:
    file.chmod(0o444)
    with History(str(file)) as history:
        assert len(history.verdicts(CONTRAST)) == 1
        with pytest.raises(BadInput, match="E-history-read-only"):
            history.add(run(2, RUN.cells))


def test_a_database_that_takes_no_changes_says_so(file: Path) -> None:
    """As a file on a read-only disk does, for root too."""
    with History(str(file)) as history:
        with history.database.reading() as connection:
            connection.exec_driver_sql("PRAGMA query_only = ON")
        with pytest.raises(BadInput, match=r"E-history-read-only.*kept"):
            history.add(run(2, RUN.cells))
        assert len(history.verdicts(CONTRAST)) == 1


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"E-history-folder.*mkdir -p"):
        History(str(tmp_path / "none" / "history.sqlite"), make=True)


def test_a_history_that_is_not_there_is_not_made_by_reading(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="E-no-history"):
        History(str(tmp_path / "history.sqlite"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["text", "cut", "pages"])
def test_a_damaged_file_is_said_to_be_one(file: Path, damage: str) -> None:
    """And not changed by saying so."""
    content = file.read_bytes()
    broken = {"text": b"no database" * 100, "cut": content[:5000], "pages": content[:4096] + b"\xff" * 40_000}[damage]
    file.write_bytes(broken)
    with pytest.raises(BadInput, match="E-history-corrupt"), History(str(file), make=True) as history:
        history.add(run(2, RUN.cells))
    assert file.read_bytes() == broken


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE customers (id INTEGER)")
    connection.close()
    with pytest.raises(BadInput, match=r"E-history-foreign.*customers"):
        History(str(path), make=True)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("mysql://user:secret@host/name", "E-history-address"),
        ("postgrsql://user:secret@host/name", "did you mean 'postgresql'"),
        ("sqlite://", "in memory"),
        ("://", "E-history-address"),
    ],
)
def test_an_address_that_is_none_is_refused_without_its_password(address: str, said: str) -> None:
    with pytest.raises(BadInput, match=said) as refused:
        History(address)
    assert "secret" not in str(refused.value)


def test_a_server_that_does_not_answer_is_infrastructure(tmp_path: Path) -> None:
    """The password is not repeated."""
    with pytest.raises(Infrastructure, match="E-history-unreachable") as refused:
        History(f"postgresql://moe:secret@/none?host={tmp_path}")
    assert "secret" not in str(refused.value)


def test_two_writers_at_once_both_get_in(address: str) -> None:
    """Also where both find no tables: one makes them, the other waits."""
    faults: list[HarnessError] = []

    def write(matrix: str) -> None:
        try:
            with History(address, make=True) as history:
                for night in range(6):
                    history.add(run(night, [cell(CONTRAST, 1.0, BuildRef("head", "a"))], matrix=matrix))
        except HarnessError as fault:
            faults.append(fault)

    writers = [threading.Thread(target=write, args=(f"matrix{number}",)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert faults == []
    with History(address) as history:
        assert len(history.verdicts(CONTRAST)) == 18
        assert len(history.series(CONTRAST)) == 1


def test_a_fault_in_the_middle_leaves_nothing_of_a_run(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is in as a whole or not at all."""
    with History(address, make=True) as history:
        nights(history, noise(3))
        with monkeypatch.context() as patch:
            patch.setattr("harness.history.history.look_again", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                history.add(run(9, RUN.cells))
        assert len(history.verdicts(CONTRAST)) == 3
        assert history.last_night() == day(2)


def test_names_are_values_and_never_statements(address: str) -> None:
    """Case ids, builds and reasons of untrusted journals, null characters and lone surrogates included."""
    evil = "x'; DROP TABLE moe_cells; --"
    record = cell(evil, 1.0, BuildRef(evil, evil, content=evil), reason="a\0b\ud800 \x1b[31m" + evil)
    with History(address, make=True) as history:
        history.add(run(1, [record]))
        assert history.cells() == (evil,)
        assert history.verdicts(evil)[0].builds[-1].commit == evil
        assert history.add(run(1, [record])).stored.same == 1
