"""What a command does that takes a while, on standard error: one live line on a terminal, else a line now and then."""

from __future__ import annotations

from typing import Self

from rich.console import Console
from rich.text import Text

from harness.reporting.clean import one_line
from harness.running.interrupts import Interrupts
from harness.running.log_lines import LogLines


class Doing:
    """A context manager; the live line is gone at its end.

    Inside, TERM, by which CI systems cancel, ends the work as Ctrl-C does: nothing half-made is left.
    """

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        live = self._console.is_terminal and not self._console.is_dumb_terminal
        self._status = self._console.status("") if live else None
        self._log = LogLines(self.say)
        self._interrupts = Interrupts()

    def __enter__(self) -> Self:
        self._interrupts.end_on_term()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()
        self._interrupts.restore()

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self._console.print(Text(one_line(text), style="dim"), soft_wrap=True)

    def tell(self, text: str) -> None:
        """Show what is done now."""
        if self._status is None:
            self._log.tell(text)
        else:
            self._status.update(Text(one_line(text)))
            self._status.start()
