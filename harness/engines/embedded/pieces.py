"""How a prompt is handed over: in batches, and where logits are kept in ubatches, so that few are held at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tokens handed over at once, and tokens that the library evaluates at once."""

    batch: int
    ubatch: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens handed over together.

    Attributes:
        start: Index of the first in the prompt.
        end: Index after the last.
        outputs: Of so many of the last ones logits are kept.
    """

    start: int
    end: int
    outputs: int


def cut(start: int, end: int, kept_from: int, sizes: Sizes) -> Iterator[Piece]:
    """Cut a part of a prompt.

    The library itself cuts a batch into ubatches. A batch of which logits are kept is cut at the same places before it
    is handed over: nothing is computed otherwise, and the logits of one ubatch are all that are held at once.

    Args:
        start: First token of the part.
        end: Token after its last.
        kept_from: Logits are kept from this token on.
        sizes: Of batch and ubatch.
    """
    for first in range(start, end, sizes.batch):
        last = min(first + sizes.batch, end)
        plain = max(0, kept_from - first) // sizes.ubatch * sizes.ubatch
        kept = min(first + plain, last) if kept_from < last else last
        if kept > first:
            yield Piece(first, kept, 0)
        for at in range(kept, last, sizes.ubatch):
            until = min(at + sizes.ubatch, last)
            yield Piece(at, until, until - max(at, kept_from))
