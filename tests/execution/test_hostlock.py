"""One measurement per host at a time."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import harness
from harness.domain.errors import Infrastructure
from harness.execution.hostlock import describe_holder, lock_dir, measurement_lock

if TYPE_CHECKING:
    from collections.abc import Iterator

HOLD = """
import sys
from harness.execution.hostlock import measurement_lock
with measurement_lock(5, "their job"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MOE_LOCK_DIR", str(tmp_path))
    return tmp_path


@contextmanager
def other_process(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    environment = os.environ | {"PYTHONPATH": str(Path(harness.__file__).parents[1]), "MOE_LOCK_DIR": str(folder)}
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        try:
            yield other
        finally:
            other.kill()


def test_busy_host_says_who_measures(folder: Path) -> None:
    with (
        other_process(folder) as other,
        pytest.raises(Infrastructure, match="E-host-busy") as caught,
        measurement_lock(0.3, "our job"),
    ):
        pytest.fail("the lock is held twice")

    assert f"process {other.pid} since 20" in caught.value.message
    assert "their job" in caught.value.message
    assert caught.value.exit_code == 3


def test_waiting_is_announced_and_ends_with_the_other(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with other_process(folder) as other, caplog.at_level(logging.INFO):
        assert other.stdin is not None
        threading.Timer(0.3, other.stdin.close).start()
        begin = time.monotonic()
        with measurement_lock(10, "our job"):
            assert time.monotonic() - begin >= 0.2
            assert f"process {os.getpid()}" in describe_holder()

    assert f"process {other.pid}" in caplog.text


def test_a_killed_holder_leaves_the_lock_free(folder: Path) -> None:
    with other_process(folder) as other:
        other.kill()
        other.wait()
        assert "their job" in describe_holder()
        with measurement_lock(1, "our job"):
            assert "our job" in describe_holder()


def test_two_threads_of_one_process_are_two_measurements() -> None:
    refused: list[str] = []

    def second() -> None:
        try:
            with measurement_lock(0, "second"):
                pass
        except Infrastructure as error:
            refused.append(error.slug)

    with measurement_lock(0, "first"):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()

    assert refused == ["E-host-busy"]


def test_lock_may_be_released_in_another_thread() -> None:
    """A job is a generator, and may be closed in another thread than the one that began it."""
    held = measurement_lock(0, "first")
    with ThreadPoolExecutor(1) as pool:
        pool.submit(held.__enter__).result()

        held.__exit__(None, None, None)

        with measurement_lock(0, "second"):
            pass


def test_lock_is_free_after_an_error_and_names_nobody() -> None:
    with pytest.raises(ValueError, match="ours"), measurement_lock(0, "first"):
        raise ValueError("ours")

    assert describe_holder() == "an unknown process"
    with measurement_lock(0, "second"):
        pass


def test_other_users_may_take_the_lock(folder: Path) -> None:
    previous = os.umask(0o077)
    try:
        with measurement_lock(0, "first"):
            modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    finally:
        os.umask(previous)

    assert modes == dict.fromkeys(("moe-host.lock", "moe-measurement.lock", "moe-measurement.holder"), 0o666)


def test_a_link_in_place_of_the_holder_file_is_not_followed(folder: Path) -> None:
    victim = folder / "victim"
    victim.write_text("precious")
    (folder / "moe-measurement.holder").symlink_to(victim)

    with measurement_lock(0, "first"):
        pass

    assert victim.read_text() == "precious"


@pytest.mark.parametrize("content", ["", "nonsense", "[]", "{}", '{"pid": "x", "since": 0, "purpose": ""}'])
def test_a_damaged_holder_file_is_an_unknown_process(folder: Path, content: str) -> None:
    (folder / "moe-measurement.holder").write_text(content)

    assert describe_holder() == "an unknown process"


def test_a_folder_that_cannot_be_used_is_a_typed_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "file").touch()
    monkeypatch.setenv("MOE_LOCK_DIR", str(folder / "file" / "below"))

    with pytest.raises(Infrastructure, match="E-host-lock"), measurement_lock(0, "first"):
        pass


def test_folder_is_one_where_everybody_may_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the first that *we* can write: root and the others would choose different ones."""
    monkeypatch.delenv("MOE_LOCK_DIR")

    assert lock_dir().stat().st_mode & 0o002
    monkeypatch.setattr(stat, "S_IWOTH", 0)
    assert lock_dir() == Path(tempfile.gettempdir())
