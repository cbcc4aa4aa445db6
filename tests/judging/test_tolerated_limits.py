"""What an arm's own noise widens, and what of it nobody believes."""

from __future__ import annotations

from dataclasses import replace

from harness.domain.tolerance import ContrastClass
from harness.judging.outputs_tolerated import tolerated
from harness.judging.quants import FINE, Quant
from harness.judging.tolerances import OWN_FACTOR, Allowed, floor_of, times

FLOOR = floor_of(Quant.FULL, ContrastClass.FLAGS)
WIDEST = floor_of(Quant.FULL, ContrastClass.BACKEND)
BELIEVED = floor_of(Quant.COARSE, ContrastClass.BACKEND)
"""What no sound arm was seen beyond."""
ALLOWED = Allowed(FLOOR, "shipped", WIDEST)


def test_without_own_noise_the_floor_holds() -> None:
    """And all of it is believed."""
    found = tolerated(ALLOWED, FINE, {}, {}, 0.0)
    assert (found.figures, found.hard, found.believed, found.notes) == (FLOOR, FINE.flip, None, ())


def test_noise_of_a_sound_baseline_widens_the_limits_and_is_believed() -> None:
    """Some factor of it, where that is more than the floor."""
    own = times(FLOOR, 2 / OWN_FACTOR)
    found = tolerated(ALLOWED, FINE, {"batch": own}, {}, 0.0)
    assert found.figures == times(own, OWN_FACTOR)
    assert (found.believed, found.notes) == (None, ())
    assert "and where that is more" in found.source


def test_noise_of_a_baseline_that_no_sound_one_shows_is_tolerated_and_not_believed() -> None:
    """By its figures alone: no flip is needed. The limits that are believed end where sound arms end."""
    own = times(BELIEVED, 10)
    found = tolerated(ALLOWED, FINE, {"batch": own}, {}, 0.0)
    assert found.figures == times(own, OWN_FACTOR)
    assert found.believed is not None
    assert found.believed.figures == BELIEVED
    assert found.believed.hard == FINE.flip
    assert [f"harmless (mean {own.mean:.2g} by batch)" in note for note in found.notes] == [True]


def test_a_flip_of_the_baseline_that_no_sound_one_shows_is_not_believed() -> None:
    """By the flip alone, whose margin is believed so far as rounding explains it."""
    found = tolerated(ALLOWED, FINE, {"batch": times(FLOOR, 0.1)}, {}, 5.0)
    assert found.hard == 5.0 * OWN_FACTOR
    assert found.believed is not None
    assert found.believed.hard == OWN_FACTOR * FINE.flip
    assert found.believed.figures == FLOOR


def test_a_candidates_noise_is_believed_as_far_as_the_widest_floor_or_the_baselines_own() -> None:
    """A candidate that is broken under another batch is not excused by it."""
    wild = times(BELIEVED, 10)
    found = tolerated(ALLOWED, FINE, {}, {"batch": wild}, 0.0)
    assert found.figures == WIDEST
    assert found.believed is None
    assert "the candidate differs from itself" in found.notes[0]
    both = tolerated(ALLOWED, FINE, {"batch": times(WIDEST, 2 / OWN_FACTOR)}, {"batch": wild}, 0.0)
    assert both.figures == times(WIDEST, 2)
    small = {"batch": times(WIDEST, 0.5 / OWN_FACTOR)}
    calm = tolerated(replace(ALLOWED, floor=times(FLOOR, 1e-3)), FINE, {}, small, 0.0)
    assert calm.figures == times(WIDEST, 0.5)
    assert calm.notes == ()
