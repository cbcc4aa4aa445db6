"""Signals during a run: TERM ends it as Ctrl-C does, and nothing keeps the reports from being written."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class Interrupts:
    """Changes what signals do until ``restore``. Outside the main thread, where Python forbids it, nothing changes."""

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}

    def end_on_term(self) -> None:
        """Let TERM, by which CI systems cancel, end a run as Ctrl-C does."""
        self._set(signal.SIGTERM, signal.default_int_handler)

    def call(self, action: Callable[[], None]) -> None:
        """Let the first of either call something instead of raising; the next one raises as Ctrl-C does.

        An exception in the middle of taking an event from a queue would lose it.
        """

        def handle(number: int, frame: FrameType | None) -> None:
            del number, frame
            for each in (signal.SIGINT, signal.SIGTERM):
                signal.signal(each, signal.default_int_handler)
            action()

        for number in (signal.SIGINT, signal.SIGTERM):
            self._set(number, handle)

    def ignore(self) -> None:
        """Ignore both: ending takes seconds, and has limits of its own."""
        for number in (signal.SIGINT, signal.SIGTERM):
            self._set(number, signal.SIG_IGN)

    def restore(self) -> None:
        """Let signals do what they did before. May be called twice."""
        while self._before:
            signal.signal(*self._before.popitem())

    def _set(self, number: signal.Signals, handler: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            self._before.setdefault(number, signal.signal(number, handler))
