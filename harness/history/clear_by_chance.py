"""How clear the clearest step of a series is where nothing changes: simulated, and read by length.

Made by ``python benchmarks/change_points.py --calibrate``: normal nights whose neighbours correlate by 0.3, 6,000
series of each length. What is left of it on other nights is in ``docs/explanation/change-points.md``.
"""

from __future__ import annotations

import math

import numpy as np

CHANCES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
"""Shares of the series; the smallest is the least that is ever told."""
_FROM = CHANCES.index(0.02)
"""From here on the tail goes on as it began, for what is rarer than the table."""
LENGTHS = (10, 12, 15, 20, 30, 45, 60, 90, 180, 365)

_CLEAR: dict[int, tuple[float, ...]] = {
    10: (1.29, 1.86, 2.18, 2.42, 2.79, 3.03, 3.17, 3.51, 3.68),
    12: (1.49, 2.04, 2.38, 2.68, 3.05, 3.27, 3.48, 3.69, 3.76),
    15: (1.62, 2.13, 2.47, 2.79, 3.15, 3.44, 3.67, 3.98, 4.09),
    20: (1.70, 2.21, 2.56, 2.85, 3.27, 3.48, 3.73, 4.10, 4.19),
    30: (1.81, 2.30, 2.62, 2.93, 3.31, 3.58, 3.85, 4.17, 4.43),
    45: (1.87, 2.35, 2.68, 2.98, 3.36, 3.59, 3.93, 4.27, 4.38),
    60: (1.92, 2.44, 2.73, 3.00, 3.39, 3.70, 3.94, 4.30, 4.52),
    90: (1.97, 2.47, 2.76, 3.05, 3.39, 3.66, 3.85, 4.17, 4.33),
    180: (2.05, 2.53, 2.82, 3.07, 3.38, 3.60, 3.83, 4.15, 4.38),
    365: (2.13, 2.61, 2.90, 3.15, 3.48, 3.67, 3.91, 4.19, 4.37),
}
"""By length: the clarity that so many series exceed."""


def chance_of(clear: float, nights: int) -> float:
    """The share of series that don't change and whose clearest step is at least this clear.

    Args:
        clear: As of `changes.clearest`.
        nights: Length of the series, at least the shortest of the table; beyond the longest that one counts.

    Returns:
        At most 1. What is below the table is as rare as its last figures let expect: to compare with, not to tell.
    """
    logs = [math.log(length) for length in LENGTHS]
    row = [float(np.interp(math.log(nights), logs, column)) for column in zip(*_CLEAR.values(), strict=True)]
    if clear < row[0]:
        return 1.0
    if clear > row[-1]:
        steepness = math.log(CHANCES[_FROM] / CHANCES[-1]) / (row[-1] - row[_FROM])
        return CHANCES[-1] * math.exp(-steepness * (clear - row[-1]))
    return math.exp(float(np.interp(clear, row, [math.log(chance) for chance in CHANCES])))
