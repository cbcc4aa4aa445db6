"""Being told to stop: long work asks between its pieces, and leaves nothing half-done behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

ShouldStop: TypeAlias = Callable[[], bool]
"""Asked several times a second; true ends the work."""


class Stopped(Exception):  # noqa: N818 - reads as what it is at the raise
    """The work was told to stop. No fault: who told it so knows."""


def never() -> bool:
    """Nobody stops it."""
    return False


def go_on(should_stop: ShouldStop) -> None:
    """Return where the work goes on.

    Raises:
        Stopped: If it is to stop.
    """
    if should_stop():
        raise Stopped
