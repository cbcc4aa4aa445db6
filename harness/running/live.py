"""One live line on a terminal: how many cases are decided, what runs where, how long it may take.

Elsewhere a plain line now and then, while models and builds are made and fetched.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console
from rich.status import Status

from harness.execution.events import Finished, JobEvent, ProcessDone, Progress, Started
from harness.running.log_lines import JobLines, LogLines

_FEW = 3
"""Process starts before a guess is worth printing."""


class LiveLine:
    """A line below the reporter's output, drawn only on a terminal.

    It hides itself while something else is printed, so that it never tears another line.

    Args:
        stream: Where the reporter writes.
        cases: Cases in all.
        processes: Process starts in all, at most.
        enabled: Off in CI and under ``-q`` or ``--pdb``.
        say: Prints a plain line where no live one is drawn; ``None``: nothing is printed.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        cases: int,
        processes: int,
        enabled: bool,
        say: Callable[[str], None] | None = None,
    ) -> None:
        console = Console(file=stream, highlight=False)
        self._status: Status | None = Status("", console=console) if enabled and console.is_terminal else None
        self._log = JobLines(LogLines(say)) if say is not None and self._status is None else None
        self._cases, self._decided = cases, 0
        self._processes, self._ended = processes, 0
        self._began = time.monotonic()
        self._hosts: dict[str, str] = {}
        self._doing: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hide()

    def take(self, event: JobEvent | None) -> None:
        """Show what an event changes."""
        if isinstance(event, Started):
            self._hosts[event.job] = event.host
        elif isinstance(event, Progress):
            self._doing[event.job] = event.message
        elif isinstance(event, ProcessDone):
            self._ended += 1
        elif isinstance(event, Finished):
            self._hosts.pop(event.job, None)
            self._doing.pop(event.job, None)
        if self._log is not None:
            self._log.take(event)
        if self._status is not None:
            self._status.update(self.text())
            self._status.start()

    def case_decided(self) -> None:
        """Count a case and take the line away until the next event: its outcome is printed now."""
        self._decided += 1
        self._hide()

    def text(self) -> str:
        """The line's text."""
        running = "; ".join(f"{text} on {self._hosts.get(job, '?')}" for job, text in self._doing.items())
        return f"{self._decided} of {self._cases} cases{self._left()}  {running}"

    def _left(self) -> str:
        """Time left, guessed from the process starts so far; nothing before there are some."""
        if self._ended < _FEW:
            return ""
        left = max(0, self._processes - self._ended)
        seconds = (time.monotonic() - self._began) / self._ended * left
        return f", about {seconds / 60:.0f} min left" if seconds >= 90 else f", about {seconds:.0f} s left"  # noqa: PLR2004

    def _hide(self) -> None:
        if self._status is not None:
            self._status.stop()
