"""When a job may end: the sequential rule, as execution asks it between quads, and what follows on wrong outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.domain.job import Job
from harness.domain.measurement import ProcessRun
from harness.domain.node import NodeFacts
from harness.domain.policy import Policy
from harness.domain.stopping import AfterOutputs
from harness.judging.attribution import judge_attribution
from harness.judging.floors import MIN_STARTS
from harness.judging.intervals import LogMean
from harness.judging.outputs_golden import goldens_of_job
from harness.judging.outputs_rounds import outputs_of_job
from harness.judging.quads import quads_of
from harness.judging.samples import Implausible, NothingKept, process_medians
from harness.judging.sequential import INTERVAL_ALPHA, decide
from harness.judging.throughput import limits_of
from harness.judging.voids import voided_blocks

_ONE, _PAIR = 1, 2

_ENOUGH_ALONE = 0.05
"""A single arm's speed is known well enough when its interval is this near on either side: floors are coarse."""

_MOST_ALONE = 8
"""Scored starts after which a single arm's interval is what it is; a contrast's blocks are no measure for it."""


@dataclass(frozen=True, slots=True)
class SequentialStopping:
    """Ends the measurement of a workload once it is decided, and a job once all its workloads are.

    Before that, outputs that are found wrong are asked for again, and the speed of wrong ones is not measured.

    Attributes:
        policy: How strictly is judged.
    """

    policy: Policy

    def after_outputs(self, job: Job, runs: Sequence[ProcessRun], node: NodeFacts) -> AfterOutputs:
        """Ask again what is found wrong; measure no speed of what is found wrong twice, or cannot be compared.

        Args:
            job: The job.
            runs: Its processes so far.
            node: Where it runs.
        """
        answering = [run for run in runs if run.step.outputs]
        if any(run.failure for run in answering):
            return AfterOutputs.GO_ON
        found = outputs_of_job(job, runs, node)
        once = len(answering) == len(job.arms)
        on_record = goldens_of_job(job, runs, node) if once else ()
        if once and any(each.wrong and not each.advisory for each in (*found, *on_record)):
            return AfterOutputs.REPEAT
        counts = not job.workloads or job.timed_alone or all(each.speed_may_be_judged for each in found)
        return AfterOutputs.GO_ON if counts else AfterOutputs.STOP

    def undecided(self, job: Job, runs: Sequence[ProcessRun]) -> tuple[str, ...]:
        """Names of the workloads that need more.

        Args:
            job: The job.
            runs: Its processes so far.
        """
        names = [workload.name for workload in job.workloads]
        return tuple(name for name in names if not is_decided(job, runs, name, self.policy))


def is_decided(job: Job, runs: Sequence[ProcessRun], workload: str, policy: Policy) -> bool:
    """Whether more processes can change nothing for a workload, or are not worth their time.

    What is no measurement (an implausible time, no repetition kept) is decided too, and so is a contrast of which one
    arm failed, for it is not started again: its cases fail whatever comes.

    Args:
        job: The job.
        runs: Its processes so far.
        workload: The workload's name.
        policy: How strictly is judged.
    """
    runs = [run for run in runs if not run.step.apart]
    if len(job.arms) > _ONE and not job.timed_alone and any(run.failure for run in runs):
        return True
    voided = voided_blocks(runs)
    sound = [run for run in runs if run.step.block not in voided]
    arms = [[run for run in sound if run.step.arm == arm] for arm in range(len(job.arms))]
    try:
        if len(arms) == _ONE:
            return _is_known_alone(arms[0], workload, policy)
        if len(arms) == _PAIR:
            return _is_contrast_decided(job, arms, workload, policy)
        limits = limits_of(policy, job, workload)
        found = judge_attribution(
            arms, workload, ("", ""), limits, spread=job.spread_of(workload), ceiling_tps=policy.ceiling_tps
        )
    except (Implausible, NothingKept):
        return True
    return not found.open


def _is_known_alone(runs: Sequence[ProcessRun], workload: str, policy: Policy) -> bool:
    medians = process_medians(runs, workload, policy.ceiling_tps)
    if len(medians) < MIN_STARTS:
        return False
    low, high = LogMean.of([median.log_tps for median in medians.values()]).interval(INTERVAL_ALPHA)
    return len(medians) >= _MOST_ALONE or high <= low * (1 + _ENOUGH_ALONE) ** 2


def _is_contrast_decided(job: Job, arms: Sequence[Sequence[ProcessRun]], workload: str, policy: Policy) -> bool:
    found = quads_of(arms[0], arms[1], workload, ceiling_tps=policy.ceiling_tps)
    if job.timed_alone and len(found.quads) * 2 < MIN_STARTS:
        return False
    known = found.borne_out(job.spread_of(workload))
    return not decide(found.log_ratios, limits_of(policy, job, workload), known, found.insides).open
