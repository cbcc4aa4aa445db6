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
_FAR = 3.5
_TO_SD = 1.4826
"""Of a normal distribution the standard deviation over the median of absolute values."""
_MOST_ALIKE = 0.9


@dataclass(frozen=True, slots=True)
class Noise:
    """The scatter of nights around a level.

    Attributes:
        phi: Correlation of neighbouring nights, 0 to 0.9.
        sd: Standard deviation of what is new in each night, log scale.
    """

    phi: float
    sd: float


def without_excursions(values: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Put nights that lie far off, alone or with one neighbour, to the median of the nights around them.

    Not to the edge of what is near: two such nights beside an ordinary one would still look like a step.

    Args:
        values: Log figures, one a night.

    Returns:
        The values, and which were moved.
    """
    if len(values) < _WINDOW:
        return values, np.zeros(len(values), dtype=bool)
    inner = np.median(np.lib.stride_tricks.sliding_window_view(values, _WINDOW), axis=1)
    half = _WINDOW // 2
    around = np.concatenate([np.repeat(inner[:1], half), inner, np.repeat(inner[-1:], half)])
    most = _FAR * max(LEAST_SD, _robust_sd(np.diff(values)) / np.sqrt(2))
    far = np.abs(values - around) > most
    return np.where(far, around, values), far


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


def wider_beside(values: Floats, place: int, noise: Noise) -> float:
    """By how much a step is less sure than the noise says, since one side of it scatters more: at least 1.

    Args:
        values: A stretch of log figures.
        place: Index at which the new level begins.
        noise: How the whole series scatters.
    """
    usual = noise.sd**2 / (1 - noise.phi**2)
    sides = (values[:place], values[place:])
    seen = sum(max(usual, float(side.var(ddof=1))) / len(side) for side in sides)
    return float(np.sqrt(seen / sum(usual / len(side) for side in sides)))


def _bounded(phi: float) -> float:
    return min(max(phi, 0.0), _MOST_ALIKE)


def _robust_sd(values: Floats) -> float:
    return _TO_SD * float(np.median(np.abs(values)))


def _winsorised_square(values: Floats) -> float:
    most = 3 * _robust_sd(values)
    return float(np.mean(np.minimum(values**2, most**2)))
