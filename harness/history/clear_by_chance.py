"""How clear the clearest step of a series is where nothing changes: simulated, and read by length.

Made by ``python benchmarks/change_points.py --calibrate``: independent normal nights, 20,000 series of each length.
What is left of it where neighbours are alike is in ``docs/explanation/change-points.md``.
"""

from __future__ import annotations

import math

import numpy as np

CHANCES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
"""Shares of the series; the smallest is the least that is ever told."""
LENGTHS = (10, 12, 15, 20, 30, 45, 60, 90, 180, 365)

_CLEAR: dict[int, tuple[float, ...]] = {
    10: (1.18, 1.68, 1.99, 2.28, 2.67, 2.98, 3.24, 3.56, 3.90),
    12: (1.28, 1.77, 2.08, 2.39, 2.77, 3.05, 3.31, 3.64, 3.86),
    15: (1.38, 1.85, 2.17, 2.46, 2.84, 3.10, 3.42, 3.81, 4.05),
    20: (1.46, 1.94, 2.24, 2.54, 2.88, 3.17, 3.44, 3.72, 4.01),
    30: (1.58, 2.05, 2.36, 2.65, 3.01, 3.27, 3.53, 3.85, 4.09),
    45: (1.67, 2.15, 2.46, 2.74, 3.07, 3.31, 3.52, 3.87, 4.11),
    60: (1.73, 2.22, 2.52, 2.77, 3.10, 3.34, 3.55, 3.83, 4.05),
    90: (1.82, 2.31, 2.60, 2.86, 3.19, 3.42, 3.64, 3.90, 4.04),
    180: (1.94, 2.42, 2.71, 2.96, 3.27, 3.49, 3.72, 3.93, 4.13),
    365: (2.06, 2.54, 2.82, 3.07, 3.37, 3.59, 3.79, 4.02, 4.25),
}
"""By length: the clarity that so many series exceed, in standard errors."""


def chance_of(clear: float, nights: int) -> float:
    """The share of series that don't change and whose clearest step is at least this clear.

    Args:
        clear: In standard errors.
        nights: Length of the series, at least the shortest of the table; beyond the longest that one counts.

    Returns:
        Between 1 and 0.001: what is rarer is not told apart.
    """
    logs = [math.log(length) for length in LENGTHS]
    row = [float(np.interp(math.log(nights), logs, column)) for column in zip(*_CLEAR.values(), strict=True)]
    if clear < row[0]:
        return 1.0
    return math.exp(float(np.interp(clear, row, [math.log(chance) for chance in CHANCES])))
