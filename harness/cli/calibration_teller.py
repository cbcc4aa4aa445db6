"""What a calibration does, told on standard error while it does it."""

from __future__ import annotations

from typing import Self

from rich.console import Console

from harness.execution.events import JobEvent, Progress
from harness.running.log_lines import JobLines, LogLines


class Teller:
    """Says on standard error what is being done: on a terminal in one live line, else a line for each thing."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._status = self._console.status("") if self._console.is_terminal else None
        self._said = ""
        self._log = JobLines(LogLines(self._print))

    def __enter__(self) -> Self:
        if self._status:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status:
            self._status.stop()

    def take(self, doing: str, event: JobEvent | None) -> None:
        """Show what an event changes."""
        if self._status:
            if isinstance(event, Progress):
                self._status.update(f"{doing}: {event.message}")
        else:
            if doing != self._said:
                self._print(doing)
            self._log.take(event)
        self._said = doing

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)
