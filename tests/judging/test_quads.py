"""Quads: four processes, and whether the first four go with what is known of their scatter."""

from dataclasses import replace

import pytest
from judging_support import ANY, BASELINE, CANDIDATE, PP, arms_runs, contrast

from harness.domain.job import Design, Job
from harness.domain.policy import Policy
from harness.domain.spread import Spread
from harness.domain.words import Throughput
from harness.judging.quads import QuadSet, quads_of
from harness.judging.sequential import Limits
from harness.judging.stopping import is_decided
from harness.judging.throughput import judge_contrast

QUIET = Spread("pp512", 0.018, 23, "calibration of a quiet day")
LIMITS = Limits(1e-3, 0.05, 24)
BUSY = ([100.0, 30.0], [40.0, 20.0])
"""One quad of a busy machine on which nothing changed: the processes of an arm differ as much as the arms."""
CLEAN = ([100.0, 101.0], [50.0, 50.5])


def _quads(baseline: list[float], candidate: list[float]) -> QuadSet:
    runs = arms_runs(baseline, candidate)
    return quads_of(runs[: len(baseline)], runs[len(baseline) :], "pp512")


def test_a_first_quad_that_differs_inside_its_arms_contradicts_a_known_spread() -> None:
    """Five known spreads between the two processes of an arm are the limit, whichever arm it is."""
    assert _quads(*BUSY).borne_out(QUIET) is None
    assert _quads(*reversed(BUSY)).borne_out(QUIET) is None
    assert _quads(*CLEAN).borne_out(QUIET) is QUIET
    for percent, known in ((8.9, QUIET), (9.5, None)):
        assert _quads([100.0, 100 + percent], [50.0, 50.0]).borne_out(QUIET) is known


def test_a_spread_known_as_nothing_is_taken_as_the_smallest() -> None:
    """Coarse times are equal by chance: 0 is not contradicted by the first two that differ by a tick."""
    nothing = replace(QUIET, quad_sd=0.0)
    assert _quads([100.0, 100.4], [100.0, 100.0]).borne_out(nothing) is nothing


def test_without_a_quad_a_spread_is_believed() -> None:
    """There is nothing yet that could contradict it."""
    assert _quads([], []).borne_out(QUIET) is QUIET
    assert _quads([], []).borne_out(None) is None


@pytest.mark.parametrize(("speeds", "is_clear"), [(BUSY, False), (CLEAN, True)])
def test_one_quad_of_a_busy_machine_decides_nothing(
    speeds: tuple[list[float], list[float]],
    is_clear: bool,
) -> None:
    """The verdict and the stopping rule agree; a loss of half in a quad whose arms are steady is decided by it."""
    runs = arms_runs(*speeds)
    found = judge_contrast(runs[:2], runs[2:], "pp512", LIMITS, spread=QUIET)
    assert (found.throughput is Throughput.REGRESSED) is is_clear
    job = Job((BASELINE, CANDIDATE), (PP,), None, ANY, Design(blocks=48), (contrast().id,), spreads=(QUIET,))
    assert is_decided(job, runs, "pp512", Policy(alpha=1e-3)) is is_clear


@pytest.mark.parametrize("believed", [False, True])
def test_a_contradicted_spread_is_told_as_known_and_not_believed(believed: bool) -> None:
    """Also at the last look, and never as if nothing were known."""
    runs = arms_runs(*(CLEAN if believed else BUSY))
    why = judge_contrast(runs[:2], runs[2:], "pp512", LIMITS, spread=QUIET).why
    assert "known spread 1.8 % from calibration of a quiet day" in why
    assert ("not believed: in the first quad the processes of one arm differ by more than 5 times that" in why) is (
        not believed
    )
    assert "no spread is known" not in why
