"""Who uses what is in the cache: a shared lock on its record while a job runs, and when it was last wanted.

The record is the small file that makes a model or a build count as present. Whoever wants to remove one takes its
record's lock for itself first; the kernel gives locks back when a process ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from harness.domain.errors import Infrastructure

_TRIES = 3
_HELD: list[ExitStack] = []
"""What each open `cache_held` holds, the innermost last."""


@contextmanager
def cache_held() -> Iterator[None]:
    """Models and builds that are asked for inside are not removed from the cache before the end of the block."""
    with ExitStack() as stack:
        _HELD.append(stack)
        try:
            yield
        finally:
            _HELD.remove(stack)


def want(record: Path) -> bool:
    """Note that a model or build is wanted now, and hold it where somebody asked for that.

    Args:
        record: Its record.

    Returns:
        False where it has just been removed.
    """
    try:
        descriptor = os.open(record, os.O_RDONLY)
    except FileNotFoundError:
        return False
    with ExitStack() as stack:
        stack.callback(os.close, descriptor)
        _share(descriptor)
        if not _still_there(record, descriptor):
            return False
        _stamp(record)
        if _HELD:
            _HELD[-1].push(stack.pop_all())
    return True


def obtain(get: Callable[[], tuple[Path, Path]], name: str) -> Path:
    """Something of the cache, wanted and held; had again where it was removed before it could be held.

    Args:
        get: Gives its place and its record, made or fetched first where it is not there.
        name: What it is called in an error.

    Raises:
        Infrastructure: ``E-cache-busy``.
    """
    for _ in range(_TRIES):
        place, record = get()
        if want(record):
            return place
    raise Infrastructure("E-cache-busy", "it was removed from the cache again and again", where=name)


@contextmanager
def alone_with(record: Path) -> Iterator[bool]:
    """Hold a record for oneself; yields whether nobody uses it."""
    try:
        descriptor = os.open(record, os.O_RDONLY)
    except FileNotFoundError:
        yield False
        return
    try:
        yield _lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB) and _still_there(record, descriptor)
    finally:
        os.close(descriptor)


def _share(descriptor: int) -> None:
    """Wait for whoever removes it, an instant; a file system without locks is taken as it is."""
    _lock(descriptor, fcntl.LOCK_SH)


def _lock(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how)
    except OSError:
        return False
    return True


def _still_there(record: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(record.stat(), os.fstat(descriptor))
    except OSError:
        return False


def _stamp(record: Path) -> None:
    try:
        # The clock itself: what the kernel takes of itself is as old as its last tick.
        now = time.time_ns()
        os.utime(record, ns=(now, now))
    except OSError:
        return  # a cache of another user: read, not written
