"""The folder of the host's locks, and files in it that all users of the host share."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from harness import settings

EVERYBODY = 0o666


def lock_dir() -> Path:
    """The folder of the lock, chosen by facts that are the same for all users of the host."""
    if declared := settings.lock_dir():
        return declared
    for shared in (Path("/run/lock"), Path("/tmp")):  # noqa: S108 - must be the shared one, TMPDIR differs between users
        with suppress(OSError):
            if shared.stat().st_mode & stat.S_IWOTH:
                return shared
    return Path(tempfile.gettempdir())


def open_shared(path: Path) -> int:
    """Open for writing what may be another user's, in a sticky folder, without following a link planted there."""
    try:
        # Without O_CREAT: kernels forbid it (protected_regular) on other users' files in sticky folders.
        return os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        pass
    with suppress(FileExistsError):
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, EVERYBODY)
        os.fchmod(made, EVERYBODY)  # whatever the umask
        return made
    return os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC)  # made by another one meanwhile


def text_of(path: Path) -> str:
    """What a shared file says.

    Raises:
        OSError: It can't be read.
        ValueError: It is no text.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), encoding="utf-8") as file:
        return file.read(10_000)
