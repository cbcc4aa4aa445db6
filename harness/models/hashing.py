"""Content hashes of large files, remembered in the cache by path, size and modification time."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from harness.domain.errors import BadInput, HarnessError
from harness.models.splits import parts_of
from harness.models.storage import cache_root, make_folder, read_json, write_json


def model_sha256(path: Path, *, cache: Path | None = None) -> str:
    """Digest of a whole model: its file's SHA-256, or that of the SHA-256s of all parts, one a line, in their order.

    Args:
        path: The file, or any part of a split model.
        cache: Root of the cache; `cache_root()` when None.

    Raises:
        BadInput: ``E-model-missing`` or ``E-model-unreadable``.
    """
    digests = [file_sha256(part, cache=cache) for part in parts_of(path)]
    return digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()


def file_sha256(path: Path, *, cache: Path | None = None) -> str:
    """SHA-256 of a file, in hexadecimal.

    A file with the same path, inode, size and modification time is not read again. A cache that can't be written costs
    time, not an error.

    Args:
        path: The file.
        cache: Root of the cache; `cache_root()` when None.

    Raises:
        BadInput: ``E-model-missing`` or ``E-model-unreadable``.
    """
    try:
        found = path.stat()
        place = str(path.resolve())
        state = {
            "path": place,
            "inode": found.st_ino,
            "size": found.st_size,
            "mtime_ns": found.st_mtime_ns,
        }
        memory = (cache or cache_root()) / "hashes" / f"{hashlib.sha256(place.encode()).hexdigest()[:32]}.json"
        known = read_json(memory) or {}
        digest = known.pop("sha256", None)
        if isinstance(digest, str) and known == state:
            return digest
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as absent:
        raise BadInput("E-model-missing", "no such file", where=str(path)) from absent
    except OSError as failure:
        raise BadInput(
            "E-model-unreadable", f"can't be read: {failure.strerror or failure}", where=str(path)
        ) from failure
    with suppress(OSError, HarnessError):
        make_folder(memory.parent)
        write_json(memory, {**state, "sha256": digest})
    return digest
