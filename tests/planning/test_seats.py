"""Jobs against nodes: the class, all bytes that a job needs, and the GPUs that it gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from planning_support import matrix, node

from harness.domain.job import Job
from harness.domain.node import GIB, Gpu
from harness.domain.placing import ByClass
from harness.domain.words import Status
from harness.planning.planner import held_against, make_plan
from harness.planning.rooms import RESERVE
from harness.planning.seats import SeatsByBytes

WANTED: Mapping[str, Any] = {
    "builds": {"ik": {"fork": "ik_llama.cpp", "path": "/builds/ik"}},
    "models": {"q": {"card": "qwen3-30b-a3b", "quant": "Q4_K_M"}},
    "workloads": [{"pp": 64}],
}


def job(flags: Mapping[str, Any], **changes: Any) -> Job:
    """The one job of a model of 17 GiB."""
    (only,) = make_plan(matrix(**({**WANTED, "flags": dict(flags)} | changes))).jobs
    return only


def test_a_job_goes_only_where_its_bytes_fit_and_the_reserve() -> None:
    wanted = job({"mmap": 0})
    seats = SeatsByBytes()
    refused = seats.seat(wanted, node(ram_gib=16))
    assert "needs 17767 MiB of RAM" in refused.refused
    assert "1024 of it kept free: 2407 MiB short" in refused.refused
    taken = seats.seat(wanted, node(ram_gib=20))
    assert not taken.refused
    assert abs(taken.ram_bytes - RESERVE - 17767 * 1024**2) < 1024**2


def test_mapped_weights_need_not_stay_so_they_are_not_taken() -> None:
    assert SeatsByBytes().seat(job({}), node(ram_gib=16)).ram_bytes < 2 * GIB


def test_a_deeper_workload_of_the_same_job_counts() -> None:
    """A job is one lease: it goes where all of it fits."""
    room = node(gpus=1, vram_gib=20)
    gpu = {"node_classes": {"any": {"min_gpus": 1}}}
    assert not SeatsByBytes().seat(job({"ngl": 99}, **gpu), room).refused
    deep = SeatsByBytes().seat(job({"ngl": 99}, **gpu, workloads=[{"pp": 64}, {"tg": 8, "depth": 65536}]), room)
    assert "short" in deep.refused


def test_the_nearest_node_is_of_the_class_before_it_is_large() -> None:
    wanted = job({"mmap": 0}, node_classes={"any": {"isa": ["avx512f"]}})
    seats = SeatsByBytes()
    small = replace(node(ram_gib=16), isa=("avx512f",))
    other = replace(node(ram_gib=500), isa=())
    assert seats.seat(wanted, small).distance < seats.seat(wanted, other).distance
    assert seats.seat(wanted, other).refused.startswith("not of class any: needs instruction set avx512f")


@pytest.mark.parametrize(
    ("asked", "gpus"),
    [({"min_gpus": 1}, (1,)), ({"min_gpus": 2}, (0, 1)), ({"min_gpus": 1, "gpu_name": "small"}, (0,)), ({}, (0, 1))],
)
def test_gpus_are_those_of_the_class_the_largest_first(asked: Mapping[str, Any], gpus: tuple[int, ...]) -> None:
    mixed = replace(node(ram_gib=64), gpus=(Gpu("Small", 24 * GIB, "", "s"), Gpu("Large", 80 * GIB, "", "l")))
    wanted = job({"ngl": 99}, node_classes={"any": dict(asked)})
    assert SeatsByBytes().seat(wanted, mixed).gpus == gpus == ByClass().seat(wanted, mixed).gpus


def test_a_build_without_code_for_gpus_gets_none() -> None:
    wheel = {"ik": {"fork": "ik_llama.cpp", "wheel": "ik-llama-cpp-python"}}
    assert SeatsByBytes().seat(job({}, builds=wheel), node(gpus=2, vram_gib=24)).gpus == ()


def test_a_plan_made_without_nodes_is_held_against_those_that_come() -> None:
    """What none can take is said with what the nearest one lacks, and costs no job; what one can take stays."""
    plan = make_plan(matrix(**{**WANTED, "flags": {"mmap": [0, 1]}}))
    held = held_against(plan, [replace(node(ram_gib=16), name="cellar"), replace(node(ram_gib=8), name="attic")])
    whole, mapped = held.cases
    assert (plan.nodes, len(plan.jobs), len(held.jobs)) == (None, 2, 1)
    assert (whole.status, mapped.status) == (Status.NOT_APPLICABLE, None)
    assert "on none of 2 nodes of its class, the nearest one is 'cellar'" in whole.reason
    assert held_against(plan, []).jobs == ()
    assert held.ids() == plan.ids()
