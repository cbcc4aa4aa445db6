"""Which changes are found in series of nights, and what is none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from history_support import noise, stepped

from harness.history import noise as noise_of_nights
from harness.history.changes import ALPHA, LEAST_NIGHTS, analyse
from harness.history.clear_by_chance import CHANCES, chance_of
from harness.history.noise import Floats
from harness.history.series import ChangeKind


@pytest.mark.parametrize("size", [-0.10, -0.05, 0.05])
def test_a_step_is_found_where_it_is_and_its_interval_holds_it(size: float) -> None:
    (change,) = analyse(stepped(60, 40, size)).changes
    assert change.kind is ChangeKind.STEP
    assert change.earliest <= 40 <= change.latest
    assert abs(change.size - math.log1p(size)) <= change.error
    assert change.p <= ALPHA


def test_a_step_shows_on_its_third_night_and_not_before() -> None:
    """Two bad nights in a row happen; three do when something changed."""
    values = stepped(60, 57, -0.10)
    assert [len(analyse(values[:end]).changes) for end in (58, 59, 60)] == [0, 0, 1]


@pytest.mark.parametrize("nights", [[30], [30, 31], [58], [58, 59], [0], [0, 1]])
def test_one_or_two_wild_nights_are_no_change(nights: list[int]) -> None:
    """Wherever they lie; they are marked."""
    values = noise(60)
    values[nights] -= 0.7
    found = analyse(values)
    assert found.changes == ()
    assert [at for at, far in enumerate(found.outliers) if far] == nights


def test_a_wild_night_does_not_hide_a_step() -> None:
    values = stepped(60, 40, -0.05)
    values[[20, 50]] -= 0.7
    (change,) = analyse(values).changes
    assert change.earliest <= 40 <= change.latest


def test_what_goes_on_for_two_months_is_a_drift() -> None:
    """No night and no build of it is to blame."""
    values = noise(90)
    values += np.concatenate([np.zeros(10), np.linspace(0, -0.12, 70), np.full(10, -0.12)])
    (change,) = analyse(values).changes
    assert change.kind is ChangeKind.DRIFT
    assert -0.16 < change.size < -0.09


def test_more_scatter_is_no_change_of_the_level() -> None:
    values = noise(90, sd=0.005)
    values[45:] *= 5
    assert analyse(values).changes == ()


def _nights_until_told(values: Floats, first: int) -> float:
    """After how many nights from ``first`` on a look tells a change; infinite where none does."""
    looks = range(first + 1, len(values) + 1)
    return next((end - first for end in looks if analyse(values[:end]).changes), math.inf)


def test_a_machine_that_became_noisy_tells_no_change_night_after_night(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the scatter of the whole series alone, which finds steps all the time; and nights far off by it."""
    random = np.random.default_rng(5)
    noisy = [random.normal(size=75) * np.repeat([0.01, 0.03], [45, 30]) for _ in range(16)]
    told = [_nights_until_told(values, 45) for values in noisy]
    assert sum(map(math.isfinite, told)) <= 1
    monkeypatch.setattr(noise_of_nights, "_PRIOR_NIGHTS", 1e9)
    assert sum(math.isfinite(_nights_until_told(values, 45)) for values in noisy) >= 4


def test_a_tenth_in_nights_of_two_percent_is_told_within_five() -> None:
    """Half of such steps, and all within ten nights."""
    random = np.random.default_rng(6)
    stepping = [0.02 * random.normal(size=70) - 0.105 * (np.arange(70) >= 60) for _ in range(24)]
    nights = sorted(_nights_until_told(values, 60) for values in stepping)
    assert nights[12] <= 5
    assert nights[-1] <= 10


def test_many_changes_of_one_series_are_all_told() -> None:
    """Each has to be clearer where there are more of them, and it is."""
    values = noise(90)
    for first, last in ((15, 30), (45, 60), (75, 90)):
        values[first:last] -= 0.15
    assert [change.after for change in analyse(values).changes] == [15, 30, 45, 60, 75]


def test_a_loss_that_is_mended_is_two_changes() -> None:
    values = noise(90)
    values[50:60] -= 0.08
    first, second = analyse(values).changes
    assert (first.after, second.after) == (50, 60)
    assert first.size < 0 < second.size


def test_figures_that_never_differ_and_jump_a_little_are_quiet() -> None:
    """Memory is the same to the byte for weeks: a page more is nothing, a twentieth is a change."""
    assert analyse([7.0] * 30).changes == ()
    assert analyse([7.0] * 20 + [7.0005] * 20).changes == ()
    assert [change.after for change in analyse([7.0] * 20 + [7.05] * 20).changes] == [20]


def test_few_nights_say_nothing() -> None:
    assert analyse(stepped(LEAST_NIGHTS - 1, 5, -0.5)).changes == ()


def test_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        analyse([math.nan] * 20)


def test_nights_that_do_not_change_are_rarely_said_to() -> None:
    """Of 300 series some 2 are expected, of neighbours that are alike some 6; what is measured is on the page."""
    random = np.random.default_rng(11)
    series = [random.normal(size=60) * 0.03 for _ in range(300)]
    assert sum(bool(analyse(values).changes) for values in series) <= 7


def test_the_chance_falls_with_clarity_and_ends_at_the_table() -> None:
    chances = [chance_of(clear, 50) for clear in (0.0, 2.0, 3.0, 3.5, 9.0)]
    assert chances == sorted(chances, reverse=True)
    assert chances[0] == 1.0
    assert 0 < chances[-1] < CHANCES[-1] / 1000
    assert chance_of(3.5, 10_000) == chance_of(3.5, 365)
