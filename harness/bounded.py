"""Files that people give us, read whole where they are not larger than anything of their kind.

Also what has no size, such as a pipe or a device, is read so far and no further. What is too large is told as the
operating system would: who reads a file already says why it could not be read.
"""

from __future__ import annotations

import errno
import os
import tomllib
from pathlib import Path
from typing import Any

MOST_BYTES = 2 * 2**20
"""Of a file that somebody writes by hand; the parser of TOML takes seconds for one so large."""
MOST_KEPT_BYTES = 64 * 2**20
"""Of a file that a program writes and reads as a whole."""


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """The bytes of a file.

    Args:
        path: The file.
        most: How many it may have.

    Raises:
        OSError: It can't be read; with ``EFBIG`` where it has more.
    """
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        size = f"{most // 2**20} MiB" if most >= 2**20 else f"{most} bytes"
        raise OSError(errno.EFBIG, f"{os.strerror(errno.EFBIG)}, more than {size}", f"{path}")
    return content


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """The text of a file in UTF-8, its line breaks as on Unix.

    Args:
        path: The file.
        most: How many bytes it may have.

    Raises:
        OSError: As of `read_bytes`.
        UnicodeDecodeError: It is no text.
    """
    return read_bytes(path, most).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def read_toml(path: Path, most: int = MOST_BYTES) -> dict[str, Any]:
    """The keys of a TOML file.

    Args:
        path: The file.
        most: How many bytes it may have.

    Raises:
        OSError, UnicodeDecodeError: As of `read_text`.
        tomllib.TOMLDecodeError: It is no TOML, or beyond the limits of Python: of nesting, of digits.
    """
    text = read_text(path, most)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError("tables or lists lie too deep in one another") from None
    except ValueError as failure:
        raise tomllib.TOMLDecodeError(str(failure)) from failure
