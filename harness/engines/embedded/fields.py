"""Fields of a request, read one by one and refused by the name of their key."""

from __future__ import annotations

from collections.abc import Mapping

from .errors import EmbeddedError

_LIMIT = 1 << 24
"""Above every number that makes sense, below what overflows a C int."""


def refused(where: str, what: str) -> EmbeddedError:
    """The error of a key that is not as it should be: ``E-request``."""
    return EmbeddedError("E-request", f"{where}: {what}")


def an_object(where: str, value: object, keys: frozenset[str]) -> Mapping[str, object]:
    """An object that has no other keys than the known ones."""
    if not isinstance(value, dict):
        raise refused(where, f"expected an object, got {type(value).__name__}")
    unknown = sorted(value.keys() - keys)
    if unknown:
        raise refused(where, f"unknown key {', '.join(unknown)}; known: {', '.join(sorted(keys))}")
    return value


def items(where: str, fields: Mapping[str, object]) -> list[tuple[int, object]]:
    """A list, each entry with its index; empty where the key is not there."""
    value = fields.get(where, [])
    if not isinstance(value, list):
        raise refused(where, "expected a list")
    return list(enumerate(value))


def text(where: str, value: object) -> str:
    """A text that is not empty."""
    if not value:
        raise refused(where, f"expected a text, got {value!r}")
    return any_text(where, value)


def any_text(where: str, value: object) -> str:
    """A text, which may be empty."""
    if not isinstance(value, str) or "\0" in value:
        raise refused(where, f"expected a text, got {value!r}")
    return value


def number(where: str, value: object, *, low: int, high: int = _LIMIT) -> int:
    """A whole number within limits."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise refused(where, f"expected a whole number from {low} to {high}, got {value!r}")
    return value


def share(where: str, value: object) -> float:
    """A number from 0 to below 1."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1:
        raise refused(where, f"expected a number from 0 to below 1, got {value!r}")
    return float(value)
