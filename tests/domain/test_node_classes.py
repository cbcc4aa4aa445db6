"""Node classes: predicates on probed facts, which say what is missing."""

from __future__ import annotations

import pytest

from harness.domain.node import GIB, Gpu, NodeClass, NodeFacts

NODE = NodeFacts(
    cpu_model="cpu",
    cores=8,
    isa=("avx", "avx2"),
    ram_bytes=32 * GIB,
    gpus=(Gpu("A", 8 * GIB, "1", "u1"), Gpu("B", 24 * GIB, "1", "u2")),
    kernel="6",
    niceness=0,
    governor="performance",
    cgroup_memory_bytes=16 * GIB,
    numa_nodes=1,
    swap_bytes=0,
)


@pytest.mark.parametrize(
    "fits",
    [
        NodeClass("any"),
        NodeClass("c", min_cores=8, min_ram_gib=16, isa=("avx2",)),
        NodeClass("c", min_gpus=2),
        NodeClass("c", min_gpus=1, min_vram_gib=24),
    ],
)
def test_a_node_belongs_to_a_class_whose_demands_it_meets(fits: NodeClass) -> None:
    """Nothing is unmet at the very limit."""
    assert fits.unmet(NODE) == ""


@pytest.mark.parametrize(
    ("unfit", "said"),
    [
        (NodeClass("c", min_gpus=3), "needs 3 GPU, node has A (8 GiB), B (24 GiB)"),
        (NodeClass("c", min_gpus=2, min_vram_gib=16), "needs 2 GPU with 16 GiB"),
        (NodeClass("c", min_ram_gib=17), "needs 17 GiB of RAM, node has 16.0"),
        (NodeClass("c", min_cores=9), "needs 9 cores, node has 8"),
        (NodeClass("c", isa=("avx512f",)), "needs instruction set avx512f, node has avx, avx2"),
    ],
)
def test_an_unmet_demand_is_named_with_both_figures(unfit: NodeClass, said: str) -> None:
    """The cgroup's memory limit counts, not the machine's memory."""
    assert unfit.unmet(NODE).startswith(said)
