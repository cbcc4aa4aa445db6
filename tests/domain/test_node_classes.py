"""Node classes: predicates on probed facts, which say what is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.domain.node import GIB, Gpu, NodeClass, NodeFacts

NODE = NodeFacts(
    cpu_model="AMD EPYC 9454 48-Core Processor",
    cores=8,
    isa=("avx", "avx2"),
    ram_bytes=32 * GIB,
    gpus=(Gpu("A", 8 * GIB, "1", "u1", arch="7.5"), Gpu("B", 24 * GIB, "1", "u2", arch="8.10")),
    kernel="6",
    niceness=0,
    governor="performance",
    cgroup_memory_bytes=16 * GIB,
    numa_nodes=1,
    swap_bytes=0,
    os="linux",
    machine="x86_64",
)


@pytest.mark.parametrize(
    "fits",
    [
        NodeClass("any"),
        NodeClass("c", min_cores=8, min_ram_gib=16, isa=("avx2",)),
        NodeClass("c", min_gpus=2),
        NodeClass("c", min_gpus=1, min_vram_gib=24),
        NodeClass("c", min_gpus=1, gpu_name="b", gpu_vendor="nvidia", min_compute_capability="8.9"),
        NodeClass("c", cpu_model="epyc 9", os="linux", machine="x86_64"),
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
        (
            NodeClass("c", min_gpus=2, min_compute_capability="8.0"),
            "needs 2 GPU of compute capability 8.0 or more, node has A (8 GiB, compute capability 7.5), B (",
        ),
        (
            NodeClass("c", min_gpus=1, gpu_vendor="amd", gpu_name="MI*"),
            "needs 1 GPU of vendor amd named 'MI*', node has A (nvidia, 8 GiB), B (nvidia, 24 GiB)",
        ),
        (NodeClass("c", min_gpus=1, gpu_vendor="amd"), "needs 1 GPU of vendor amd, node has A (nvidia, 8 GiB)"),
        (NodeClass("c", min_gpus=1, gpu_name="A", min_vram_gib=9), "needs 1 GPU named 'A' with 9 GiB, node has"),
        (NodeClass("c", no_gpu=True), "needs a node without GPU, node has A (8 GiB), B (24 GiB)"),
        (NodeClass("c", cpu_model="*Xeon*"), "needs a processor named '*Xeon*', node has AMD EPYC 9454 48-Core"),
        (NodeClass("c", cpu_model="EPYC*"), "needs a processor named 'EPYC*', node has AMD EPYC 9454 48-Core"),
        (NodeClass("c", os="lin"), "needs operating system lin, node has linux"),
        (NodeClass("c", os="darwin"), "needs operating system darwin, node has linux"),
        (NodeClass("c", machine="aarch64"), "needs processor architecture aarch64, node has x86_64"),
    ],
)
def test_an_unmet_demand_is_named_with_both_figures(unfit: NodeClass, said: str) -> None:
    """The cgroup's memory limit counts, not the machine's memory."""
    assert unfit.unmet(NODE).startswith(said)


def test_a_gpu_without_a_known_capability_has_none() -> None:
    """Names of other vendors' architectures are no numbers, and nothing is guessed."""
    unknown = replace(NODE, gpus=(Gpu("M", 8 * GIB, "1", "u", "amd", "gfx90a"), Gpu("N", 8 * GIB, "1", "v")))
    assert (
        NodeClass("c", min_gpus=1, min_compute_capability="0.1").unmet(unknown).endswith("compute capability unknown)")
    )


def test_all_unmet_demands_are_known_with_how_far_off_they_are() -> None:
    """The nearest node is the one that lacks least."""
    lacks = NodeClass("c", min_gpus=4, min_ram_gib=32, min_cores=8).lacks(NODE)
    assert [(lack.said.split(",")[0], lack.share) for lack in lacks] == [
        ("needs 4 GPU", 0.25),
        ("needs 32 GiB of RAM", 0.5),
    ]
