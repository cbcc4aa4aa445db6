"""Quads to a decision, look by look: regressed, improved, equivalent, or not yet known.

In words. The datum is a quad's log ratio; looked at are the mean of all quads so far, their scatter and their number.

*Scatter.* Where a spread is known beforehand it counts like a few quads more: the variance is the mean of the known
one and that of the data, weighted by degrees of freedom (a moderated t). Its weight is capped, so that a spread that is
wrong by a factor of two does not break the error rate, and it is dropped where the data scatter more than twice as far.

*Equivalent*: both bounds of the margin are rejected by one-sided t tests (0.05 each, over all looks). It is asked
first: a change that is certain but too small to matter must not block anybody, so the reason tells of it and the
verdict does not.

*At once*: the first quads decide what no plausible scatter explains: they are judged as if quads scattered by ten per
cent, or by twice of what is known, or by what is seen, whichever is most. One quad has to be further away than one
disturbed process could bring it, and two have to show it each.

*Different*: at the first look at which a one-sided test at 0.10 finds something (the screen, the same for both
directions) a case is suspected. It is regressed or improved once all quads together reach the look's share of alpha
*and* the fresh quads since the suspicion show it without those that raised it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from harness.domain.spread import Spread
from harness.domain.verdict import Estimate
from harness.domain.words import Throughput
from harness.judging.intervals import exp_bounded
from harness.judging.looks import (
    EQUIVALENCE_ALPHA,
    EQUIVALENCE_SHARES,
    critical,
    difference_share,
    next_look,
    p_two_sided,
)

INTERVAL_ALPHA = 0.01
"""Intervals that are shown hold 99 %, whatever alpha is: at 1e-5 an interval of few quads says nothing to a reader."""

_KNOWN_DF = 4.0
"""Most degrees of freedom that a known spread counts for."""

_DISTRUST = 2.0
"""A known spread is dropped where the quads scatter more than this many times as far."""

_SMALLEST_SD = 1e-3
"""Known spreads below are taken as this: no machine repeats itself better for long."""

_ASSUMED_SD = 0.10
"""What a quad may scatter by on any machine worth measuring on; the noisiest seen was 0.07."""

_AT_ONCE_QUADS = 5
_FIRST_ALONE = 0.40
"""One process that takes twice as long as its like moves a quad by 0.35."""
_TWO_EACH = 0.10
_FEWEST = 3
"""Quads from which scatter is estimated and equivalence is asked for."""

_SCREEN_TAIL = 0.10
_FRESH_TAIL = 0.01
_GROWTH = 1.25
"""Looks for equivalence are at least this factor apart: nearer ones would see the same data again."""
_WORTH_A_LOOK = 0.75
"""Part of the margin that an interval's half may fill for a look to be worth its share."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How strictly is decided.

    Attributes:
        alpha: Two-sided error rate of "different" for one case, over all looks.
        margin: Relative change that is still equivalent; the bounds of the ratio are 1 / (1 + margin) and 1 + margin.
        max_quads: Quads after which an open decision ends as inconclusive.
    """

    alpha: float
    margin: float
    max_quads: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What the quads say so far.

    Attributes:
        throughput: The word; ``inconclusive`` while open too.
        open: More quads can still decide.
        why: The deciding figure in words.
        ratio: Candidate speed over baseline speed at the quad of the decision (``n``: quads it rests on), with its 99 %
            interval and the p-value of a single look; ``None`` without a quad.
        next_look: Quads in all at which it is looked again, while open; else the quads that it took.
    """

    throughput: Throughput
    open: bool
    why: str
    ratio: Estimate | None
    next_look: int


def decide(log_ratios: Sequence[float], limits: Limits, spread: Spread | None = None) -> Decision:
    """Walk through the looks in order; the first decision stands, whatever comes after it.

    Args:
        log_ratios: Natural log of candidate speed over baseline speed, one per quad, in order of time.
        limits: How strictly is decided.
        spread: What is known beforehand of the quads' scatter.

    Raises:
        ValueError: If a log ratio is not finite.
    """
    if not all(map(math.isfinite, log_ratios)):
        raise ValueError("a log ratio is not finite")
    walk = _Walk(limits, spread)
    for log_ratio in log_ratios[: limits.max_quads]:
        if walk.add(log_ratio):
            break
    return walk.decision()


@dataclass(frozen=True, slots=True)
class _Suspicion:
    """The quads that made a case suspected.

    Attributes:
        n: Their number.
        mean: Their mean.
    """

    n: int
    mean: float


class _Walk:
    """A case after some quads."""

    __slots__ = (
        "_decided",
        "_df",
        "_equivalence_looks",
        "_highest",
        "_last_equivalence_look",
        "_limits",
        "_lowest",
        "_mean",
        "_n",
        "_sd",
        "_spent",
        "_spread",
        "_squares",
        "_suspicion",
    )

    def __init__(self, limits: Limits, spread: Spread | None) -> None:
        self._limits = limits
        self._spread = spread if spread and spread.df > 0 else None
        self._n = 0
        self._mean = 0.0
        self._squares = 0.0  # sum of squared distances from the mean
        self._lowest, self._highest = math.inf, -math.inf
        self._sd, self._df = 0.0, 0.0  # scatter of one quad, and what that is worth
        self._spent = 0.0  # share of alpha that looks for a difference have had
        self._equivalence_looks = 0
        self._last_equivalence_look = 0.0
        self._suspicion: _Suspicion | None = None
        self._decided: tuple[Throughput, str] | None = None

    def add(self, log_ratio: float) -> bool:
        """Take one more quad in; whether it decides."""
        self._n += 1
        step = log_ratio - self._mean
        self._mean += step / self._n
        self._squares += step * (log_ratio - self._mean)
        self._lowest, self._highest = min(self._lowest, log_ratio), max(self._highest, log_ratio)
        share = self._share()
        if share > 0:
            self._sd, self._df = self._scatter()
            self._decided = self._equivalent() or self._at_once(share) or self._different(share)
            self._spent += share
        return self._decided is not None

    def decision(self) -> Decision:
        """What the quads say so far."""
        if self._decided:
            word, why = self._decided
            return Decision(word, open=False, why=why, ratio=self._ratio(), next_look=self._n)
        is_open = self._n < self._limits.max_quads
        look = next_look(self._n, self._limits.max_quads) if is_open else self._n
        why = self._why_open(look) if is_open else self._why_never()
        return Decision(Throughput.INCONCLUSIVE, open=is_open, why=why, ratio=self._ratio(), next_look=look)

    @property
    def _standard_error(self) -> float:
        return self._sd / sqrt(self._n)

    def _share(self) -> float:
        """The part of alpha that this look may spend."""
        return 1.0 - self._spent if self._n == self._limits.max_quads else difference_share(self._n)

    # ---- scatter -----------------------------------------------------------------------------------------------------

    def _known_sd(self) -> float:
        return max(self._spread.quad_sd, _SMALLEST_SD) if self._spread else 0.0

    def _own_sd(self) -> float:
        return sqrt(self._squares / (self._n - 1)) if self._n > 1 else 0.0

    def _is_distrusted(self) -> bool:
        return self._n >= _FEWEST and self._own_sd() > _DISTRUST * self._known_sd()

    def _prior(self) -> tuple[float, float]:
        """Degrees of freedom and sum of squares that the known spread stands for."""
        if self._spread is None or self._is_distrusted():
            return 0.0, 0.0
        df = min(self._spread.df, _KNOWN_DF)
        return df, df * self._known_sd() ** 2

    def _scatter(self) -> tuple[float, float]:
        df, squares = self._prior()
        if not df and self._n < _FEWEST:
            return self._worst_sd(), math.inf
        df += self._n - 1
        return sqrt((squares + self._squares) / df), df

    def _worst_sd(self) -> float:
        return max(_ASSUMED_SD, _DISTRUST * self._known_sd(), self._own_sd())

    # ---- decisions ---------------------------------------------------------------------------------------------------

    def _equivalent(self) -> tuple[Throughput, str] | None:
        tail = self._equivalence_tail()
        if self._n < _FEWEST or not tail:
            return None
        bound = math.log1p(self._limits.margin)
        half = critical(self._df, tail) * self._standard_error
        is_last = self._n == self._limits.max_quads
        if not is_last and (half > _WORTH_A_LOOK * bound or self._n < _GROWTH * self._last_equivalence_look):
            return None
        self._equivalence_looks += 1
        self._last_equivalence_look = self._n
        if abs(self._mean) + half >= bound:
            return None
        certain = ", though a change is certain" if self._p() < self._limits.alpha else ""
        return Throughput.EQUIVALENT, self._said(
            f"inside the margin of {self._limits.margin:.2g} on both sides{certain}"
        )

    def _equivalence_tail(self) -> float:
        made = self._equivalence_looks
        is_last = self._n == self._limits.max_quads
        shares = EQUIVALENCE_SHARES[made:] if is_last else EQUIVALENCE_SHARES[made : made + 1]
        return EQUIVALENCE_ALPHA * sum(shares)

    def _at_once(self, share: float) -> tuple[Throughput, str] | None:
        if self._n > _AT_ONCE_QUADS or self._nearest() < {1: _FIRST_ALONE, 2: _TWO_EACH}.get(self._n, 0.0):
            return None
        sd = self._worst_sd()
        away = abs(self._mean) * sqrt(self._n) / sd
        if away <= critical(math.inf, share * self._limits.alpha / 2):
            return None
        why = f"{away:.1f} standard errors from no change after {_count(self._n)}, {self._worst_text(sd)}"
        return self._direction(), why

    def _nearest(self) -> float:
        """The smallest change that a quad shows in the direction of all; below 0 where one shows the contrary."""
        return self._lowest if self._mean > 0 else -self._highest

    def _different(self, share: float) -> tuple[Throughput, str] | None:
        if self._n >= _FEWEST and self._suspicion:
            tail = share * self._limits.alpha / 2
            fresh = self._n - self._suspicion.n
            if abs(self._mean) > critical(self._df, tail) * self._standard_error and self._is_confirmed(
                self._suspicion
            ):
                figure = f"p = {self._p():.2g} is below {2 * tail:.2g}, this look's share of {self._limits.alpha:g}"
                return self._direction(), self._said(
                    f"{figure}, confirmed by {_count(fresh)} after the first suspicion"
                )
        if self._suspicion is None and abs(self._mean) > critical(self._df, _SCREEN_TAIL) * self._standard_error:
            self._suspicion = _Suspicion(self._n, self._mean)
        return None

    def _is_confirmed(self, suspicion: _Suspicion) -> bool:
        """Whether the quads since the suspicion show the change without those that raised it."""
        fresh = self._n - suspicion.n
        mean = (self._n * self._mean - suspicion.n * suspicion.mean) / fresh
        between = suspicion.n * fresh / self._n * (mean - suspicion.mean) ** 2
        df, squares = self._prior()
        df += self._n - 2
        squares += max(0.0, self._squares - between)
        towards = math.copysign(mean, mean * self._mean)
        return towards > critical(df, _FRESH_TAIL) * sqrt(squares / df / fresh)

    def _direction(self) -> Throughput:
        return Throughput.IMPROVED if self._mean > 0 else Throughput.REGRESSED

    # ---- figures and words -------------------------------------------------------------------------------------------

    def _p(self) -> float:
        if not self._standard_error:
            return 0.0 if self._mean else 1.0
        return p_two_sided(self._mean / self._standard_error, self._df)

    def _ratio(self) -> Estimate | None:
        if not self._n:
            return None
        self._sd, self._df = self._scatter()
        half = critical(self._df, INTERVAL_ALPHA / 2) * self._standard_error
        low, high = exp_bounded(self._mean - half), exp_bounded(self._mean + half)
        return Estimate(exp_bounded(self._mean), low, high, self._n, "ratio", self._p())

    def _said(self, figure: str) -> str:
        return f"{figure}, {self._scatter_text()}"

    def _scatter_text(self) -> str:
        """How far the quads scatter, and what was known of it."""
        own = f"{_count(self._n)} that scatter by {_percent(self._own_sd())}" if self._n > 1 else _count(self._n)
        if self._spread is None:
            return f"{own}, no spread known beforehand"
        known = f"known spread {_percent(self._known_sd())} from {self._spread.source}"
        return f"{own}, {known}" + (" dropped for that" if self._is_distrusted() else "")

    def _worst_text(self, sd: float) -> str:
        """Where the scatter is from that was assumed for a decision at once."""
        source = (
            "no spread is known"
            if self._spread is None
            else f"known spread {_percent(self._known_sd())} from {self._spread.source}"
        )
        return f"even if quads scattered by {_percent(sd)} ({source})"

    def _why_open(self, look: int) -> str:
        if not self._n:
            return "no quad is complete"
        return f"not decided yet, next look at {look} quads: {self._scatter_text()}"

    def _why_never(self) -> str:
        asked = f"neither different at {self._limits.alpha:g} nor inside it"
        return f"noise too high for the margin of {self._limits.margin:.2g}, {asked}: {self._scatter_text()}"


def _count(quads: int) -> str:
    return f"{quads} quad{'s' * (quads != 1)}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
