"""How nights scatter where nothing changes: single strange nights are told apart, and neighbours may be alike.

Nights are taken as a first-order autoregression around a level. Both estimates here survive steps: one looks at
differences of nights, in which a step is one large value among many, the other at what is left beside given steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEAST_SD = 1e-3
"""No figure is taken to be steadier than 0.1 %: memory that is the same to the byte night after night is, and a change
of one page is nothing to tell."""

_WINDOW = 5
"""A median of five nights follows what lasts three of them, and nothing shorter."""
_NEAR = 14
"""From so many differences around it a night's own neighbourhood tells how far is far."""
_FAR = 3.5
_TO_SD = 1.4826
"""Of a normal distribution the standard deviation over the median of absolute values."""
_MOST_ALIKE = 0.9
_PRIOR_NIGHTS = 4.0
"""So many nights the scatter of the whole series counts beside those of one side of a step. Without them three nights
that are alike by chance look like a sure step; with many a machine that became noisy has steps all the time."""
_LEAST_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Noise:
    """The scatter of nights around a level.

    Attributes:
        phi: Correlation of neighbouring nights, 0 to 0.9.
        sd: Standard deviation of what is new in each night, log scale.
    """

    phi: float
    sd: float


def excursions(values: Floats) -> NDArray[np.bool_]:
    """Which nights lie far off, alone or with one neighbour: nothing is to be made of them.

    Far is measured by the nights around, too: where a machine became noisy no night is strange for being as noisy as
    the others.

    Args:
        values: Log figures, one a night.
    """
    if len(values) < _WINDOW:
        return np.zeros(len(values), dtype=bool)
    around = _running_median(values, _WINDOW)
    steps = np.abs(np.diff(values))
    usual = np.full(len(values), np.median(steps))
    if len(steps) > _NEAR:
        usual = np.maximum(usual, _running_median(np.append(steps, steps[-1]), _NEAR))
    far: NDArray[np.bool_] = np.abs(values - around) > _FAR * np.maximum(LEAST_SD, _TO_SD * usual / np.sqrt(2))
    return far


def _running_median(values: Floats, window: int) -> Floats:
    """The median of so many values around each; at the ends that of the first and the last so many."""
    inner = np.median(np.lib.stride_tricks.sliding_window_view(values, window), axis=1)
    before = (len(values) - len(inner)) // 2
    after = len(values) - len(inner) - before
    return np.concatenate([np.repeat(inner[:1], before), inner, np.repeat(inner[-1:], after)])


def noise_of_differences(values: Floats) -> Noise:
    """From nights one and two apart: neighbours that are alike differ less than nights two apart."""
    near, far = _winsorised_square(np.diff(values)), _winsorised_square(values[2:] - values[:-2])
    phi = _bounded(far / near - 1) if near > 0 else 0.0
    # Differences of an autoregression have the variance 2 sd^2 / (1 + phi).
    return Noise(phi, max(LEAST_SD, float(np.sqrt(near * (1 + phi) / 2))))


def noise_beside(values: Floats, steps: Sequence[int]) -> Noise:
    """From what is left when each stretch between steps has its own level, corrected for what the levels take.

    Args:
        values: Log figures.
        steps: Indices at which a new level begins.
    """
    bounds = [0, *steps, len(values)]
    left = np.concatenate([values[start:end] - values[start:end].mean() for start, end in pairwise(bounds)])
    most = _FAR * _robust_sd(left)
    left = np.clip(left, -most, most)
    n, levels = len(left), len(bounds) - 1
    total = float(left @ left)
    found = float(left[1:] @ left[:-1]) / total if total > 0 else 0.0
    phi = _bounded(found + (levels + 4 * found) / n)
    new = left[1:] - phi * left[:-1]
    freedom = max(1, n - levels - 2)
    return Noise(phi, max(LEAST_SD, float(np.sqrt(new @ new / freedom))))


@dataclass(frozen=True, slots=True)
class Beside:
    """How sure a step is of which each side has a scatter of its own.

    Attributes:
        wider: Its standard error over the one that the noise of the whole series says.
        freedom: Degrees of freedom of that standard error, as Welch and Satterthwaite have them.
    """

    wider: float
    freedom: float


def scatter_beside(values: Floats, place: int, noise: Noise) -> Beside:
    """What the nights on both sides of a step say of their scatter, the series' own counting as a few nights more.

    Args:
        values: A stretch of log figures.
        place: Index at which the new level begins.
        noise: How the whole series scatters.
    """
    usual = noise.sd**2 / (1 - noise.phi**2)
    parts, expected, below = [], 0.0, 0.0
    for side in (values[:place], values[place:]):
        nights, alike = len(side), _of_mean(len(side), noise.phi)
        # Nights that are alike lie nearer to their own mean than the scatter is wide.
        seen = float(side.var(ddof=1)) * (nights - 1) / max(_LEAST_SHARE * (nights - 1), nights - alike)
        freedom = _PRIOR_NIGHTS + nights - 1
        variance = (_PRIOR_NIGHTS * usual + (nights - 1) * seen) / freedom
        parts.append(variance * alike / nights)
        expected += usual * alike / nights
        below += parts[-1] ** 2 / freedom
    return Beside(float(np.sqrt(sum(parts) / expected)), sum(parts) ** 2 / below)


def _of_mean(nights: int, phi: float) -> float:
    """The variance of a mean over that of as many independent nights."""
    apart = np.arange(1, nights)
    return 1 + 2 * float(np.sum((1 - apart / nights) * phi**apart))


def _bounded(phi: float) -> float:
    return min(max(phi, 0.0), _MOST_ALIKE)


def _robust_sd(values: Floats) -> float:
    return _TO_SD * float(np.median(np.abs(values)))


def _winsorised_square(values: Floats) -> float:
    most = 3 * _robust_sd(values)
    return float(np.mean(np.minimum(values**2, most**2)))
