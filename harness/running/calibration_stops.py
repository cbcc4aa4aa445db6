"""When a calibration's jobs end: an arm against itself when its time is over, a planted slowdown once it is decided."""

from __future__ import annotations

from collections.abc import Sequence

from harness.domain.job import Job
from harness.domain.measurement import ProcessRun
from harness.domain.node import NodeFacts
from harness.domain.policy import Policy
from harness.domain.stopping import AfterOutputs
from harness.judging.stopping import SequentialStopping


class CalibrationStops:
    """The stopping rule of calibrations. The job's minutes end it in any case.

    Args:
        policy: As the matrix is judged.
    """

    def __init__(self, policy: Policy) -> None:
        self._sequential = SequentialStopping(policy)

    def after_outputs(self, job: Job, runs: Sequence[ProcessRun], node: NodeFacts) -> AfterOutputs:
        """Calibrations of speed ask for no outputs."""
        return self._sequential.after_outputs(job, runs, node)

    def undecided(self, job: Job, runs: Sequence[ProcessRun]) -> tuple[str, ...]:
        """All workloads of equal arms; of a plant those that the sequential rule has not decided."""
        if is_alike(job):
            return tuple(workload.name for workload in job.workloads)
        return self._sequential.undecided(job, runs)


def is_alike(job: Job) -> bool:
    """Whether its arms are the same in everything."""
    return job.arms[0] == job.arms[1] and not job.design.slowdown
