"""Cases against nodes."""

from __future__ import annotations

from planning_support import matrix, node

from harness.domain.words import Status
from harness.planning.expand import expand
from harness.planning.fit import fit

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
        "no node is of class gpu: "
        + "; ".join(f"needs 1 GPU with 16 GiB, node has {has}" for has in ("none", "Test GPU (8 GiB)")),
    )
    assert found["throughput/tiny/ik/pp64@big"][1].endswith("needs 100 GiB of RAM, node has 64.0")
    assert found["throughput/tiny/mainline/pp64@gpu"][0] is Status.UNSUPPORTED


def test_one_fitting_node_is_enough() -> None:
    """The fleet is as good as its best node."""
    found = {case.id: case.status for case in fit(expand(MADE), [node(), node(gpus=2)])}
    assert found["throughput/tiny/ik/pp64@gpu"] is None


def test_an_empty_fleet_fits_nothing() -> None:
    """No nodes is said as such."""
    reasons = {case.reason for case in fit(expand(MADE), []) if case.status is Status.NOT_APPLICABLE}
    assert "no node is of class cpu: there are no nodes" in reasons
