"""What a log is told of long work: a line now and then, in place of a line that is drawn over itself."""

from __future__ import annotations

import time
from collections.abc import Callable

from harness.execution.events import JobEvent, Progress

FIRST_S = 10.0
"""What is over sooner is not worth a line."""
EVERY_S = 30.0


class LogLines:
    """Says what goes on: after 10 seconds, then every 30.

    Args:
        say: Prints a line.
        clock: Seconds, monotonic; replaced in tests.
    """

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._clock = clock
        self._next: float | None = None

    def tell(self, doing: str) -> None:
        """Say what is done now, if it is time; empty where nothing is worth a line."""
        now = self._clock()
        if not doing:
            self._next = None
        elif self._next is None:
            self._next = now + FIRST_S
        elif now >= self._next:
            self._next = now + EVERY_S
            self._say(doing)


class JobLines:
    """The same for the jobs of a run: what models and builds they make, fetch and read.

    Args:
        lines: Where to.
    """

    def __init__(self, lines: LogLines) -> None:
        self._lines = lines
        self._doing: dict[str, str] = {}

    def take(self, event: JobEvent | None) -> None:
        """Take an event, or ``None`` while nothing happens."""
        if isinstance(event, Progress) and event.preparing:
            self._doing[event.job] = event.message
        elif event is not None:
            self._doing.pop(event.job, None)
        self._lines.tell("; ".join(self._doing.values()))
