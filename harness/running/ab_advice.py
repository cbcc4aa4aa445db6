"""How long a new run would likely take to decide what this one has not: it starts from nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import stdev

from harness.judging.shortfall import FEWEST, quads_likely_to_decide
from harness.running.ab_board import QUAD_PROCESSES, Board, Row


@dataclass(frozen=True, slots=True)
class Advice:
    """What would decide a workload, if its quads go on as they were.

    Attributes:
        quad_sd: How far they scatter; ``None``: too few to say.
        quads: Quads in all that would likely decide it; those from which their scatter is known, where there are fewer;
            ``None``: they scatter too far for this margin.
        minutes: What a new run takes for them, burn-in and room for one more quad included; ``None`` as above.
    """

    quad_sd: float | None
    quads: int | None
    minutes: float | None


def advice(board: Board, row: Row) -> Advice | None:
    """Advice on an undecided workload; ``None`` where nobody knows how long a quad takes."""
    if board.quad_seconds is None:
        return None
    had = len(row.log_ratios)
    if had < FEWEST:
        return Advice(None, FEWEST, _minutes_anew(board, FEWEST))
    total = quads_likely_to_decide(row.log_ratios, row.limits)
    if total is None:
        return Advice(stdev(row.log_ratios), None, None)
    total = max(total, had + 1)
    return Advice(stdev(row.log_ratios), total, _minutes_anew(board, total))


def minutes_for_all(found: Iterable[Advice]) -> int | None:
    """Whole minutes of one new run that likely decides every workload for which that can be said."""
    told = [each.minutes for each in found if each.minutes is not None]
    return math.ceil(max(told)) if told else None


def _minutes_anew(board: Board, quads: int) -> float:
    """By the slower of the mean process and the last ones; a quad is begun only where there is room for a whole one."""
    mean = sum(run.wall_s for run in board.runs) / len(board.runs)
    process_s = max(mean, (board.quad_seconds or 0.0) / QUAD_PROCESSES)
    burn_ins = board.job.design.burn_in * len(board.names)
    return (burn_ins + QUAD_PROCESSES * (quads + 1)) * process_s / 60
