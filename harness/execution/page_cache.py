"""The model in the page cache: how much of it is there, bringing it in, dropping it.

A process that finds its model on the disk loads longer, and with a mapped file computes longer too: the first arm of a
pair would pay for the second. Memory is not locked: what the kernel takes back is seen before the next process.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.execution.cgroups import cgroup_memory_bytes
from harness.execution.machine import read
from harness.models.splits import parts_of

_WINDOW_BYTES = 1 << 30
_READ_BYTES = 16 << 20
_FAILED = ctypes.c_void_p(-1).value
_PRESENT = bytes(byte & 1 for byte in range(256))
"""The lowest bit of what the kernel says of a page tells that it is there; the others are reserved."""

_RESERVE_BYTES = 1 << 30
_RESERVE_SHARE = 0.05
"""What is left for the engine's own buffers and the system: the larger of a GiB and this share of what is free."""


def files_of(model: Path) -> tuple[Path, ...]:
    """All files of a model: the one, or those parts of a split one that are there."""
    parts = parts_of(model)
    return parts if len(parts) == 1 else tuple(part for part in parts if part.is_file())


def resident_share(files: Sequence[Path]) -> float | None:
    """Share of the files' bytes that is in the page cache; ``None`` where the kernel does not tell.

    It tells only who may write a file, or owns it; of another one it would say that all of it is there.
    """
    counts = [_resident_pages(path) for path in files if path.stat().st_size]
    known = [count for count in counts if count is not None]
    if not known or len(known) < len(counts):
        return None
    return sum(resident for resident, _ in known) / sum(pages for _, pages in known)


def fits(files: Sequence[Path]) -> bool:
    """Whether the memory that can be had holds the files twice, and a reserve.

    Twice, because an engine that repacks tensors or does not map its model holds a copy of it. What does not fit is
    left to the burn-in processes, which read it once anyway.
    """
    match = re.search(r"^MemAvailable:\s+(\d+) kB$", read("proc/meminfo"), re.MULTILINE)
    if match is None:
        return False
    free = min(int(match[1]) * 1024, cgroup_memory_bytes() or 1 << 62)
    return 2 * size_of(files) + max(_RESERVE_BYTES, _RESERVE_SHARE * free) <= free


def size_of(files: Sequence[Path]) -> int:
    """Bytes of some files together."""
    return sum(path.stat().st_size for path in files)


def bring_in(files: Sequence[Path], cpus: Sequence[int], should_stop: Callable[[], bool]) -> None:
    """Read the files, so that the page cache holds them: on the cores that will use them, whose node gets the pages.

    Args:
        files: The model.
        cpus: The engine's cores; none: whichever.
        should_stop: Asked every few MiB; true ends it.
    """
    buffer = memoryview(bytearray(_READ_BYTES))
    with _running_on(cpus):
        for path in files:
            with path.open("rb", buffering=0) as file:
                while not should_stop() and file.readinto(buffer):
                    pass


def drop(files: Sequence[Path]) -> None:
    """Take the files out of the page cache, as far as nobody has them mapped."""
    for path in files:
        with path.open("rb", buffering=0) as file:
            os.fsync(file.fileno())  # what was never written to the disk cannot be dropped
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@contextmanager
def _running_on(cpus: Sequence[int]) -> Iterator[None]:
    """Bind this thread meanwhile; where that is not allowed it runs where it may."""
    before = os.sched_getaffinity(0)
    with suppress(OSError):
        if cpus:
            os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _resident_pages(path: Path) -> tuple[int, int] | None:
    """Pages of a file in the page cache, and all its pages."""
    with path.open("rb") as file:
        state = os.fstat(file.fileno())
        if os.geteuid() not in (0, state.st_uid) and not os.access(path, os.W_OK):
            return None
        resident = 0
        for offset in range(0, state.st_size, _WINDOW_BYTES):
            flags = _present_flags(file.fileno(), offset, min(_WINDOW_BYTES, state.st_size - offset))
            if flags is None:
                return None
            resident += flags.translate(_PRESENT).count(1)
        return resident, -(-state.st_size // mmap.PAGESIZE)


def _present_flags(descriptor: int, offset: int, length: int) -> bytes | None:
    """One byte for each page of a window of a file, from ``mincore(2)``; ``None`` where it refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    address = libc.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, offset)
    if address == _FAILED:
        return None
    try:
        flags = ctypes.create_string_buffer(-(-length // mmap.PAGESIZE))
        return flags.raw if libc.mincore(address, length, flags) == 0 else None
    finally:
        libc.munmap(address, length)
