"""One measurement per host at a time, whoever runs it: two at once would each measure the other.

The lock is an advisory file lock, so it goes with its process, however that ends. Its folder is the same for all users
of a host: ``MOE_LOCK_DIR``, or ``/run/lock`` where everybody may write there, or ``/tmp``. Containers have their own
``/run/lock``: give those that share a host one ``MOE_LOCK_DIR``.
"""

from __future__ import annotations

import json
import logging
import os
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from harness.domain.errors import Infrastructure
from harness.execution.host_hold import holder, host_for_measuring
from harness.execution.lock_files import EVERYBODY, lock_dir, open_shared

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOG = logging.getLogger(__name__)
_LOCK_NAME = "moe-measurement.lock"
_HOLDER_NAME = "moe-measurement.holder"
_POLL_S = 0.1


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
    began = time.monotonic()
    host = _host(folder, timeout_s)
    try:
        lock = _lock(folder)
        _acquire(lock, folder / _HOLDER_NAME, max(0.0, timeout_s - (time.monotonic() - began)))
        try:
            _write_holder(folder / _HOLDER_NAME, purpose)
            yield
        finally:
            _clear_holder(folder / _HOLDER_NAME)
            lock.release()
    finally:
        if host is not None:
            os.close(host)


def _host(folder: Path, timeout_s: float) -> int | None:
    """The host itself, unless a hold that we run under has it."""
    try:
        with suppress(Infrastructure):
            return host_for_measuring(0)
        if timeout_s > 0:
            _LOG.info("waiting up to %.0f s for the host: %s measures", timeout_s, describe_holder(folder))
        return host_for_measuring(timeout_s)
    except Infrastructure as error:
        if error.slug != "E-host-busy":
            raise
        raise _busy(folder, timeout_s) from None


def describe_holder(folder: Path | None = None) -> str:
    """Say who holds the lock, as far as is known: a killed process leaves its name until the next takes over."""
    try:
        said = json.loads((folder or lock_dir()).joinpath(_HOLDER_NAME).read_text(encoding="utf-8"))
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(said["since"]))
        return f"process {int(said['pid'])} since {since} for {str(said['purpose'])[:200]!r}"
    except (OSError, ValueError, KeyError, TypeError):
        held = holder()
        return held.text if held else "an unknown process"


def _busy(folder: Path, timeout_s: float) -> Infrastructure:
    return Infrastructure(
        "E-host-busy",
        f"another measurement runs on this host: {describe_holder(folder)}; waited {timeout_s:.0f} s",
        hint="run again when it is done",
        where=str(folder / _LOCK_NAME),
    )


def _lock(folder: Path) -> FileLock:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_lock(folder, error) from error
    # Not per thread: a job is a generator, and may be closed in another thread than the one that began it.
    return FileLock(folder / _LOCK_NAME, mode=EVERYBODY, thread_local=False)


def _acquire(lock: FileLock, holder_file: Path, timeout_s: float) -> None:
    try:
        with suppress(Timeout):
            lock.acquire(timeout=0)
            return
        if timeout_s > 0:
            _LOG.info("waiting up to %.0f s for the host: %s measures", timeout_s, describe_holder(holder_file.parent))
        lock.acquire(timeout=max(0.0, timeout_s), poll_interval=_POLL_S)
    except Timeout:
        raise _busy(holder_file.parent, timeout_s) from None
    except OSError as error:
        raise _cannot_lock(holder_file.parent, error) from error


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
        fd = open_shared(path)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)


def _clear_holder(path: Path) -> None:
    """Empty the file rather than remove it: in a sticky folder only its owner may remove it."""
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW))
