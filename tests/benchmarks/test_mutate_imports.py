"""The campaign of damaged outputs: a short run of it, and that it finds what it is for."""

from __future__ import annotations

from dataclasses import replace

import mutate_imports
import pytest

from harness.domain.imported import Imported
from harness.engines.imported.reading import read_output


def test_damaged_outputs_are_read_without_a_crash_and_without_a_row_made_up() -> None:
    """Two thousand; a million are read by hand."""
    read, faults, seen = mutate_imports.campaign(2000, seed=20, seconds=6)
    assert read > 200
    assert faults == []
    assert {"cut", "insert", "number", "field", "bytes"} <= seen.keys()


def changed(found: Imported) -> Imported:
    return replace(found, rows=tuple(replace(row, samples_ns=row.samples_ns[::-1]) for row in found.rows))


@pytest.mark.parametrize(
    ("reader", "told"),
    [
        (changed, "made up"),
        (lambda found: replace(found, rows=found.rows[1:], problems=()), "lost or changed"),
        (lambda found: replace(found, rows=tuple(replace(row, machine=()) for row in found.rows), problems=()), "lost"),
        (lambda _: 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_a_reader_with_a_fault_is_found(monkeypatch: pytest.MonkeyPatch, reader: object, told: str) -> None:
    """Samples in another order, a row that is dropped, a field that is forgotten, a crash."""
    mutate_imports.bases()  # as the reader is without its fault
    monkeypatch.setattr(mutate_imports, "read_output", lambda *args: reader(read_output(*args)))  # type: ignore[operator]
    _, faults, _ = mutate_imports.campaign(60, seed=1)
    assert any(told in fault for fault in faults)
