"""What quads say together: their mean and their trimmed mean, each with its standard error."""

from __future__ import annotations

import math
from math import sqrt
from statistics import median
from typing import NamedTuple

from harness.domain.spread import Spread
from harness.judging.looks import critical, p_two_sided

FEWEST = 3
"""Quads from which their own scatter is taken as an estimate."""

ROBUST_FROM = 8
"""Quads from which a trimmed mean stands beside the mean: fewer leave too little to trim."""

_KNOWN_DF = 4.0
"""Most degrees of freedom that a known spread counts for."""

_DISTRUST = 2.0
"""A known spread is dropped where the quads scatter more than this many times as far."""

SMALLEST_SD = 1e-3
"""Smaller spreads are taken as this, known ones and the quads' own: no machine repeats itself better for long, and
coarse times are equal by chance."""

CONTRADICTED = 5.0
"""Times a known spread by which the two processes of an arm may differ in the first quad before it is not believed."""

_ASSUMED_SD = 0.10
"""What a quad may scatter by on any machine worth measuring on; the noisiest seen was 0.07."""

_BY_CHANCE = 1.5
"""Two or three quads seem to scatter so many times as far as they do, by chance."""

_ONE_IN = 8
"""One quad of so many is trimmed on either side."""


class Centre(NamedTuple):
    """An estimate of the log ratio.

    Attributes:
        value: The log ratio.
        standard_error: Its standard error.
        df: Degrees of freedom of the standard error.
        n: Quads it rests on.
        robust: Whether the outermost quads were left out.
        assumed: How far quads are taken to scatter, where that is neither known nor estimated.
    """

    value: float
    standard_error: float
    df: float
    n: int
    robust: bool = False
    assumed: float | None = None

    def half(self, tail: float) -> float:
        """Half of the interval that leaves ``tail`` on either side."""
        return critical(self.df, tail) * self.standard_error

    def differs(self, tail: float) -> bool:
        """Whether it is further from no change than ``tail`` on either side allows."""
        return abs(self.value) > self.half(tail)

    @property
    def p(self) -> float:
        """Two-sided p-value of no change, as if this were the only look."""
        return p_two_sided(self.value / self.standard_error, self.df)


class Quads:
    """The quads of a case so far, with what was known of their scatter beforehand."""

    __slots__ = (
        "_disbelieved",
        "_known",
        "_prior_df",
        "_spread",
        "_squares",
        "clearest",
        "highest",
        "lowest",
        "mean",
        "n",
        "values",
    )

    def __init__(self, spread: Spread | None, disbelieved: Spread | None = None) -> None:
        self._spread = spread if spread and spread.df > 0 else None
        self._disbelieved = disbelieved
        self._known = max(self._spread.quad_sd, SMALLEST_SD) if self._spread else 0.0
        self._prior_df = min(self._spread.df, _KNOWN_DF) if self._spread else 0.0
        self.values: list[float] = []
        self.n = 0
        self.mean = 0.0
        self._squares = 0.0  # sum of squared distances from the mean
        self.lowest, self.highest = math.inf, -math.inf
        self.clearest = math.inf  # fewest times that a quad's change is larger than its arms' own differences

    def add(self, log_ratio: float, inside: float) -> None:
        """Take one more quad in.

        Args:
            log_ratio: Its datum.
            inside: How far apart the two processes of one arm are in it, log scale; 0 where it is not known.
        """
        self.values.append(log_ratio)
        self.clearest = min(self.clearest, abs(log_ratio) / inside if inside else math.inf)
        self.n += 1
        step = log_ratio - self.mean
        self.mean += step / self.n
        self._squares += step * (log_ratio - self.mean)
        self.lowest, self.highest = min(self.lowest, log_ratio), max(self.highest, log_ratio)

    def centres(self) -> tuple[Centre, ...]:
        """The mean, and the trimmed mean where there are quads enough."""
        return (self.centre(), self._trimmed()) if self.n >= ROBUST_FROM else (self.centre(),)

    def centre(self) -> Centre:
        """The mean; its scatter is a mean of the known one and the quads' own, by degrees of freedom."""
        df = 0.0 if self._is_distrusted else self._prior_df
        if not df and self.n < FEWEST:
            return self._as_if(max(self.bearable_sd, self._own_sd))
        squares = df * self._known**2 + self._squares
        df += self.n - 1
        return Centre(self.mean, max(sqrt(squares / df), SMALLEST_SD) / sqrt(self.n), df, self.n)

    def _trimmed(self) -> Centre:
        """Yuen's trimmed mean: in the scatter the outermost quads count as their neighbours, in the mean not at all."""
        ordered = sorted(self.values)
        cut = self.n // _ONE_IN
        kept = ordered[cut : self.n - cut]
        value = math.fsum(kept) / len(kept)  # exact, so that swapped arms give the same figures
        winsorized = [kept[0]] * cut + kept + [kept[-1]] * cut
        middle = math.fsum(winsorized) / self.n
        squares = math.fsum([(each - middle) ** 2 for each in winsorized])
        df = len(kept) - 1
        return Centre(value, max(sqrt(squares / df), SMALLEST_SD) / sqrt(len(kept)), df, self.n, robust=True)

    def fresh(self, since: int, centre: Centre) -> float:
        """The log ratio by the quads after the first ``since`` alone, robust where the centre is."""
        values = self.values[since:]
        return median(values) if centre.robust else sum(values) / len(values)

    @property
    def nearest(self) -> float:
        """The smallest change that a quad shows in the direction of all; below 0 where one shows the contrary."""
        return self.lowest if self.mean > 0 else -self.highest

    @property
    def is_spread_known(self) -> bool:
        """Whether anything was known of the scatter beforehand."""
        return self._spread is not None

    @property
    def bearable_sd(self) -> float:
        """The furthest that quads scatter on a machine that can be judged at all; no estimate from these quads."""
        return max(_ASSUMED_SD, _DISTRUST * self._known)

    @property
    def is_bearable(self) -> bool:
        """Whether the quads so far go with a scatter no further than that."""
        return self._own_sd <= _BY_CHANCE * self.bearable_sd

    def bearable_centre(self) -> Centre:
        """The mean, as if quads scattered as far as can be borne."""
        return self._as_if(self.bearable_sd)

    def _as_if(self, quad_sd: float) -> Centre:
        """The mean, if quads scattered exactly so far."""
        return Centre(self.mean, quad_sd / sqrt(self.n), math.inf, self.n, assumed=quad_sd)

    @property
    def _own_sd(self) -> float:
        return sqrt(self._squares / (self.n - 1)) if self.n > 1 else 0.0

    @property
    def _is_distrusted(self) -> bool:
        return self.n >= FEWEST and self._own_sd > _DISTRUST * self._known

    # ---- words -------------------------------------------------------------------------------------------------------

    def scatter_text(self) -> str:
        """How far the quads scatter, and what was known of it."""
        own = f" that scatter by {percent(self._own_sd)}" if self.n > 1 else ""
        return f"{count(self.n)}{own}, {self._known_text()}"

    def _known_text(self) -> str:
        if self._spread is None:
            doubted = self._disbelieved
            return disbelieved_text(doubted) if doubted else "no spread is known"
        dropped = " (dropped: they scatter further)" if self._is_distrusted else ""
        return f"known spread {percent(self._known)} from {self._spread.source}{dropped}"


def count(quads: int) -> str:
    """A number of quads in words."""
    return f"{quads} quad{'s' * (quads != 1)}"


def disbelieved_text(spread: Spread) -> str:
    """A spread that is known and that the first quad contradicts."""
    return (
        f"known spread {percent(spread.quad_sd)} from {spread.source} (not believed: in the first quad the processes "
        f"of one arm differ by more than {CONTRADICTED:g} times that)"
    )


def percent(share: float) -> str:
    """A share with two digits, e.g. ``1.2 %``."""
    return f"{100 * share:.2g} %"
