"""Where the cache lies, and files that appear whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from harness import bounded, settings
from harness.domain.errors import Infrastructure

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


def cache_root() -> Path:
    """The node-local cache: ``MOE_CACHE_DIR``, else ``moe-harness`` in ``XDG_CACHE_HOME`` or ``~/.cache``.

    Raises:
        BadInput: ``E-bad-setting``.
    """
    if chosen := settings.cache_dir():
        return chosen
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rule: a relative path there is to be ignored.
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "moe-harness"


def make_folder(folder: Path) -> Path:
    """Make a folder of the cache and return it.

    Raises:
        Infrastructure: ``E-no-permission``, ``E-disk-full`` or ``E-cache-unusable``.
    """
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def require_space(folder: Path, needed: int) -> None:
    """Refuse before writing what does not fit.

    Args:
        folder: Where it is to be written.
        needed: Bytes.

    Raises:
        Infrastructure: ``E-disk-full`` with bytes needed and free.
    """
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise _full(folder, f"{needed} bytes are needed, {free} are free")


@contextmanager
def disk_errors(path: Path, needed: int = 0) -> Iterator[None]:
    """Turn what the operating system says about a disk into errors with a remedy.

    Args:
        path: What was to be written.
        needed: Bytes, 0 where unknown.

    Raises:
        Infrastructure: ``E-disk-full``, ``E-no-permission`` or ``E-cache-unusable``.
    """
    try:
        yield
    except OSError as failure:
        wanted = f"; {needed} bytes were to be written" if needed else ""
        said = f"{failure.strerror or failure}{wanted}"
        if failure.errno in _FULL:
            raise _full(path, said) from failure
        if failure.errno in _DENIED:
            hint = f"give this user write permission, or set {settings.CACHE_DIR} to a folder of its own"
            raise Infrastructure("E-no-permission", said, where=str(path), hint=hint) from failure
        raise Infrastructure(
            "E-cache-unusable", said, where=str(path), hint=f"set {settings.CACHE_DIR} to another folder"
        ) from failure


def _full(path: Path, said: str) -> Infrastructure:
    return Infrastructure("E-disk-full", said, where=str(path), hint=f"free some space, or set {settings.CACHE_DIR}")


@contextmanager
def appearing(final: Path) -> Iterator[Path]:
    """A temporary name beside a file; what is written there takes the final name when the block ends without an error.

    The content is on the disk before the name is, so that not even a power cut leaves half a file. A killed process
    leaves only the temporary name behind, which `remove_stale` recognises.
    """
    temporary = final.with_name(f".{final.name}.{secrets.token_hex(6)}.part")
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(final)
        _sync(final.parent)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def remove_stale(final: Path) -> None:
    """Remove temporary files that killed makers of a file left; only for who holds its lock."""
    start = f".{final.name}."
    for entry in final.parent.iterdir():
        if entry.name.startswith(start) and entry.name.endswith(".part"):
            with suppress(OSError):
                entry.unlink()


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a small JSON file, whole or not at all."""
    with appearing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any] | None:
    """Read a JSON object; None where there is none that is whole."""
    try:
        content = json.loads(bounded.read_text(path, bounded.MOST_KEPT_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
