"""Tests of a flag's value, as a pitfall's file writes them.

``1`` or ``"q5_1"`` is that value, a list is any of its values, ``"*"`` is every value that is said. A text may begin
with a comparison (``">0"``, ``"<=4096"``), with ``!=`` (any other value), or with ``~`` (a pattern that it holds).
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.domain.flags import FlagValue

_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
ANY = "*"


@dataclass(frozen=True, slots=True)
class ValueTest:
    """What a value has to be.

    Attributes:
        written: The alternatives, as written: one of them is enough.
    """

    written: tuple[str, ...]

    def __call__(self, value: FlagValue) -> bool:
        """Whether a value passes."""
        return any(_passes(written, str(value)) for written in self.written)

    def __str__(self) -> str:
        return " or ".join(_in_words(written) for written in self.written)


def read_test(found: Any) -> ValueTest:
    """Read a test.

    Raises:
        ValueError: If it is none.
    """
    listed = found if isinstance(found, list) else [found]
    if not listed or not all(isinstance(item, str | int | float) for item in listed):
        raise ValueError(f"expected a value, a test of one, or a list of them, found {found!r}")
    written = tuple(str(int(item)) if isinstance(item, bool) else str(item) for item in listed)
    for each in written:
        _require_readable(each)
    return ValueTest(written)


def _require_readable(written: str) -> None:
    comparison = _comparison_of(written)
    if comparison and _number(written.removeprefix(comparison)) is None:
        raise ValueError(f"{written!r} compares with no number")
    if written.startswith("~"):
        try:
            re.compile(written[1:])
        except re.error as wrong:
            raise ValueError(f"{written!r} is no pattern: {wrong}") from wrong


def _comparison_of(written: str) -> str:
    return next((word for word in _COMPARISONS if written.startswith(word)), "")


def _passes(written: str, value: str) -> bool:
    if written == ANY:
        return True
    if written.startswith("!="):
        return value != written[2:]
    if written.startswith("~"):
        return re.search(written[1:], value) is not None
    if comparison := _comparison_of(written):
        number, bound = _number(value), _number(written.removeprefix(comparison))
        return number is not None and bound is not None and _COMPARISONS[comparison](number, bound)
    return value == written


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _in_words(written: str) -> str:
    if written == ANY:
        return "any value"
    if written.startswith("!="):
        return f"not {written[2:]}"
    return f"matching '{written[1:]}'" if written.startswith("~") else written
