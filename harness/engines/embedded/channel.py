"""The two ways out of the child: JSON lines on the real standard output, everything else on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Mapping
from typing import TextIO

_STDOUT, _STDERR = 1, 2
_LEVEL_DEBUG, _LEVEL_INFO, _LEVEL_ERROR, _LEVEL_CONTINUED = 1, 2, 4, 5
"""``enum ggml_log_level``; both forks number it alike."""
_KEPT_ERRORS = 5


class Channel:
    """JSON lines, one object each, flushed as soon as it exists."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @classmethod
    def take_stdout(cls) -> Channel:
        """Keep the real standard output for the lines and send file descriptor 1 to standard error.

        Both libraries print with C's ``printf`` here and there: after this such a print cannot tear a line.
        """
        sys.stdout.flush()
        real = os.dup(_STDOUT)
        os.dup2(_STDERR, _STDOUT)
        return cls(os.fdopen(real, "w", encoding="utf-8"))

    def emit(self, event: str, fields: Mapping[str, object]) -> None:
        """Write one line.

        Raises:
            ValueError: A field holds NaN or infinity, which JSON has no word for.
        """
        self._stream.write(json.dumps({"event": event, **fields}, allow_nan=False) + "\n")
        self._stream.flush()


class EngineLog:
    """What the library logs: from info level up it goes to standard error, the last errors are kept for messages.

    Args:
        stream: Standard error.
        debug: Whether what is at debug level goes there too.
    """

    def __init__(self, stream: TextIO, *, debug: bool = False) -> None:
        self._stream = stream
        self._least = _LEVEL_DEBUG if debug else _LEVEL_INFO
        self._level = _LEVEL_INFO
        self._errors: deque[str] = deque(maxlen=_KEPT_ERRORS)

    def __call__(self, level: int, text: bytes | None, _user_data: int | None) -> None:
        """Take one piece of log, as ``ggml_log_callback`` gives it."""
        # A continued piece belongs to the level of the piece before it.
        if level != _LEVEL_CONTINUED:
            self._level = level
        if self._level < self._least:
            return
        line = (text or b"").decode("utf-8", errors="replace")
        if self._level == _LEVEL_ERROR and line.strip(". \n"):
            self._errors.append(line.strip())
        self._stream.write(line)
        self._stream.flush()

    def last_errors(self) -> str:
        """The last error lines, to be put after a message; empty where there were none."""
        return " | ".join(self._errors)
