"""When the sequential rule looks, and how much of its error rates each look may spend.

Every look has a fixed share, so that their sum bounds the error rate whatever the looks have to do with each other
(Bonferroni), and so that no look depends on how many quads there will be. The last quad of a budget gets what is left.
"""

from __future__ import annotations

import math
from functools import lru_cache

from harness.judging.special import ndtri, stdtr, stdtrit

_DIFFERENCE_SHARES = {
    1: 1 / 10,
    **dict.fromkeys(range(2, 13), 1 / 30),
    **dict.fromkeys((14, 16, 20, 24, 28, 32, 40, 48, 64, 96), 1 / 20),
}
"""Quads at which it is looked: share of alpha. At small error rates an even split costs little and finds early. The
first quad gets more, so that a known spread decides what is many spreads away."""

EQUIVALENCE_ALPHA = 0.05
"""Error rate of "equivalent" on each of its two sides, over all looks."""

EQUIVALENCE_SHARES = (0.4, 0.2, 0.1, 0.1, 0.1, 0.1)
"""Shares of the looks that were really made: one that can't succeed for lack of data costs nothing."""

_LARGE = 1e9
"""Degrees of freedom from which the t distribution is the normal one."""


def difference_share(quads: int) -> float:
    """The part of alpha that this look may spend on "different"; 0 where it is not looked."""
    return _DIFFERENCE_SHARES.get(quads, 0.0)


def next_look(quads: int, max_quads: int) -> int:
    """Quads in all at which it is looked next."""
    return min((look for look in _DIFFERENCE_SHARES if quads < look < max_quads), default=max_quads)


@lru_cache(maxsize=1 << 16)
def critical(df: float, tail: float) -> float:
    """How many standard errors leave ``tail`` above them; infinite where nothing may be spent."""
    if tail <= 0 or df <= 0:
        return math.inf
    return -float(ndtri(tail) if df >= _LARGE else stdtrit(df, tail))


def p_two_sided(standard_errors: float, df: float) -> float:
    """Probability of a mean at least so many standard errors from 0 if it were 0."""
    return 2.0 * float(stdtr(min(df, _LARGE), -abs(standard_errors)))
