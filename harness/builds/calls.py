"""How this package has programs run: by whoever calls it, since it starts no process itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Call:
    """A program to run.

    Attributes:
        argv: Program and arguments.
        timeout_s: Seconds until it is killed.
        folder: Where it runs.
        environment: Variables beside a clean environment.
        on_line: Given each line of what it prints, while it runs; not of its complaints.
    """

    argv: tuple[str, ...]
    timeout_s: float
    folder: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    on_line: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended.

    Attributes:
        how: Empty where it ended by itself with code 0, else in words: ``exit code 2``, ``killed after 60 s``.
        stdout: What it printed.
        stderr: What it complained about; of very much the beginning and the end.
    """

    how: str
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        """It ended by itself with code 0."""
        return not self.how


class Run(Protocol):
    """Runs a program to its end, its whole tree with it; an interruption ends it too."""

    def __call__(self, call: Call) -> Ended:
        """Run it.

        Args:
            call: What to run.

        Raises:
            BadInput: ``E-executable-missing``, ``E-working-directory``, ``E-process-spec``.
            Infrastructure: What the machine refuses.
        """
        ...
