"""Where a series of nights changed its level: ``ruptures`` proposes, a test that knows its false alarms disposes.

Proposals are the best segmentation under a low penalty. Then the least clear change goes, one at a time, until each
that is left is clear against its own neighbours' stretch: by the scatter of the nights on its two sides, under both
estimates of the whole series' own, and by a distribution of the clearest place in nights that do not change, simulated
for each length.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import ruptures as rpt
from numpy.typing import NDArray

from harness.history.clear_by_chance import CHANCES, chance_of
from harness.history.fits import Steps, left_by_levels, steps, trend
from harness.history.noise import Floats, Noise, excursions, noise_beside, noise_of_differences, scatter_beside
from harness.history.series import ChangeKind
from harness.judging.special import ndtri, stdtr

ALPHA = 0.0015
"""A change is told where one look would find it in so few of all series that don't change."""
LEAST_NIGHTS = 10
SHORTEST = 3
"""Nights that a level lasts at least: what is shorter is an excursion."""
_LOW_PENALTY = 2.5
"""In variances and logarithms of the number of nights: low enough to propose all that the test then lets pass."""
_SURE_DROP = 5.0
"""Places whose fit is worse by no more than this (twice a log likelihood) hold the true one in 95 %."""
_LEAST_TAIL = 1e-300
_HALF_WIDTH = 2.3
"""Of an interval in standard errors: 1.96, and what is lost by looking where the change is largest."""


@dataclass(frozen=True, slots=True)
class Found:
    """One change of a series of log figures.

    Attributes:
        kind: Step or drift.
        before: Index of the last night before it; of a drift of the night at which it begins.
        after: Index of the first night after it; of a drift of the night at which it ends.
        earliest: Least index that the first night after may have (95 %).
        latest: Largest such index.
        level: Level before, log scale.
        size: Change of the level, log scale.
        error: Half of the 95 % interval of the size.
        p: Probability of one at least as clear in a series of this length that does not change.
    """

    kind: ChangeKind
    before: int
    after: int
    earliest: int
    latest: int
    level: float
    size: float
    error: float
    p: float


@dataclass(frozen=True, slots=True)
class Analysis:
    """What was found in a series.

    Attributes:
        changes: Changes in order.
        outliers: For each night whether it lies far off, alone or with one neighbour.
    """

    changes: tuple[Found, ...]
    outliers: tuple[bool, ...]


def analyse(logs: Sequence[float], alpha: float = ALPHA) -> Analysis:
    """Find the changes of a series.

    Args:
        logs: Log figures, one a night in order; nights without one are left out, not filled in.
        alpha: Error rate for one look at one series.

    Raises:
        ValueError: If a value is not finite.
    """
    raw = np.asarray(logs, dtype=np.float64)
    if not np.isfinite(raw).all():
        raise ValueError("a value is not finite")
    if len(raw) < LEAST_NIGHTS:
        return Analysis((), (False,) * len(raw))
    far = excursions(raw)
    nights = np.flatnonzero(~far)
    if len(nights) < LEAST_NIGHTS:
        return Analysis((), tuple(map(bool, far)))
    search = _Search(raw[nights])
    places = search.clear(search.proposed(), alpha)
    found = tuple(_of_all(each, nights) for each in search.described(places))
    return Analysis(found, tuple(map(bool, far)))


def _of_all(found: Found, nights: NDArray[np.intp]) -> Found:
    """The same with the indices that its nights have among all, those that lie far off included."""
    before, after, earliest, latest = (
        int(nights[each]) for each in (found.before, found.after, found.earliest, found.latest)
    )
    return replace(found, before=before, after=after, earliest=earliest, latest=latest)


def clearest(values: Floats) -> float:
    """How clear the clearest step of a whole series is, as a normal deviate: what `clear_by_chance` tabulates."""
    kept = values[~excursions(values)]
    return _Search(kept).clarity([], 0).clear if len(kept) >= LEAST_NIGHTS else 0.0


@dataclass(frozen=True, slots=True)
class _Clarity:
    """The best place of a change within its stretch.

    Attributes:
        start: Where the stretch begins.
        end: Where it ends.
        place: The best place, an index into the series.
        clear: How clear it is there, as a deviate of the normal distribution that is as rare: the smaller figure of
            both estimates of the scatter, each with what the nights of its two sides say.
        found: All places in standard errors, under the estimate that gave the smaller figure.
        noise: That estimate.
    """

    start: int
    end: int
    place: int
    clear: float
    found: Steps
    noise: Noise


class _Search:
    """One series while its changes are looked for."""

    def __init__(self, values: Floats) -> None:
        self._values = values
        self._rough = noise_of_differences(values)

    def proposed(self) -> list[int]:
        """The best segmentation under a low penalty, of the series without its autocorrelation."""
        phi = self._rough.phi
        new = np.append(self._values[:1] * (1 - phi), self._values[1:] - phi * self._values[:-1])
        penalty = _LOW_PENALTY * math.log(len(new)) * self._rough.sd**2
        found = rpt.KernelCPD(kernel="linear", min_size=SHORTEST).fit(new[:, None]).predict(pen=penalty)
        return [int(place) for place in found[:-1]]

    def clear(self, places: list[int], alpha: float) -> list[int]:
        """Those that are clear: the least clear one goes, and the others are seen again without it.

        Of several each has to be clearer: there are many ways to place two changes, and the table is of one.
        """
        while places:
            chances = [chance_of(self.clarity(places, at).clear, len(self._values)) for at in range(len(places))]
            weakest = max(range(len(places)), key=lambda at: chances[at])
            if chances[weakest] * len(places) ** 2 <= alpha:
                break
            del places[weakest]
        return places

    def described(self, places: list[int]) -> Iterator[Found]:
        """The changes at these places: steps, and what goes one way for so long that it is a drift."""
        seen = [self.clarity(places, at) for at in range(len(places))]
        for run in _same_way(seen):
            if self._is_drift(run):
                yield self._drift(run)
            else:
                yield from map(self._step, run)

    def _is_drift(self, run: Sequence[_Clarity]) -> bool:
        """Whether a straight line leaves less than the levels do, given that each more level has more to fit with."""
        start, end, noise = run[0].start, run[-1].end, run[0].noise
        stretch = self._values[start:end]
        levels = left_by_levels(stretch, [each.place - start for each in run], noise)
        return trend(stretch, noise).left < levels + 2 * (len(run) - 1) * math.log(len(stretch))

    def _step(self, seen: _Clarity) -> Found:
        at = seen.place - seen.start
        near = np.flatnonzero(seen.found.clarity**2 >= seen.found.clarity[at] ** 2 - _SURE_DROP)
        return Found(
            ChangeKind.STEP,
            before=seen.place - 1,
            after=seen.place,
            earliest=seen.start + max(1, int(near[0])),
            latest=seen.start + int(near[-1]),
            level=float(self._values[seen.start : seen.place].mean()),
            size=float(seen.found.sizes[at]),
            error=float(_HALF_WIDTH * seen.found.errors[at]),
            p=self._told(seen),
        )

    def _drift(self, run: Sequence[_Clarity]) -> Found:
        start, end = run[0].start, run[-1].end
        line = trend(self._values[start:end], run[0].noise)
        return Found(
            ChangeKind.DRIFT,
            before=start,
            after=end - 1,
            earliest=start,
            latest=end - 1,
            level=line.begin,
            size=line.change,
            error=_HALF_WIDTH * line.error,
            p=min(map(self._told, run)),
        )

    def _told(self, seen: _Clarity) -> float:
        """Its chance, of which what is below the table is not told apart."""
        return max(CHANCES[-1], chance_of(seen.clear, len(self._values)))

    def clarity(self, places: list[int], at: int) -> _Clarity:
        """How clear the change number ``at`` is between its neighbours; of no places the clearest of the series."""
        bounds = [0, *places, len(self._values)]
        start, end = (bounds[at], bounds[at + 2]) if places else (0, len(self._values))
        stretch = self._values[start:end]
        first = self._best(start, end, stretch, self._rough)
        others = [place for index, place in enumerate(places) if index != at]
        second = self._best(start, end, stretch, noise_beside(self._values, sorted([*others, first.place])))
        return min(first, second, key=lambda each: each.clear)

    @staticmethod
    def _best(start: int, end: int, stretch: Floats, noise: Noise) -> _Clarity:
        found = steps(stretch, noise)
        inner = found.clarity[SHORTEST : len(stretch) - SHORTEST + 1]
        best = SHORTEST + int(np.argmax(inner))
        beside = scatter_beside(stretch, best, noise)
        sure = Steps(found.sizes, found.errors * beside.wider)
        clear = _as_normal(float(sure.clarity[best]), beside.freedom)
        return _Clarity(start, end, start + best, clear, sure, noise)


def _as_normal(t: float, freedom: float) -> float:
    """The deviate of the normal distribution that is as rare as this one of Student's."""
    return -ndtri(max(_LEAST_TAIL, stdtr(freedom, -t)))


def _same_way(seen: Sequence[_Clarity]) -> Iterator[list[_Clarity]]:
    """Neighbouring changes of one direction together."""
    for _, run in groupby(seen, key=lambda each: each.found.sizes[each.place - each.start] > 0):
        yield list(run)
