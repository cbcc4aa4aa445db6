"""Schedules: burn-in first, then blocks in an order in which drift cancels."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_identity import ARM

from harness.domain.flags import Flags
from harness.domain.job import Design, Job, block_order
from harness.domain.node import NodeClass
from harness.domain.workload import OutputProfile, Prompt, Workload

OTHER = replace(ARM, flags=Flags.of({"fa": 0, "rtr": 0}))
JOB = Job((ARM, OTHER), (Workload(8, 0),), None, NodeClass("any"), Design(burn_in=1, blocks=4), ())


def test_two_arms_alternate_abba_then_baab() -> None:
    """The order of the first eight blocks."""
    order = "".join("AB"[arm] for block in range(8) for arm in block_order(2, block))
    assert order == "ABBABAABABBABAAB"


@pytest.mark.parametrize("blocks", [2, 4, 8, 12])
def test_linear_drift_cancels(blocks: int) -> None:
    """Both arms have the same mean place in the sequence after every whole quad."""
    sequence = [arm for block in range(blocks) for arm in block_order(2, block)]
    places = [[place for place, arm in enumerate(sequence) if arm == wanted] for wanted in (0, 1)]
    assert sum(places[0]) == sum(places[1])


def test_each_arm_burns_in_once_and_is_scored_in_every_block() -> None:
    """Ten starts; burn-in processes answer the prompts where outputs are asked for."""
    steps = list(replace(JOB, outputs=OutputProfile("o", (Prompt("p", "x"),), 4, 8)).schedule())
    assert [step.scored for step in steps] == [False] * 2 + [True] * 8
    assert len(steps) == JOB.process_starts
    assert [step.outputs for step in steps] == [True] * 2 + [False] * 8
    assert {step.arm for step in steps if step.block == 3} == {0, 1}


def test_a_job_of_outputs_alone_starts_each_arm_once() -> None:
    """Nothing is timed, so nothing is repeated."""
    job = replace(JOB, workloads=(), outputs=OutputProfile("o", (), 4, 8))
    assert len(list(job.schedule())) == job.process_starts == 2


def test_job_ids_tell_jobs_apart() -> None:
    """By arms, workloads, outputs and class; not by their cases."""
    others = [
        replace(JOB, arms=(OTHER, ARM)),
        replace(JOB, workloads=(Workload(9, 0),)),
        replace(JOB, outputs=OutputProfile("o", (), 4, 8)),
        replace(JOB, node_class=NodeClass("gpu")),
    ]
    assert len({job.id for job in [JOB, *others]}) == 5
    assert replace(JOB, cases=("a",)).id == JOB.id
