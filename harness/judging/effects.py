"""A log ratio with the components of its variance: some measured, some assumed.

The estimate is d, a difference of mean logarithms. Its variance is a sum V = v1 + v2 + ... of independent components,
each an estimate with its own degrees of freedom f1, f2, ... (infinite where the component is not estimated but known
or assumed). By Welch and Satterthwaite d / sqrt(V) is taken as t-distributed with V^2 / (v1^2/f1 + v2^2/f2 + ...)
degrees of freedom: those of the chi-squared distribution with the same first two moments as V. Components of infinite
f add nothing below the line: an estimate whose variance is wholly assumed is judged by the normal distribution.

The approximation has a flaw where a small known component joins an estimated one of few degrees of freedom: V grows
little and the degrees of freedom much, so that the tail gets lighter and an assumption makes a difference more certain.
So nothing is ever taken as more certain than by its estimated components alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.judging.intervals import LogMean
from harness.judging.special import stdtr, stdtrit

_SMALLEST_P = 1e-6
_MAX_EXPONENT = 700.0
"""``math.exp`` overflows just above."""
ASSUMED = math.inf
"""Degrees of freedom of a component that is not estimated."""


@dataclass(frozen=True, slots=True)
class Component:
    """One part of the variance of an estimate.

    Attributes:
        variance: On the log scale, of the estimate itself: not of one value.
        df: Degrees of freedom that it rests on.
    """

    variance: float
    df: float

    def scaled(self, factor: float) -> Component:
        """The same part of an estimate that is ``sqrt(factor)`` times as wide."""
        return Component(self.variance * factor, self.df)


@dataclass(frozen=True, slots=True)
class Effect:
    """A log ratio that can be tested.

    Attributes:
        mean: Natural log of candidate speed over baseline speed.
        components: The parts of its variance.
    """

    mean: float
    components: tuple[Component, ...]

    @classmethod
    def of_pairs(cls, log_ratios: Sequence[float], least_sd: float = 0.0) -> Effect:
        """The mean of pairs' log ratios, with the variance that they show.

        Args:
            log_ratios: One for each pair.
            least_sd: A smaller scatter of the pairs is taken as this.

        Raises:
            ValueError: If there are fewer than two, or one is not finite.
        """
        mean = LogMean.of(log_ratios)
        return cls(mean.mean, (Component(max(mean.standard_error**2, least_sd**2 / mean.n), mean.n - 1),))

    @property
    def ratio(self) -> float:
        """Candidate speed over baseline speed."""
        return bounded_exp(self.mean)

    def interval(self, alpha: float) -> tuple[float, float]:
        """Two-sided interval of the ratio that holds 1 - alpha."""
        half = max(float(stdtrit(df, 1 - alpha / 2)) * error for error, df in self._views())
        return bounded_exp(self.mean - half), bounded_exp(self.mean + half)

    def p_two_sided(self) -> float:
        """Probability of an estimate at least this far from 0 if it were 0. Without any variance: 1 at 0, else 0."""
        return min(1.0, 2 * max(_tail(abs(self.mean), error, df) for error, df in self._views()))

    def is_within(self, margin: float, alpha: float) -> bool:
        """Whether two one-sided tests show the ratio between 1 / (1 + margin) and 1 + margin.

        Args:
            margin: Relative change.
            alpha: Error rate of each test.
        """
        distance = math.log1p(margin) - abs(self.mean)
        return max(_tail(distance, error, df) for error, df in self._views()) < alpha

    def _views(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Standard error and degrees of freedom, of all components and of the estimated ones."""
        estimated = tuple(part for part in self.components if part.df != ASSUMED)
        return _pooled(self.components), _pooled(estimated)


def _pooled(components: Sequence[Component]) -> tuple[float, float]:
    """Standard error and degrees of freedom, by Welch and Satterthwaite."""
    total = sum(part.variance for part in components)
    # Shares instead of squares: tiny variances squared vanish.
    below = sum((part.variance / total) ** 2 / part.df for part in components) if total else 0.0
    return math.sqrt(total), 1 / below if below else ASSUMED


def _tail(distance: float, error: float, df: float) -> float:
    """One-sided p-value of an estimate this far beyond a bound; a negative distance falls short of it."""
    if error == 0:
        return 0.0 if distance > 0 else 1.0
    return float(stdtr(df, -distance / error))


def p_text(p: float) -> str:
    """A p-value in words: how far out a tail lies is not known that well."""
    return "p < 1e-6" if p < _SMALLEST_P else f"p = {p:.2g}"


def bounded_exp(value: float) -> float:
    """The exponential function where it neither overflows nor vanishes."""
    return math.exp(max(-_MAX_EXPONENT, min(_MAX_EXPONENT, value)))
