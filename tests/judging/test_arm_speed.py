"""What the closing table says of one arm."""

from __future__ import annotations

import math

import pytest

from harness.judging.samples import ProcessMedian, arm_speed


def medians(*speeds: float) -> list[ProcessMedian]:
    return [ProcessMedian(block, math.log(tps)) for block, tps in enumerate(speeds)]


def test_an_arm_has_its_geometric_mean_and_how_far_its_processes_scatter() -> None:
    """The scatter is a standard deviation relative to the plain mean: 50 and 200 lie 106.07 around 125."""
    found = arm_speed("ik", medians(50.0, 200.0))
    assert found is not None
    assert (found.label, found.processes, found.ms) == ("ik", 2, None)
    assert found.tps == pytest.approx(100.0)
    assert found.spread == pytest.approx(75 * math.sqrt(2) / 125)


def test_a_single_process_scatters_by_nobody_knows_what() -> None:
    """And a time to the first token stands beside its speed."""
    found = arm_speed("ik", medians(200.0), in_ms=True)
    assert found is not None
    assert (found.spread, found.processes) == (None, 1)
    assert found.ms == pytest.approx(5.0)


def test_no_process_is_no_speed() -> None:
    """Nothing is shown."""
    assert arm_speed("ik", []) is None
