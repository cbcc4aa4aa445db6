"""How clearly a stretch of nights has a step at each place, or a trend, when neighbours may be alike.

Generalised least squares under an autoregression, with what is needed for all places of a step at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.history.noise import Floats, Noise


@dataclass(frozen=True, slots=True)
class Steps:
    """A step at every place of a stretch; the place is the first night of the new level.

    Attributes:
        sizes: Sizes, log scale; index 0 is no step.
        errors: Standard errors of the sizes.
    """

    sizes: Floats
    errors: Floats

    @property
    def clarity(self) -> Floats:
        """Sizes in standard errors, without sign."""
        return np.abs(self.sizes) / self.errors


def steps(values: Floats, noise: Noise) -> Steps:
    """Fit a level and a step at each place.

    Args:
        values: Log figures, at least 3.
        noise: How they scatter.
    """
    n, phi = len(values), noise.phi
    new, first = _whitened(values, phi), np.sqrt(1 - phi**2)
    share = 1 - phi
    after = n - 1 - np.arange(1, n)
    level = (1 - phi**2) + (n - 1) * share**2
    step = 1 + after * share**2
    both = share + after * share**2
    of_level = first * new[0] + share * new[1:].sum()
    of_step = new[1:] + share * np.append(np.cumsum(new[:1:-1])[::-1], 0.0)
    determinant = level * step - both**2
    sizes = (level * of_step - both * of_level) / determinant
    errors = noise.sd * np.sqrt(level / determinant)
    return Steps(np.append(0.0, sizes), np.append(1.0, errors))


@dataclass(frozen=True, slots=True)
class Trend:
    """A straight line through a stretch.

    Attributes:
        begin: Its level on the first night, log scale.
        change: Its rise from the first night to the last.
        error: Standard error of the rise.
        left: Sum of squares that it leaves, in units of the noise's variance.
    """

    begin: float
    change: float
    error: float
    left: float

    @property
    def clarity(self) -> float:
        """The rise in standard errors, without sign."""
        return abs(self.change) / self.error


def trend(values: Floats, noise: Noise) -> Trend:
    """Fit a straight line; arguments as of `steps`."""
    n = len(values)
    place = np.linspace(0.0, 1.0, n)
    design = np.column_stack([_whitened(np.ones(n), noise.phi), _whitened(place, noise.phi)])
    new = _whitened(values, noise.phi)
    inverse = np.linalg.inv(design.T @ design)
    begin, change = inverse @ design.T @ new
    left = new - design @ np.array([begin, change])
    return Trend(
        float(begin), float(change), float(noise.sd * np.sqrt(inverse[1, 1])), float(left @ left) / noise.sd**2
    )


def left_by_levels(values: Floats, places: list[int], noise: Noise) -> float:
    """The sum of squares that levels leave, in units of the noise's variance.

    Args:
        values: Log figures.
        places: Indices at which a new level begins.
        noise: How they scatter.
    """
    columns = [np.ones(len(values)), *((np.arange(len(values)) >= place).astype(np.float64) for place in places)]
    design = np.column_stack([_whitened(column, noise.phi) for column in columns])
    new = _whitened(values, noise.phi)
    found, *_ = np.linalg.lstsq(design, new, rcond=None)
    left = new - design @ found
    return float(left @ left) / noise.sd**2


def _whitened(values: Floats, phi: float) -> Floats:
    new = np.empty_like(values)
    new[0] = values[0] * np.sqrt(1 - phi**2)
    new[1:] = values[1:] - phi * values[:-1]
    return new
