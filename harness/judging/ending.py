"""Why a job ended before its cases were decided, in words."""

from __future__ import annotations

from harness.domain.stopping import JobEnd
from harness.judging.record import JobRecord


def ending_text(record: JobRecord) -> str:
    """E.g. ``the budget of 5 minutes ended after 3 quads``; empty where neither budget nor schedule ended the job.

    Args:
        record: The job.
    """
    design = record.job.design
    at_once = record.job.blocks_at_once
    begun = len({run.step.block // at_once for run in record.runs if run.step.scored})
    unit = "quad" if at_once > 1 else "block"
    after = f"ended after {begun} {unit}{'s' * (begun != 1)}"
    if record.end is JobEnd.SCHEDULE:
        return f"the schedule of {design.blocks} blocks {after}"
    if record.end is JobEnd.BUDGET and design.minutes is not None:
        return f"the budget of {design.minutes:g} minute{'s' * (design.minutes != 1)} {after}"
    return ""
