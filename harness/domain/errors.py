"""The error tree: every error a user can meet, with its stable slug and the exit code it leads to.

Tree::

    HarnessError            never raised itself
    ├── BadInput            exit 2: the user can mend it (matrix, flag, file, argument)
    └── Infrastructure      exit 3: the machine, the cluster or the disk is at fault

A message says what happened, ``where`` (file and key, case id, node) it happened, and the ``hint`` what to do.
"""

from __future__ import annotations

from typing import ClassVar

EXIT_OK = 0
EXIT_FINDING = 1
EXIT_BAD_INPUT = 2
EXIT_UNDECIDED = 3
EXIT_INTERRUPTED = 130


class HarnessError(Exception):
    """An error with a stable slug, a place and a remedy.

    Args:
        slug: Stable word such as ``E-model-does-not-fit``; the same in text and JSON.
        message: What happened, what was expected and what was found.
        hint: What to do about it.
        where: File and key, case id, or node.
    """

    exit_code: ClassVar[int] = EXIT_UNDECIDED

    def __init__(self, slug: str, message: str, *, hint: str = "", where: str = "") -> None:
        super().__init__(slug, message, hint, where)
        self.slug = slug
        self.message = message
        self.hint = hint
        self.where = where

    def __reduce__(self) -> tuple[object, ...]:
        """Survive pickling (workers of a cluster send errors home) although the constructor has keyword arguments."""
        return (_rebuild, (type(self), self.slug, self.message, self.hint, self.where))

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        remedy = f" ({self.hint})" if self.hint else ""
        return f"{self.slug}: {place}{self.message}{remedy}"

    def as_json(self) -> dict[str, str]:
        """The error as the commands print it under ``--format json``."""
        return {"slug": self.slug, "message": self.message, "hint": self.hint, "where": self.where}


class BadInput(HarnessError):  # noqa: N818 - reads as what it is at the raise
    """Something the user gave is wrong: exit code 2."""

    exit_code = EXIT_BAD_INPUT


class Infrastructure(HarnessError):  # noqa: N818 - reads as what it is at the raise
    """The machine, the cluster or the disk is at fault: exit code 3."""

    exit_code = EXIT_UNDECIDED


def _rebuild(kind: type[HarnessError], slug: str, message: str, hint: str, where: str) -> HarnessError:
    return kind(slug, message, hint=hint, where=where)
