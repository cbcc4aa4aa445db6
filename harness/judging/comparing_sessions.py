"""Two sessions of our own: an arm through time, against the baseline arm that was measured beside it both times.

A machine is not the same on two nights. Where the same bytes ran as baseline in both sessions, each process of the arm
is taken relative to the baseline's of the same block, so that what slowed both down is no finding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from harness.domain.imported import ImportedRow
from harness.judging.comparing_cells import Meeting
from harness.judging.comparing_processes import Process, Reduction
from harness.judging.effects import Component


def controls_of(meeting: Meeting, sides: Sequence[Sequence[ImportedRow]]) -> list[list[ImportedRow]]:
    """For each row of both cells the baseline of its block; nothing where one lacks it or other bytes ran.

    Args:
        meeting: The cells of an arm in two sessions.
        sides: All rows of the two sessions.
    """
    found = []
    for cell, rows in zip(meeting, sides, strict=True):
        wanted = (cell.first.control, cell.first.workload)
        by_place = {row.place: row for row in rows if row.case and (row.case, row.workload) == wanted}
        found.append([by_place[row.place] for row in cell.rows if row.place in by_place])
    contents = {row.build.content for rows in found for row in rows}
    whole = all(len(rows) == len(cell.rows) for cell, rows in zip(meeting, found, strict=True))
    return found if whole and len(contents) == 1 and "" not in contents else []


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
    return Process(one.log_tps - other.log_tps, within, one.time)
