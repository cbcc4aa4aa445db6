"""Ranges of build numbers: ``">=5318"``, ``">=5318, <6000"``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_BOUND = re.compile(r"(>=|<=|==|!=|=|>|<)\s*(\d{1,9})")
_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True, slots=True)
class NumberRange:
    """Bounds that a number meets all of.

    Attributes:
        bounds: Comparison and number.
    """

    bounds: tuple[tuple[str, int], ...]

    def __contains__(self, number: int) -> bool:
        return all(_COMPARISONS[word](number, bound) for word, bound in self.bounds)

    def __str__(self) -> str:
        return ", ".join(f"{word}{bound}" for word, bound in self.bounds)


def read_range(found: Any) -> NumberRange:
    """Read a range.

    Raises:
        ValueError: If it is none.
    """
    parts = [_BOUND.fullmatch(part.strip()) for part in found.split(",")] if isinstance(found, str) else [None]
    bounds = tuple((part[1], int(part[2])) for part in parts if part)
    if len(bounds) < len(parts):
        raise ValueError(f'expected a range like ">=5318" or ">=5318, <6000", found {found!r}')
    return NumberRange(bounds)
