"""The model in the page cache: seen, brought in, dropped. On real files of this machine's file system."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.execution import machine
from harness.execution.page_cache import bring_in, drop, files_of, fits, resident_share

PAGES = 256
PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A file of whole pages, on the disk, that nothing else maps; skips where the file system keeps all in memory."""
    path = tmp_path / "model.gguf"
    path.write_bytes(os.urandom(PAGES * PAGE))
    drop([path])
    if reads_without_waiting(path):
        pytest.skip("files of this file system never leave the memory")
    drop([path])  # the question alone made the kernel read ahead
    return path


def reads_without_waiting(path: Path) -> bool:
    """Whether the first page comes from memory, by another word of the kernel than the one that is tested."""
    with path.open("rb", buffering=0) as file:
        try:
            os.preadv(file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT)
        except BlockingIOError:
            return False
    return True


def never() -> bool:
    return False


def test_a_file_is_dropped_and_brought_in(model: Path) -> None:
    assert resident_share([model]) == 0.0
    bring_in([model], (), never)
    assert resident_share([model]) == 1.0
    drop([model])
    assert resident_share([model]) == 0.0


def test_parts_are_seen_as_parts(model: Path) -> None:
    """Half of the pages read, with the kernel's read-ahead off."""
    with model.open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        for page in range(0, PAGES, 2):
            os.pread(file.fileno(), 1, page * PAGE)
    assert resident_share([model]) == 0.5


def test_a_stop_ends_the_reading(model: Path) -> None:
    bring_in([model], (), lambda: True)
    assert resident_share([model]) == 0.0


def test_reading_leaves_the_thread_where_it_was(model: Path) -> None:
    before = os.sched_getaffinity(0)
    bring_in([model], (max(before),), never)
    assert os.sched_getaffinity(0) == before


def test_shards_are_one_model(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        (tmp_path / f"m-{number:05d}-of-00003.gguf").write_bytes(b"x" * PAGE)
    (tmp_path / "m-00001-of-00002.gguf").write_bytes(b"x")
    first = tmp_path / "m-00001-of-00003.gguf"
    assert [path.name for path in files_of(first)] == [f"m-{number:05d}-of-00003.gguf" for number in (1, 2, 3)]
    drop(files_of(first)[:1])
    share = resident_share(files_of(first))
    assert share == pytest.approx(2 / 3) or share == 1.0  # 1 where files never leave the memory


def test_what_is_no_shard_is_alone(tmp_path: Path) -> None:
    assert files_of(tmp_path / "m.gguf") == (tmp_path / "m.gguf",)


def test_another_users_file_is_not_known(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel would say of it that all is in memory."""
    stranger = model.stat().st_uid + 1
    monkeypatch.setattr(os, "geteuid", lambda: stranger)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert resident_share([model]) is None


def test_a_model_must_fit_twice_with_a_reserve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "model.gguf"
    with file.open("wb") as opened:
        opened.truncate(2 << 30)
    (tmp_path / "proc").mkdir()
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    assert not fits([file])  # nothing is known of this machine
    for gib, enough in ((4, False), (5, True)):
        (tmp_path / "proc/meminfo").write_text(f"MemTotal: 99 kB\nMemAvailable:   {gib << 20} kB\n")
        assert fits([file]) is enough
    (tmp_path / "proc/self").mkdir()
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/memory.max").write_text(f"{3 << 30}\n")
    assert not fits([file])
