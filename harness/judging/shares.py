"""How many seconds of a job each of its cases answers for: a process is shared by the cases that rest on it.

One process of an arm measures all workloads of a job, and an arm stands in several cases. Each process's wall time is
divided equally among the cases that rest on it, so that the times of a job's cases add up to what its processes took.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.domain.case import Case
from harness.domain.job import Job
from harness.domain.measurement import ProcessRun
from harness.domain.words import Kind
from harness.judging.record import JobRecord


def shared_seconds(cases: Mapping[str, Case], record: JobRecord) -> dict[str, float]:
    """Seconds by case id.

    Args:
        cases: The cases of the job, by id.
        record: What was measured.
    """
    seconds = dict.fromkeys(cases, 0.0)
    identities = {name: frozenset(arm.identity for arm in case.arms) for name, case in cases.items()}
    for run in record.runs:
        resting = [name for name, case in cases.items() if _rests_on(case, identities[name], record.job, run)]
        # Nobody asked for it by name (a required output check of which no case was selected): it was done for all.
        for name in resting or cases:
            seconds[name] += run.wall_s / len(resting or cases)
    return seconds


def _rests_on(case: Case, identities: frozenset[str], job: Job, run: ProcessRun) -> bool:
    counted = run.step.outputs if case.kind is Kind.EQUIVALENCE else not run.step.apart
    return counted and run.step.arm < len(job.arms) and job.arms[run.step.arm].identity in identities
