"""The contrast of a case by its job's record: what a verdict, a gate and an accepted trade all ask."""

from __future__ import annotations

from harness.judging.evidence import Evidence
from harness.judging.throughput import ContrastVerdict, judge_contrast, limits_of


def contrast_of(evidence: Evidence) -> ContrastVerdict:
    """Judge a case of two arms; void quads are left out.

    Raises:
        Implausible: If a measurement is not a speed.
        NothingKept: If a process kept no repetition.
    """
    baseline, candidate = evidence.runs
    job, workload = evidence.record.job, evidence.case.workload_name
    return judge_contrast(
        baseline,
        candidate,
        workload,
        limits_of(evidence.policy, job, workload),
        spread=job.spread_of(workload),
        voided=evidence.record.voided,
        ceiling_tps=evidence.policy.ceiling_tps,
    )
