"""Reading the output files of a supervised process: bounded text, and lines while they are written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_CHUNK_BYTES = 1 << 20


def bounded_text(path: Path, max_bytes: int, *, head_bytes: int | None = None) -> str:
    """Read a text file, leaving out its middle where it is longer than allowed.

    Args:
        path: File to read; bytes that are no UTF-8 become replacement characters.
        max_bytes: How much of it to keep.
        head_bytes: How much of that from the beginning; a quarter by default. The end says why a process died.

    Returns:
        The text, with one line in place of what was left out.

    Raises:
        OSError: The file can't be read.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= max_bytes:
            return file.read().decode("utf-8", "replace")
        keep_head = max_bytes // 4 if head_bytes is None else head_bytes
        keep_tail = max_bytes - keep_head
        head = file.read(keep_head)
        file.seek(size - keep_tail)
        tail = file.read(keep_tail)
    note = f"\n[... {size - max_bytes} bytes left out ...]\n".encode()
    return (head + note + tail).decode("utf-8", "replace")


class LineTail:
    """Hands over the complete lines of a growing file.

    Args:
        path: File that exists or will; it only grows.
        deliver: Called with each line, without its end.
    """

    def __init__(self, path: Path, deliver: Callable[[str], None]) -> None:
        self._path = path
        self._deliver = deliver
        self._fd = -1
        self._rest = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def advance(self) -> None:
        """Deliver the lines that were completed since the last call."""
        if self._fd < 0:
            try:
                self._fd = os.open(self._path, os.O_RDONLY)
            except FileNotFoundError:
                return
        while data := os.read(self._fd, _CHUNK_BYTES):
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                self._deliver(_text(line))

    def finish(self) -> None:
        """Deliver what is left, the last line without an end included."""
        self.advance()
        if self._rest:
            last, self._rest = self._rest, b""
            self._deliver(_text(last))


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode("utf-8", "replace")
