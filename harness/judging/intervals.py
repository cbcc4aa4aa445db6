"""The t interval and test of a mean on a log scale, defined for zero variance too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from harness.judging.special import stdtr, stdtrit

_MAX_EXPONENT = 700.0
"""``math.exp`` overflows just above."""


@dataclass(frozen=True, slots=True)
class LogMean:
    """Mean of log values with what is needed for tests and intervals.

    Attributes:
        mean: Mean of the logarithms.
        standard_error: Of the mean; 0 where all values are equal.
        n: Number of values, at least 2.
    """

    mean: float
    standard_error: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> LogMean:
        """Sum values up.

        Raises:
            ValueError: If there are fewer than two, or one is not finite.
        """
        if len(values) < 2:  # noqa: PLR2004 - a spread needs two
            raise ValueError(f"a spread needs two values, got {len(values)}")
        if not all(map(math.isfinite, values)):
            raise ValueError("a value is not finite")
        return cls(fmean(values), stdev(values) / math.sqrt(len(values)), len(values))

    @property
    def factor(self) -> float:
        """The mean, back from the log scale: a ratio or a speed."""
        return exp_bounded(self.mean)

    def interval(self, alpha: float) -> tuple[float, float]:
        """Two-sided interval that holds 1 - alpha, back from the log scale."""
        half = float(stdtrit(self.n - 1, 1 - alpha / 2)) * self.standard_error
        return exp_bounded(self.mean - half), exp_bounded(self.mean + half)

    def p_two_sided(self) -> float:
        """Probability of a mean at least this far from 0 if it were 0. Without any variance: 1 at 0, else 0."""
        if self.standard_error == 0:
            return 1.0 if self.mean == 0 else 0.0
        return float(2 * stdtr(self.n - 1, -abs(self.mean) / self.standard_error))


def exp_bounded(value: float) -> float:
    """Back from the log scale, without overflow."""
    return math.exp(max(-_MAX_EXPONENT, min(_MAX_EXPONENT, value)))
