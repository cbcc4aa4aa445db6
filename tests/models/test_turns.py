"""One at a time for each thing in the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.domain.errors import Infrastructure
from harness.models.turns import turn


def test_a_place_that_nobody_gives_free_is_told(tmp_path: Path) -> None:
    """Not waited for without end; who waits is told so, once."""
    told: list[str] = []
    place = tmp_path / "folder" / "x"

    def waiting() -> None:
        told.append("waiting")

    with turn(place, waiting, 1.0):
        assert told == []
        with pytest.raises(Infrastructure, match="E-cache-busy"), turn(place, waiting, 0.1):
            pass
    assert told == ["waiting"]
    with turn(place, waiting, 0.0):
        pass
