"""One at a time for each thing in the cache: who wants what another one is fetching or making waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from harness.domain.errors import Infrastructure
from harness.models.storage import disk_errors, make_folder


def lock_of(place: Path) -> Path:
    """The lock file of who fetches or makes a file or folder of the cache."""
    return place.with_name(f"{place.name}.lock")


@contextmanager
def turn(place: Path, waiting: Callable[[], None], seconds: float) -> Iterator[None]:
    """Hold the lock of a place in the cache.

    Args:
        place: What is to be fetched or made; the folder that it lies in is made if it is not there.
        waiting: Called once if somebody else has to be waited for.
        seconds: How long they are waited for.

    Raises:
        Infrastructure: ``E-cache-busy``; faults of the disk.
    """
    make_folder(place.parent)
    lock = FileLock(lock_of(place))
    with disk_errors(place):
        try:
            lock.acquire(timeout=0)
        except Timeout:
            waiting()
            try:
                lock.acquire(timeout=seconds)
            except Timeout as busy:
                message = f"another process has been busy with it for more than {seconds:.0f} s"
                hint = "see what that process does"
                raise Infrastructure("E-cache-busy", message, hint=hint, where=str(place)) from busy
    try:
        yield
    finally:
        lock.release()
