"""One measurement per host at a time, whoever runs it: two at once would each measure the other.

The lock is an advisory file lock, so it goes with its process, however that ends. Its folder is the same for all users
of a host: ``MOE_LOCK_DIR``, or ``/run/lock`` where everybody may write there, or ``/tmp``. Containers have their own
``/run/lock``: give those that share a host one ``MOE_LOCK_DIR``.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from harness import settings
from harness.domain.errors import Infrastructure

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOG = logging.getLogger(__name__)
_LOCK_NAME = "moe-measurement.lock"
_HOLDER_NAME = "moe-measurement.holder"
_EVERYBODY = 0o666
_POLL_S = 0.1


def lock_dir() -> Path:
    """The folder of the lock, chosen by facts that are the same for all users of the host."""
    if declared := settings.lock_dir():
        return declared
    for shared in (Path("/run/lock"), Path("/tmp")):  # noqa: S108 - must be the shared one, TMPDIR differs between users
        with suppress(OSError):
            if shared.stat().st_mode & stat.S_IWOTH:
                return shared
    return Path(tempfile.gettempdir())


@contextmanager
def measurement_lock(timeout_s: float, purpose: str) -> Iterator[None]:
    """Hold the host's measurement lock.

    Args:
        timeout_s: Seconds to wait for it; 0 tries once.
        purpose: What for, e.g. a job id; shown to those who wait.

    Raises:
        Infrastructure: E-host-busy: another measurement did not end in time; the message says whose.
            E-host-lock: the lock can't be made.
    """
    folder = lock_dir()
    lock = _lock(folder)
    _acquire(lock, folder / _HOLDER_NAME, timeout_s)
    try:
        _write_holder(folder / _HOLDER_NAME, purpose)
        yield
    finally:
        _clear_holder(folder / _HOLDER_NAME)
        lock.release()


def describe_holder(folder: Path | None = None) -> str:
    """Say who holds the lock, as far as is known: a killed process leaves its name until the next takes over."""
    try:
        holder = json.loads((folder or lock_dir()).joinpath(_HOLDER_NAME).read_text(encoding="utf-8"))
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder["since"]))
        return f"process {int(holder['pid'])} since {since} for {str(holder['purpose'])[:200]!r}"
    except (OSError, ValueError, KeyError, TypeError):
        return "an unknown process"


def _lock(folder: Path) -> FileLock:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_lock(folder, error) from error
    # Not per thread: a job is a generator, and may be closed in another thread than the one that began it.
    return FileLock(folder / _LOCK_NAME, mode=_EVERYBODY, thread_local=False)


def _acquire(lock: FileLock, holder: Path, timeout_s: float) -> None:
    try:
        with suppress(Timeout):
            lock.acquire(timeout=0)
            return
        if timeout_s > 0:
            _LOG.info("waiting up to %.0f s for the host: %s measures", timeout_s, describe_holder(holder.parent))
        lock.acquire(timeout=max(0.0, timeout_s), poll_interval=_POLL_S)
    except Timeout:
        raise Infrastructure(
            "E-host-busy",
            f"another measurement runs on this host: {describe_holder(holder.parent)}; waited {timeout_s:.0f} s",
            hint="run again when it is done",
            where=lock.lock_file,
        ) from None
    except OSError as error:
        raise _cannot_lock(holder.parent, error) from error


def _cannot_lock(folder: Path, error: OSError) -> Infrastructure:
    return Infrastructure(
        "E-host-lock",
        f"the host's measurement lock can't be made: {error}",
        hint="set MOE_LOCK_DIR to a folder that all users of this host can write",
        where=str(folder),
    )


def _write_holder(path: Path, purpose: str) -> None:
    """Tell others who holds the lock; where that fails they learn less, which is no reason not to measure."""
    with suppress(OSError):
        text = json.dumps({"pid": os.getpid(), "since": time.time(), "purpose": purpose})
        fd = _open_shared(path)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            with suppress(OSError):  # another user's file, left by a killed process
                os.fchmod(fd, _EVERYBODY)
            file.write(text)


def _open_shared(path: Path) -> int:
    """Open for writing what may be another user's, in a sticky folder, without following a link planted there."""
    try:
        # Without O_CREAT: kernels forbid it (protected_regular) on other users' files in sticky folders.
        return os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _EVERYBODY)


def _clear_holder(path: Path) -> None:
    """Empty the file rather than remove it: in a sticky folder only its owner may remove it."""
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW))
