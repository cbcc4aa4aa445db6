"""What a calibration makes of outputs that are known to be sound: the largest figures seen, and tolerances of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.domain.outputs import Output
from harness.domain.tolerance import ContrastClass, Figures
from harness.judging.outputs_statistics import Comparison, own_of
from harness.judging.quants import Quant
from harness.judging.tolerances import floor_of, largest, with_surplus


@dataclass(frozen=True, slots=True)
class Seen:
    """What sound pairs showed.

    Attributes:
        pairs: How many there were.
        positions: Positions of the first.
        decoded: How many of these were decoded one at a time.
        figures: The largest of each figure.
    """

    pairs: int
    positions: int
    decoded: int
    figures: Figures


def seen_in(
    pairs: Iterable[tuple[Sequence[Output], Sequence[Output]]], alone: Iterable[Sequence[Output]]
) -> Seen | None:
    """The largest figures of sound pairs and of arms beside themselves; ``None`` where there were none.

    Args:
        pairs: Answers of two processes each.
        alone: Answers of processes that compared themselves with themselves.

    Raises:
        Unreadable: A part is damaged, or a pair does not belong together.
    """
    found: list[Figures] = []
    positions = decoded = 0
    for ours, theirs in pairs:
        for one, other in ((ours, theirs), (theirs, ours)):
            compared = Comparison(list(zip(one, other, strict=True)))
            found.append(compared.figures)
            if not positions:
                positions, decoded = compared.positions, compared.decoded
    for outputs in alone:
        found += own_of(outputs).figures.values()
    most = largest(found)
    return Seen(len(found), max(1, positions), decoded, most) if most else None


def tolerated_after(seen: Figures, contrast: ContrastClass) -> Figures:
    """The tolerance that follows, with the surplus that shipped floors have.

    Never less than what is shipped for 16 bits: an expert that changes at a near-tie is seldom seen in one calibration.
    """
    return largest([with_surplus(seen), floor_of(Quant.FULL, contrast)]) or seen
