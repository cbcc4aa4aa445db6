"""How much one matrix may ask for: a product of long axes is soon larger than any memory, and than any night."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TypeVar

from harness.domain.errors import BadInput

MOST_ARMS = 100_000
"""Combinations of the axes, before anything is excluded: each is looked at."""
MOST_CASES = 200_000

T = TypeVar("T")
_HINT = "take values out of the axes, or make several matrices"


def require_few_arms(combinations: int, file: str) -> None:
    """Refuse a product of axes before it is gone through.

    Args:
        combinations: How many it has.
        file: The matrix.

    Raises:
        BadInput: ``E-matrix-too-large``.
    """
    if combinations > MOST_ARMS:
        message = f"the axes have {combinations} combinations, a matrix has at most {MOST_ARMS}"
        raise BadInput("E-matrix-too-large", message, hint=_HINT, where=file)


def few_cases(cases: Iterable[T], file: str) -> list[T]:
    """All of them, as long as they are few enough.

    Raises:
        BadInput: ``E-matrix-too-large``.
    """
    found = list(islice(cases, MOST_CASES + 1))
    if len(found) > MOST_CASES:
        message = f"it asks for more than {MOST_CASES} cases"
        raise BadInput("E-matrix-too-large", message, hint=_HINT, where=file)
    return found
