"""Where a matrix's keys were written: files extend one another, and an error names the file to open."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

KeyPath = Sequence[str | int]

_BARE_KEY = re.compile(r"[A-Za-z0-9_.-]+")
"""What is shown as it is; other keys are quoted and escaped, as in TOML: they may hold line breaks."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where one key or list entry was written.

    Attributes:
        file: The file, as a person would name it.
        index: Its index in that file's list; ``None`` for a key of a table.
    """

    file: str
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """The files behind one matrix.

    Attributes:
        file: The file that was asked for.
        places: Where each ``(section, key or merged index)`` came from, where that is not simply ``file``.
    """

    file: str = "matrix"
    places: Mapping[tuple[str, str | int], Place] = field(default_factory=dict)

    def at(self, *path: str | int) -> str:
        """Name a key as ``file: contrasts[1].factor``.

        Args:
            path: Keys and list indices of the merged matrix, outermost first.
        """
        place = self.places.get((str(path[0]), path[1])) if len(path) > 1 else None
        if place is None:
            return f"{self.file}: {_joined(path)}"
        second = path[1] if place.index is None else place.index
        return f"{place.file}: {_joined((path[0], second, *path[2:]))}"


def _joined(path: KeyPath) -> str:
    shown = ""
    for part in path:
        if isinstance(part, int):
            shown += f"[{part}]"
        else:
            key = part if _BARE_KEY.fullmatch(part) else json.dumps(part, ensure_ascii=False)
            shown += f".{key}" if shown else key
    return shown
