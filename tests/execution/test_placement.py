"""What a node offers to Ray, and what a job takes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.domain.errors import BadInput
from harness.domain.node import GIB, Gpu
from harness.domain.placing import Seat
from harness.execution.node import probe_node
from harness.execution.offers import (
    DISK_GIB,
    RAM_GIB,
    SLOT,
    VRAM_GIB,
    as_label,
    declared_labels,
    is_mixed,
    labels_of,
    resources_of,
    within_offer,
)
from harness.execution.ray_executor import demands
from harness.execution.ray_inventory import FleetNode

SMALL, LARGE = Gpu("NVIDIA RTX 4060", 8 * GIB, "570.1", "GPU-s"), Gpu("NVIDIA H200", 141 * GIB, "570.1", "GPU-l")
NODE = replace(probe_node(), ram_bytes=31 * GIB + 5, cgroup_memory_bytes=None, gpus=(), isa=("avx2", "fma"))


def test_a_node_offers_whole_gib_and_one_slot() -> None:
    """Rounded down; the smallest GPU counts; what there is none of is not offered."""
    assert resources_of(NODE) == {SLOT: 1.0, RAM_GIB: 31.0}
    assert resources_of(replace(NODE, gpus=(SMALL, LARGE)), disk_bytes=GIB // 2)[VRAM_GIB] == 8.0
    assert resources_of(NODE, disk_bytes=77 * GIB + 3)[DISK_GIB] == 77.0


def test_labels_tell_gpu_by_gpu_and_are_labels_whatever_the_driver_says() -> None:
    labels = labels_of(replace(NODE, gpus=(LARGE, SMALL), cpu_model="AMD Ryzen 5 3500 6-Core (tm) "), links="PHB")
    assert labels["moe/gpu"] == "mixed"
    assert (labels["moe/gpu-0"], labels["moe/gpu-1"]) == ("NVIDIA-H200", "NVIDIA-RTX-4060")
    assert (labels["moe/isa-avx2"], labels["moe/gpu-links"]) == ("yes", "PHB")
    assert labels["moe/cpu"] == "AMD-Ryzen-5-3500-6-Core-tm"
    assert labels_of(NODE)["moe/gpu"] == "none"


@pytest.mark.parametrize("text", ["\x1b[31mred", "a" * 200, "--x..", "Ünïcode GPU", "{};$(id)"])
def test_any_text_becomes_a_label_or_nothing(text: str) -> None:
    label = as_label(text)
    assert not label or declared_labels([f"k={label}"]) == {"k": label}


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("rack", "expected KEY=VALUE"),
        ("rack=b 4", "its value 'b 4' is not at most 63 letters"),
        ("ra/ck=x", "its key 'ra/ck'"),
        ("rack=" + "x" * 64, "its value"),
        ("rack=\x1b[2J", "its value"),
        ("moe/gpu=H200", "not declared but found"),
        ("ray.io/node-id=1", "not declared but found"),
        ("rack=", "its value ''"),
    ],
)
def test_a_label_with_bad_characters_is_refused_with_the_rule(word: str, said: str) -> None:
    with pytest.raises(BadInput, match="E-fleet-label") as refused:
        declared_labels([word])
    assert said in str(refused.value)


def test_memory_can_be_kept_back() -> None:
    """A node that offers less than it has is taken for a smaller one; rounding alone takes nothing."""
    assert within_offer(NODE, {RAM_GIB: 8.0}).usable_ram_bytes == 8 * GIB
    assert within_offer(NODE, {RAM_GIB: 31.0}) == within_offer(NODE, {}) == NODE


def test_unlike_gpus_are_told_from_like_ones() -> None:
    assert is_mixed((SMALL, LARGE))
    assert not is_mixed((LARGE, replace(LARGE, uuid="GPU-2", vram_bytes=LARGE.vram_bytes + 5)))
    assert not is_mixed(())


def test_a_job_takes_a_whole_slot_and_its_memory() -> None:
    """Of the memory no more than the least of the nodes offers, or Ray would wait for ever."""
    nodes = [FleetNode("a", "a", {SLOT: 1.0, RAM_GIB: 31.0}, {}), FleetNode("b", "b", {SLOT: 1.0, RAM_GIB: 16.0}, {})]
    assert demands([(nodes[0], Seat(ram_bytes=15 * GIB + 1))]) == {SLOT: 1.0, RAM_GIB: 16.0}
    assert demands([(node, Seat(ram_bytes=16 * GIB + 1)) for node in nodes]) == {SLOT: 1.0, RAM_GIB: 16.0}
    assert demands([(nodes[0], Seat())]) == {SLOT: 1.0}
    assert demands([(FleetNode("c", "c", {SLOT: 1.0}, {}), Seat(ram_bytes=GIB))]) == {SLOT: 1.0}
