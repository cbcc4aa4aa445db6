"""What a calibration makes of outputs that are known to be sound: the largest figures seen, and tolerances of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from harness.domain.outputs import Output
from harness.domain.tolerance import ContrastClass, Figures
from harness.judging.outputs_statistics import Comparison, own_of
from harness.judging.quants import Quant
from harness.judging.tolerances import floor_of, largest, with_surplus

CALIBRATED_SURPLUS = Figures(
    mean=1.8, decode_mean=3.0, median=1.8, p90=2.2, decode_p90=5.0, p99=2.0, maximum=3.0, p25=1.5, decode_median=1.4
)
"""A calibration sees two or three ways of running an arm, of one model. Among 42 networks and quantizations others were
up to 1.5, 2.4, 1.5, 1.7, 4, 15, 2.5, 1.25 and 1.1 times as far apart as those."""
P99_OF_MAXIMUM = 0.5
"""The 15 were of a 99th percentile that a calibration saw before the few far positions and not among them: as much of
the largest divergence is tolerated there."""


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
    """The tolerance that follows.

    Never less than what is shipped for 16 bits: an expert that changes at a near-tie is seldom seen in one calibration.
    """
    widened = with_surplus(seen, CALIBRATED_SURPLUS)
    widened = replace(widened, p99=max(widened.p99, P99_OF_MAXIMUM * seen.maximum))
    return largest([widened, floor_of(Quant.FULL, contrast)]) or seen
