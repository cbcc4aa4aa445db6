"""Placement on Ray: demands of a class, offers of nodes, and what to say when they do not meet."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.domain.node import GIB, Gpu, NodeClass
from harness.execution.node import probe_node
from harness.execution.ray_executor import RAM_GIB, SLOT, VRAM_GIB, demands, embedded_resources, unmet_demand

NODE = replace(probe_node(), ram_bytes=31 * GIB + 5, cgroup_memory_bytes=None, gpus=())


def test_a_node_offers_whole_gib_and_one_slot() -> None:
    """Rounded down; the smallest GPU counts."""
    assert embedded_resources(NODE) == {SLOT: 1.0, RAM_GIB: 31.0}
    gpus = (Gpu("a", 8 * GIB, "", ""), Gpu("b", 24 * GIB, "", ""))
    assert embedded_resources(replace(NODE, gpus=gpus))[VRAM_GIB] == 8.0


def test_a_measurement_takes_a_whole_slot() -> None:
    """Whatever else it demands."""
    assert demands(NodeClass("any")) == {SLOT: 1.0}
    assert demands(NodeClass("c", min_ram_gib=15.5, min_gpus=1, min_vram_gib=4)) == {SLOT: 1, RAM_GIB: 15, VRAM_GIB: 4}


@pytest.mark.parametrize(
    ("offers", "said"),
    [
        ([{SLOT: 1.0, RAM_GIB: 31.0}], ""),
        ([{SLOT: 1.0, RAM_GIB: 8.0}, {SLOT: 1.0, RAM_GIB: 12.0}], "needs ram_gib >= 16, the most that any of 2"),
        ([{RAM_GIB: 64.0}], "needs bench >= 1, the most that any of 1 live nodes has is 0"),
        ([{SLOT: 1.0}, {RAM_GIB: 64.0}], "no single one of 2 live nodes has all"),
        ([], "needs bench >= 1, the most that any of 0"),
    ],
)
def test_an_unmet_demand_is_named_with_the_nearest_offer(offers: list[dict[str, float]], said: str) -> None:
    """Ray alone would wait for ever and say nothing."""
    found = unmet_demand(demands(NodeClass("c", min_ram_gib=16)), offers)
    assert found.startswith(said)
    assert bool(found) == bool(said)
