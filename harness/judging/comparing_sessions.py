"""Two sessions of our own: an arm through time, against the baseline arm that was measured beside it both times.

A machine is not the same on two nights. Where the same bytes ran as baseline in both sessions, each process of the arm
is taken relative to the baseline's of the same block, so that what slowed both down is no finding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from harness.domain.imported import ImportedRow
from harness.judging.comparing_cells import Cell, Meeting
from harness.judging.comparing_processes import Process, Reduction
from harness.judging.effects import Component


def with_controls(
    meeting: Meeting, sides: Sequence[Sequence[ImportedRow]]
) -> tuple[Meeting, list[list[ImportedRow]]] | None:
    """The processes of both cells beside which a baseline of the same bytes was measured, and those baselines.

    A process whose baseline was interrupted is left out: it has nothing that it could be relative to.

    Args:
        meeting: The cells of an arm in two sessions.
        sides: All rows of the two sessions.

    Returns:
        ``None`` where a session has no such process, or other bytes ran.
    """
    (ours, our_controls), (theirs, their_controls) = (
        _beside(cell, rows) for cell, rows in zip(meeting, sides, strict=True)
    )
    contents = {row.build.content for row in (*our_controls, *their_controls)}
    if not our_controls or not their_controls or len(contents) != 1 or "" in contents:
        return None
    return (ours, theirs), [our_controls, their_controls]


def _beside(cell: Cell, rows: Sequence[ImportedRow]) -> tuple[Cell, list[ImportedRow]]:
    wanted = (cell.first.control, cell.first.workload)
    by_place = {row.place: row for row in rows if row.case and (row.case, row.workload) == wanted}
    kept = tuple(row for row in cell.rows if row.place in by_place)
    return replace(cell, rows=kept), [by_place[row.place] for row in kept]


def relative(rows: Sequence[ImportedRow], controls: Sequence[ImportedRow], reduction: Reduction) -> list[Process]:
    """Each process relative to its control: the difference of their logarithms.

    Args:
        rows: Processes of the arm.
        controls: The baseline's processes of the same blocks.
        reduction: How repetitions become one figure.

    Returns:
        Fewer than there are rows where a process has no repetition left.
    """
    pairs = [(reduction.process(row), reduction.process(other)) for row, other in zip(rows, controls, strict=True)]
    return [_difference(one, other) for one, other in pairs if one and other]


def movement(controls: Sequence[Sequence[ImportedRow]], reduction: Reduction) -> float:
    """By which factor the controls of the second session are faster than those of the first."""
    before, after = (fmean(process.log_tps for row in rows if (process := reduction.process(row))) for rows in controls)
    return math.exp(after - before)


def _difference(one: Process, other: Process) -> Process:
    within = None
    if one.within and other.within:
        variance = one.within.variance + other.within.variance
        within = Component(variance, min(one.within.df, other.within.df))
    repetitions = min(one.repetitions, other.repetitions)
    return Process(one.log_tps - other.log_tps, within, one.time, repetitions, max(one.share, other.share))
