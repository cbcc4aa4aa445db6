"""A planned ``ab`` of the wheels, and processes as they would come in."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping

from harness.domain.measurement import Conditions, ProcessRun, Samples
from harness.execution.events import JobEvent, ProcessDone, Progress, Started
from harness.execution.node import probe_node
from harness.running.ab import AbPlan, AbRequest, plan_ab
from harness.running.ab_board import Board

QUIET = Conditions(0, (), 1, 0.0)
WALL_S = 3.0


def planned(*line: str, old: str = "ik+rtr=0", new: str = "ik+rtr=1", minutes: float = 5.0) -> AbPlan:
    return plan_ab(AbRequest(old, new, line=line, minutes=minutes))


def board_of(plan: AbPlan, clock: Iterator[float] | None = None) -> Board:
    ticks = clock or iter(lambda: 100.0, None)
    return Board(plan.job, plan.arms.names, plan.plan.policy.judging, lambda: next(ticks))


def events(plan: AbPlan, ratios: Mapping[str, float], quads: float, spread: float = 0.01) -> Iterator[JobEvent]:
    """Events of a job: the candidate is as many times as fast as ``ratios`` says, by workload."""
    rng = random.Random(1)  # noqa: S311 - no secret
    job = plan.job
    yield Started(job.id, 1, probe_node(), "host")
    yield Progress(job.id, 1, "preparing models")
    for step in list(job.schedule())[: 2 + int(4 * quads)]:
        samples = []
        for workload in job.workloads:
            speed = 500 * (ratios[workload.name] if step.arm else 1) * math.exp(rng.gauss(0, spread))
            samples.append(Samples(workload.name, workload.tokens, (int(workload.tokens * 1e9 / speed),) * 7, 4))
        run = ProcessRun(step, f"key-{step.arm}", tuple(samples), (), WALL_S, None, 0, QUIET, {"build_commit": "abc"})
        yield ProcessDone(job.id, 1, run)
