"""The one error of the child: a stable slug, a message and the exit code it ends with."""

from __future__ import annotations

EXIT_INTERNAL = 1
"""A defect of this package: something nobody foresaw."""
EXIT_REFUSED = 2
"""The request, a flag or the wheel was refused before anything was loaded."""
EXIT_LOAD = 3
"""The model or its context could not be made."""
EXIT_DECODE = 4
"""The library returned an error while it worked: there is no speed and no output to report."""


class EmbeddedError(Exception):
    """What ends a child, as it is told to the parent.

    Attributes:
        slug: Stable word such as ``E-flag-unknown``.
        message: What happened, where, what was expected and what to do.
        exit_code: The child's exit status.
        facts: What else the parent is told.
    """

    def __init__(self, slug: str, message: str, *, exit_code: int = EXIT_REFUSED) -> None:
        super().__init__(slug, message)
        self.slug = slug
        self.message = message
        self.exit_code = exit_code
        self.facts: dict[str, int] = {}

    def __str__(self) -> str:
        return f"{self.slug}: {self.message}"
