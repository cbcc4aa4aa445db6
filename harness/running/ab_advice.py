"""How much longer an undecided workload would likely take."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import stdev

from harness.judging.shortfall import FEWEST, quads_likely_to_decide
from harness.running.ab_board import Board, Row


@dataclass(frozen=True, slots=True)
class Advice:
    """What would decide a workload, if its quads go on as they were.

    Attributes:
        quad_sd: How far they scatter; ``None``: too few to say.
        minutes: Minutes more; ``None``: too few quads to say, or they scatter too far for this margin.
    """

    quad_sd: float | None
    minutes: float | None


def advice(board: Board, row: Row) -> Advice | None:
    """Advice on an undecided workload; ``None`` where nobody knows how long a quad takes."""
    pace = board.quad_seconds
    if pace is None:
        return None
    had = len(row.log_ratios)
    if had < FEWEST:
        return Advice(None, None)
    total = quads_likely_to_decide(row.log_ratios, row.limits)
    return Advice(stdev(row.log_ratios), None if total is None else max(1, total - had) * pace / 60)
