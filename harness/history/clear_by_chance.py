"""How clear the clearest step of a series is where nothing changes: simulated, and read by length.

Made by ``python benchmarks/change_points.py --calibrate``: independent normal nights, 6,000 series of each length.
What is left of it where neighbours are alike is in ``docs/explanation/change-points.md``.
"""

from __future__ import annotations

import math

import numpy as np

CHANCES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
"""Shares of the series; the smallest is the least that is ever told."""
LENGTHS = (10, 12, 15, 20, 30, 45, 60, 90, 180, 365)

_CLEAR: dict[int, tuple[float, ...]] = {
    10: (1.16, 1.69, 2.03, 2.36, 2.83, 3.11, 3.52, 4.18, 4.43),
    12: (1.26, 1.77, 2.10, 2.44, 2.88, 3.28, 3.58, 4.13, 4.76),
    15: (1.34, 1.83, 2.16, 2.49, 2.99, 3.30, 3.63, 4.15, 4.64),
    20: (1.43, 1.92, 2.24, 2.56, 2.98, 3.28, 3.62, 4.14, 4.37),
    30: (1.54, 2.01, 2.35, 2.66, 3.14, 3.44, 3.64, 3.89, 4.10),
    45: (1.62, 2.12, 2.43, 2.74, 3.07, 3.32, 3.53, 3.90, 4.13),
    60: (1.69, 2.20, 2.50, 2.79, 3.12, 3.39, 3.63, 3.89, 4.15),
    90: (1.79, 2.29, 2.58, 2.83, 3.15, 3.43, 3.66, 3.90, 3.98),
    180: (1.90, 2.39, 2.68, 2.94, 3.24, 3.44, 3.69, 3.87, 4.21),
    365: (2.03, 2.51, 2.79, 3.05, 3.37, 3.57, 3.79, 4.03, 4.23),
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
