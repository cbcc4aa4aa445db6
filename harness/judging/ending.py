"""Why a job ended before its cases were decided, in words."""

from __future__ import annotations

from harness.domain.stopping import JobEnd
from harness.judging.record import JobRecord


def ending_text(record: JobRecord) -> str:
    """E.g. ``the budget of 5 minutes ended after 3 quads``; empty where the budget did not end the job.

    Args:
        record: The job.
    """
    minutes = record.job.design.minutes
    if record.end is not JobEnd.BUDGET or minutes is None:
        return ""
    at_once = record.job.blocks_at_once
    begun = len({run.step.block // at_once for run in record.runs if run.step.scored})
    unit = "quad" if at_once > 1 else "block"
    return f"the budget of {minutes:g} minute{'s' * (minutes != 1)} ended after {begun} {unit}{'s' * (begun != 1)}"
