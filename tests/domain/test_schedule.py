"""Schedules: burn-in first, then blocks in an order in which drift cancels."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
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


@given(seed=st.text(max_size=8), group=st.integers(0, 20))
def test_four_arms_are_balanced_in_every_four_blocks(seed: str, group: int) -> None:
    """Every arm once per block, once in every place, and once right after each other arm."""
    rows = [block_order(4, 4 * group + row, seed) for row in range(4)]
    assert {tuple(sorted(row)) for row in rows} == {(0, 1, 2, 3)}
    assert all(set(place) == {0, 1, 2, 3} for place in zip(*rows, strict=True))
    assert len({pair for row in rows for pair in pairwise(row)}) == 12


def test_the_order_of_four_arms_is_drawn_anew_and_can_be_repeated() -> None:
    """Another job or another four blocks have another order; the same ones have the same."""
    four = replace(
        JOB, arms=(ARM, OTHER, replace(ARM, environment=(("A", "1"),)), replace(OTHER, environment=(("A", "1"),)))
    )
    assert list(four.schedule()) == list(replace(four).schedule())
    orders = {tuple(block_order(4, block, seed) for block in range(4)) for seed in "abcdefgh"}
    assert len(orders) == 8
    assert len({tuple(block_order(4, 4 * group + row, "a") for row in range(4)) for group in range(8)}) == 8
    assert [step.arm for step in four.schedule() if step.block == 2] == list(block_order(4, 2, four.id))


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
