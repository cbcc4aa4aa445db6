"""Rows of logits reduced as they pass by: hash, most probable tokens, margin; no row is kept."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.ranking import NO_TOKEN, Table

Row: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Reduced:
    """What is kept of a row.

    Attributes:
        ids: The most probable tokens, the lowest id first of equals; ``NO_TOKEN`` in a row that is not finite.
        logprobs: Their log-probabilities in nats; NaN in a row that is not finite.
        best: The most probable token; in a row that is not finite the best of the finite ones, 0 if there is none.
        margin: Nats by which it leads; ``None`` in a row that is not finite.
    """

    ids: NDArray[np.int32]
    logprobs: Row
    best: int
    margin: float | None


def reduce_row(row: Row, top: int) -> Reduced:
    """Reduce one row.

    Args:
        row: The logits, shape (vocabulary,).
        top: Tokens to keep, at least 2; fewer where the vocabulary has fewer.
    """
    top = min(top, row.size)
    if not np.isfinite(row).all():
        usable = np.where(np.isfinite(row), row, -np.inf)
        return Reduced(np.full(top, NO_TOKEN, np.int32), np.full(top, np.nan, np.float32), int(usable.argmax()), None)
    # Only the few largest are sorted, stably: equal logits keep the order of their ids in every arm.
    least = np.partition(row, row.size - top)[row.size - top]
    candidates = np.flatnonzero(row >= least)
    ids = candidates[np.argsort(-row[candidates], kind="stable")][:top]
    values = row[ids].astype(np.float64)
    total = values[0] + np.log(np.exp(row - row[ids[0]]).sum(dtype=np.float64))
    # The normaliser cancels: a difference of logits is the difference of log-probabilities.
    margin = float(values[0] - values[1]) if top > 1 else 0.0
    return Reduced(ids.astype(np.int32), (values - total).astype(np.float32), int(ids[0]), margin)


@dataclass(slots=True)
class Digest:
    """Hash over the raw bits of all rows, and whether every one was finite."""

    finite: bool = True
    _hash: hashlib._Hash = field(default_factory=hashlib.sha256)

    def add(self, row: Row, reduced: Reduced) -> None:
        """Take one row."""
        self._hash.update(row.data)
        self.finite = self.finite and reduced.margin is not None

    def hex(self) -> str:
        """The hash so far."""
        return self._hash.hexdigest()


def table_of(rows: list[Reduced]) -> Table:
    """Reduced rows as a table; none of them gives one of no positions."""
    if not rows:
        return Table(np.empty((0, 1), np.int32), np.empty((0, 1), np.float32))
    return Table(np.stack([row.ids for row in rows]), np.stack([row.logprobs for row in rows]))
