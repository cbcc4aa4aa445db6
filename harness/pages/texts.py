"""Long texts of a page, each once: cases of one job share most of theirs."""

from __future__ import annotations

from harness.reporting.clean import capped

_MOST_BYTES = 16 * 1024
_LEAST_BYTES = 1024
_ALL_BYTES = 8 * 1024 * 1024


class Texts:
    """Texts by number. Number 0 is the empty one."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}

    def number(self, text: str) -> int:
        """The number of a text."""
        return self._numbers.setdefault(text, len(self._numbers))

    def listed(self) -> list[str]:
        """All of them, cut in their middle so that a page of thousands of engines' logs stays one that opens."""
        most = max(_LEAST_BYTES, min(_MOST_BYTES, _ALL_BYTES // len(self._numbers)))
        return [capped(text, most) for text in self._numbers]
