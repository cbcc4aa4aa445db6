"""How long a calibration would have to be, from what a shorter one measured."""

from __future__ import annotations

import pytest

from harness.domain.workload import Workload
from harness.judging.budget import Pace
from harness.judging.sequential import Limits
from harness.running.calibration_needs import ALIKE_SHARE, Measured
from harness.running.calibration_plants import PlannedPlant

PP, TG = Workload(32, 0), Workload(0, 4)
LIMITS = Limits(0.001, 0.05, 12)
PROCESS_S = 3.0


def measured(quad_sd: float, *plants: PlannedPlant) -> Measured:
    names = [load.name for load in (PP, TG)]
    return Measured(
        quad_sds=dict.fromkeys(names, quad_sd),
        limits=dict.fromkeys(names, LIMITS),
        pace=lambda _loss: Pace(PROCESS_S),
        plants=plants,
        most_quads=LIMITS.max_quads,
    )


def test_without_plants_three_quads_are_enough() -> None:
    assert measured(0.02).minutes(0.1) == pytest.approx(Pace(PROCESS_S).minutes(3) / ALIKE_SHARE)


def test_what_was_not_enough_is_never_told_again() -> None:
    assert (measured(0.02).minutes(9.0) or 0.0) > 9.0


def test_plants_have_to_show_at_the_scatter_that_so_few_quads_prove() -> None:
    """More scatter takes more minutes; two plants share their part of the time."""
    slept, threads = PlannedPlant((PP, TG)), PlannedPlant((PP, TG), (2, 4))
    quiet, noisy = measured(0.01, slept).minutes(0.1), measured(0.06, slept).minutes(0.1)
    both = measured(0.01, slept, threads).minutes(0.1)
    assert quiet is not None
    assert noisy is not None
    assert both is not None
    assert (measured(0.01).minutes(0.1) or 0.0) < quiet < noisy
    assert both > quiet


def test_some_scatter_no_minutes_overcome() -> None:
    """Of the policy's twelve quads a loss of 20 % is not sure to show in this noise."""
    assert measured(0.5, PlannedPlant((PP,), (2, 4))).minutes(0.1) is None
