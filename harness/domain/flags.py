"""A complete set of flags by meaning; the spelling per fork and tool is the engines' business."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

FlagValue: TypeAlias = int | float | str


@dataclass(frozen=True, slots=True)
class Flags:
    """Flags by canonical name, sorted, each with an explicit value.

    Attributes:
        items: Sorted pairs of name and value.
    """

    items: tuple[tuple[str, FlagValue], ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, FlagValue]) -> Flags:
        """Make flags of a mapping; booleans become 0 and 1, so that ``true`` and ``1`` are one arm."""
        plain = {name: int(value) if isinstance(value, bool) else value for name, value in values.items()}
        return cls(tuple(sorted(plain.items())))

    def __iter__(self) -> Iterator[tuple[str, FlagValue]]:
        return iter(self.items)

    def get(self, name: str) -> FlagValue | None:
        """The value of a flag, or ``None`` where the set does not have it."""
        return dict(self.items).get(name)

    def as_dict(self) -> dict[str, FlagValue]:
        """A new dictionary of the flags."""
        return dict(self.items)

    def merged(self, values: Mapping[str, FlagValue]) -> Flags:
        """These flags with some values replaced or added."""
        return Flags.of({**self.as_dict(), **values})

    def differing(self, other: Flags) -> tuple[str, ...]:
        """Names of the flags whose values differ or that only one of the two has, sorted."""
        mine, theirs = self.as_dict(), other.as_dict()
        return tuple(sorted(name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)))
