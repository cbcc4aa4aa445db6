"""Content hashes of large files, remembered in the cache by path, size and modification time."""

from __future__ import annotations

import hashlib
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from harness.domain.errors import BadInput, HarnessError
from harness.domain.halting import ShouldStop, go_on, never
from harness.models.splits import parts_of
from harness.models.storage import cache_root, make_folder, read_json, write_json

_NAME_DIGITS = 32
_PIECE = 1 << 20


def model_sha256(path: Path, *, cache: Path | None = None, should_stop: ShouldStop = never) -> str:
    """Digest of a whole model: its file's SHA-256, or that of the SHA-256s of all parts, one a line, in their order.

    Args:
        path: The file, or any part of a split model.
        cache: Root of the cache; `cache_root()` when None.
        should_stop: Ends the reading.

    Raises:
        BadInput: ``E-model-missing`` or ``E-model-unreadable``.
        Stopped: It was told to stop.
    """
    digests = [file_sha256(part, cache=cache, should_stop=should_stop) for part in parts_of(path)]
    return digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()


def known_sha256(path: Path, *, cache: Path | None = None) -> tuple[str, ...]:
    """Digests of a model's files as they were made when they were last read; empty where one is not known.

    Args:
        path: The file, or any part of a split model. Nothing of it is read.
        cache: Root of the cache; `cache_root()` when None.
    """
    digests = []
    for part in parts_of(path):
        try:
            state = _state(part)
        except OSError:
            return ()
        known = read_json(_memory(part, cache)) or {}
        digest = known.pop("sha256", None)
        if not isinstance(digest, str) or known != state:
            return ()
        digests.append(digest)
    return tuple(digests)


def file_sha256(path: Path, *, cache: Path | None = None, should_stop: ShouldStop = never) -> str:
    """SHA-256 of a file, in hexadecimal.

    A file with the same path, inode, size and modification time is not read again. A cache that can't be written costs
    time, not an error.

    Args:
        path: The file.
        cache: Root of the cache; `cache_root()` when None.
        should_stop: Ends the reading.

    Raises:
        BadInput: ``E-model-missing`` or ``E-model-unreadable``.
        Stopped: It was told to stop.
    """
    try:
        state, memory = _state(path), _memory(path, cache)
        known = read_json(memory) or {}
        digest = known.pop("sha256", None)
        if isinstance(digest, str) and known == state:
            return digest
        with path.open("rb") as file:
            digest = _digest(file, should_stop)
    except FileNotFoundError as absent:
        raise BadInput("E-model-missing", "no such file", where=str(path)) from absent
    except OSError as failure:
        raise BadInput(
            "E-model-unreadable", f"can't be read: {failure.strerror or failure}", where=str(path)
        ) from failure
    _write(memory, state, digest)
    return digest


def _digest(file: BinaryIO, should_stop: ShouldStop) -> str:
    digest = hashlib.sha256()
    while piece := file.read(_PIECE):
        go_on(should_stop)
        digest.update(piece)
    return digest.hexdigest()


def remember_sha256(path: Path, digest: str, *, cache: Path | None = None) -> None:
    """Remember the digest of a file that has just been written, so that nobody reads it for that.

    Raises:
        OSError: The file is not there.
    """
    _write(_memory(path, cache), _state(path), digest)


class DigestingWriter:
    """Writes to a file, and makes the digest of what is written meanwhile, in a thread of its own."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._worker = ThreadPoolExecutor(max_workers=1)
        self._pending: Future[None] | None = None

    def write(self, piece: bytes) -> int:
        """Write a piece, at the most one ahead of the digest."""
        self._settle()
        self._pending = self._worker.submit(self._digest.update, piece)
        return self._file.write(piece)

    def hexdigest(self) -> str:
        """The SHA-256 of all that was written, in hexadecimal; nothing can be written after it."""
        self._settle()
        self._worker.shutdown()
        return self._digest.hexdigest()

    def _settle(self) -> None:
        if self._pending is not None:
            self._pending.result()


def _state(path: Path) -> dict[str, str | int]:
    found = path.stat()
    return {
        "path": str(path.resolve()),
        "inode": found.st_ino,
        "size": found.st_size,
        "mtime_ns": found.st_mtime_ns,
    }


def _memory(path: Path, cache: Path | None) -> Path:
    name = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:_NAME_DIGITS]
    return (cache or cache_root()) / "hashes" / f"{name}.json"


def _write(memory: Path, state: dict[str, str | int], digest: str) -> None:
    with suppress(OSError, HarnessError):
        make_folder(memory.parent)
        write_json(memory, {**state, "sha256": digest})
