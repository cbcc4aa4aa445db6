"""Cases against nodes."""

from __future__ import annotations

from planning_support import matrix, node

from harness.domain.node import NodeClass
from harness.domain.words import Status
from harness.planning.arms import Workshop
from harness.planning.expand import expand
from harness.planning.fit import fit, misfit

MADE = matrix(
    node_classes={"cpu": {}, "gpu": {"min_gpus": 1, "min_vram_gib": 16.0}, "big": {"min_ram_gib": 100}},
    flags={"fmoe": 1},
    workloads=[{"pp": 64}],
)


def test_a_case_that_no_node_fits_is_not_applicable_with_the_reason() -> None:
    """The reason has both figures; what fits some node stays open; unsupported stays unsupported."""
    found = {case.id: (case.status, case.reason) for case in fit(expand(MADE), [node(), node(gpus=1, vram_gib=8)])}
    assert found["throughput/tiny/ik/pp64@cpu"] == (None, "")
    assert found["throughput/tiny/ik/pp64@gpu"] == (
        Status.NOT_APPLICABLE,
        (
            "no node of 2 is of class gpu: the nearest one (Test CPU, 8 cores, 64 GiB, 1 x Test GPU): "
            "needs 1 GPU with 16 GiB, node has Test GPU (8 GiB)"
        ),
    )
    assert found["throughput/tiny/ik/pp64@big"][1].endswith("needs 100 GiB of RAM, node has 64.0")
    assert found["throughput/tiny/mainline/pp64@gpu"][0] is Status.UNSUPPORTED


def test_all_that_the_nearest_node_lacks_is_said() -> None:
    """A person who mends one demand is not to find the next one afterwards."""
    wanted = NodeClass("c", min_gpus=1, gpu_name="*H200*", min_cores=16, os="windows")
    nodes = [node(cores=1), node(gpus=1, cores=12), node(gpus=1, cores=2)]
    assert misfit(wanted, nodes) == (
        "no node of 3 is of class c: the nearest one (Test CPU, 12 cores, 64 GiB, 1 x Test GPU): "
        "needs 1 GPU named '*H200*', node has Test GPU (24 GiB); needs 16 cores, node has 12; "
        "needs operating system windows, node has an unknown one"
    )
    assert misfit(NodeClass("c", no_gpu=True), nodes) == ""


def test_what_is_asked_of_gpus_asks_for_one() -> None:
    """A class with a GPU's memory and no count would be met by every node."""
    classes = matrix(node_classes={"a": {"min_vram_gib": 1.0}, "b": {"gpu_name": "*H200*"}, "c": {"min_cores": 1}})
    assert [each.min_gpus for each in Workshop(classes, {}).node_classes] == [1, 1, 0]


def test_one_fitting_node_is_enough() -> None:
    """The fleet is as good as its best node."""
    found = {case.id: case.status for case in fit(expand(MADE), [node(), node(gpus=2)])}
    assert found["throughput/tiny/ik/pp64@gpu"] is None


def test_an_empty_fleet_fits_nothing() -> None:
    """No nodes is said as such."""
    reasons = {case.reason for case in fit(expand(MADE), []) if case.status is Status.NOT_APPLICABLE}
    assert "no node is of class cpu: there are no nodes" in reasons


def test_a_buffer_of_a_gpu_that_no_job_sees_is_not_applicable_with_the_reason() -> None:
    """By the GPUs that a job of the class gets: as many as the class asks for, or all that there are."""
    made = matrix(
        builds={"ik": {"fork": "ik_llama.cpp", "path": "/b/llama-bench"}},
        node_classes={"any": {}, "one": {"min_gpus": 1}, "bare": {"no_gpu": True}},
        flags={"ot": "exps=CUDA1"},
        workloads=[{"pp": 64}],
    )
    nodes = [node(), node(gpus=2)]
    found = {case.case.node_class.name: (case.status, case.reason) for case in fit(expand(made), nodes)}
    assert found["any"] == (None, "")
    assert found["one"] == (Status.NOT_APPLICABLE, "ot sends tensors to CUDA1: a job of class one has 1 GPU")
    assert found["bare"][1] == "ot sends tensors to CUDA1: a job of class bare has no GPU"
    assert {case.reason for case in fit(expand(made), [node(), node(gpus=1)])} > {
        "ot sends tensors to CUDA1: a job of class any has 1 GPU"
    }
