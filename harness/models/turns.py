"""One at a time for each thing in the cache: who wants what another one is fetching or making waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from harness.domain.errors import Infrastructure
from harness.domain.halting import ShouldStop, go_on, never
from harness.models.storage import disk_errors, make_folder

_SLICE_S = 0.2


def lock_of(place: Path) -> Path:
    """The lock file of who fetches or makes a file or folder of the cache."""
    return place.with_name(f"{place.name}.lock")


@contextmanager
def turn(place: Path, waiting: Callable[[], None], seconds: float, should_stop: ShouldStop = never) -> Iterator[None]:
    """Hold the lock of a place in the cache.

    Args:
        place: What is to be fetched or made; the folder that it lies in is made if it is not there.
        waiting: Called once if somebody else has to be waited for.
        seconds: How long they are waited for.
        should_stop: Ends the waiting.

    Raises:
        Infrastructure: ``E-cache-busy``; faults of the disk.
        Stopped: While somebody else was waited for.
    """
    make_folder(place.parent)
    lock = FileLock(lock_of(place))
    with disk_errors(place):
        try:
            lock.acquire(timeout=0)
        except Timeout:
            waiting()
            if not _acquired(lock, seconds, should_stop):
                message = f"another process has been busy with it for more than {seconds:.0f} s"
                hint = "see what that process does"
                raise Infrastructure("E-cache-busy", message, hint=hint, where=str(place)) from None
    try:
        yield
    finally:
        lock.release()


def _acquired(lock: FileLock, seconds: float, should_stop: ShouldStop) -> bool:
    """Wait for a lock, in slices: who waits must still be stoppable."""
    give_up = time.monotonic() + seconds
    while (left := give_up - time.monotonic()) > 0:
        go_on(should_stop)
        with suppress(Timeout):
            lock.acquire(timeout=min(_SLICE_S, left))
            return True
    return False
