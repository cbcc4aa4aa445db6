"""Faults planted in the context while outputs are made: whether a check finds what is broken can only be seen on those.

They are made with the library's own calls on its cache. A gap cuts the prompt in two where it lies; else nothing but
the fault differs from a run without it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from . import fields as read
from .errors import EXIT_DECODE, EmbeddedError

_KEYS = frozenset({"kind", "cells", "seed"})

DROPPED, GAP = "kv_dropped", "position_gap"
_KINDS = (DROPPED, GAP)


@dataclass(frozen=True, slots=True)
class Fault:
    """One planted fault.

    Attributes:
        kind: ``kv_dropped``: random cells are removed from the context once the prompt stands in it.
            ``position_gap``: all tokens from the middle of the prompt on stand one position too far from those before.
        cells: Cells that are removed; the prompt's last one never is.
        seed: Of the choice of cells.
    """

    kind: str
    cells: int = 1
    seed: int = 0

    def dropped_positions(self, length: int) -> list[int]:
        """Positions to be removed from a prompt of a length."""
        if self.kind != DROPPED:
            return []
        source = random.Random(f"{self.seed}/{length}")  # noqa: S311 - no secret
        return sorted(source.sample(range(length - 1), min(self.cells, length - 1)))

    def gap_after(self, length: int) -> int:
        """Tokens of a prompt of a length that stand before the gap; 0: there is none."""
        return length // 2 if self.kind == GAP else 0

    def __str__(self) -> str:
        return f"{self.kind}, cells {self.cells}, seed {self.seed}" if self.kind == DROPPED else self.kind


def fault_of(where: str, value: object) -> Fault | None:
    """The fault of a request; ``None`` where there is none.

    Raises:
        EmbeddedError: ``E-request``, naming the key.
    """
    if value is None:
        return None
    fields = read.an_object(where, value, _KEYS)
    kind = read.text(f"{where}.kind", fields.get("kind"))
    if kind not in _KINDS:
        raise read.refused(f"{where}.kind", f"unknown fault {kind!r}; known: {', '.join(_KINDS)}")
    return Fault(
        kind=kind,
        cells=read.number(f"{where}.cells", fields.get("cells", 1), low=1),
        seed=read.number(f"{where}.seed", fields.get("seed", 0), low=0),
    )


def not_planted(fault: Fault, why: str) -> EmbeddedError:
    """The error of a fault that the library did not let happen: ``E-fault``."""
    return EmbeddedError("E-fault", f"outputs.fault: {fault} could not be planted: {why}", exit_code=EXIT_DECODE)
