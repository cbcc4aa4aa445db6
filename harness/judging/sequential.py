"""Quads to a decision, look by look: regressed, improved, equivalent, or not yet known.

In words. The datum is a quad's log ratio; looked at are the mean of all quads so far and its standard error.

*Scatter.* Where a spread is known beforehand it counts like a few quads more: the variance is the mean of the known
one and that of the data, weighted by degrees of freedom (a moderated t). Its weight is capped, so that a spread that is
wrong by a factor of two does not break the error rate, and it is dropped where the data scatter more than twice as far.
From eight quads every look is made twice, with half of its share each: by the mean, and by a mean from which the
outermost quads are trimmed, which a disturbed process does not blind.

*Equivalent*: both bounds of the margin are rejected by one-sided tests (0.05 each, over all looks). It is asked first:
a change that is certain but too small to matter must not block anybody, so the reason tells of it and the verdict does
not.

*At once*: the first three quads decide what no plausible scatter explains. One does where a spread is known and
the change is further away than a disturbed process could bring it. More do where each shows a change of some factor
two, judged as if quads scattered by ten per cent, by twice of what is known, or by what is seen, whichever is most.

*Different*: at the first look at which a one-sided test at 0.10 finds something (the screen, the same for both
directions), or the first two quads are beyond the margin, a case is suspected. It is regressed or improved once all
quads together reach the look's share of alpha *and* the fresh quads since the suspicion show it without those that
raised it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from math import sqrt
from typing import TypeAlias

from harness.domain.spread import Spread
from harness.domain.verdict import Estimate
from harness.domain.words import Throughput
from harness.judging.centres import FEWEST, Centre, Quads, count, percent
from harness.judging.intervals import exp_bounded
from harness.judging.looks import (
    EQUIVALENCE_ALPHA,
    EQUIVALENCE_SHARES,
    difference_share,
    next_look,
)

INTERVAL_ALPHA = 0.01
"""Intervals that are shown hold 99 %, whatever alpha is: at 1e-5 an interval of few quads says nothing to a reader."""

_NEAREST = {1: 0.40, 2: 0.50, 3: 0.40}
"""What each of the first quads has to show for a decision at once, log scale: the number of quads, then the change. A
process that takes twice as long as its like moves a quad by 0.35; two quads of 0.5 are rare even where they scatter by
0.2."""

_CLEAR, _CLEAR_ALONE = 3.0, 5.0
"""Times that the change of each of the first quads, or of a single one, is larger than the difference of the two
processes of one arm inside it. On a busy machine these are alike: of 20,000 contended quads of equal arms no two
passed."""

_SCREEN_TAIL = 0.10
_FRESH_TAIL = 0.01

_GROWTH = 1.25
"""Looks for equivalence are at least this factor apart: nearer ones would see the same data again."""

_WORTH_A_LOOK = 0.75
"""Part of the margin that half an interval may fill for a look to be worth its share."""


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
            interval and the p-value of a single look, or what these are if quads scatter as assumed; ``None`` without a
            quad.
        next_look: Quads in all at which it is looked again, while open; else the quads that it took.
    """

    throughput: Throughput
    open: bool
    why: str
    ratio: Estimate | None
    next_look: int


_Found: TypeAlias = tuple[Throughput, str, Centre]
"""A decision: the word, the deciding figure, and the estimate that it rests on."""


def decide(
    log_ratios: Sequence[float],
    limits: Limits,
    spread: Spread | None = None,
    insides: Sequence[float] = (),
    disbelieved: Spread | None = None,
) -> Decision:
    """Walk through the looks in order; the first decision stands, whatever comes after it.

    Args:
        log_ratios: Natural log of candidate speed over baseline speed, one per quad, in order of time.
        limits: How strictly is decided.
        spread: What is known beforehand of the quads' scatter.
        insides: For each quad, how far apart the two processes of one arm are in it, log scale; empty: not known.
        disbelieved: A spread that is known and that the first quad contradicts: the reason tells of it, no more.

    Raises:
        ValueError: If a log ratio is not finite.
    """
    if not all(map(math.isfinite, log_ratios)):
        raise ValueError("a log ratio is not finite")
    walk = _Walk(limits, Quads(spread, disbelieved))
    for log_ratio, inside in zip(log_ratios[: limits.max_quads], chain(insides, repeat(0.0)), strict=False):
        if walk.add(log_ratio, inside):
            break
    return walk.decision()


class _Walk:
    """A case on its way through the looks."""

    __slots__ = (
        "_decided",
        "_equivalence_looks",
        "_last_equivalence_look",
        "_limits",
        "_quads",
        "_spent",
        "_suspected_at",
    )

    def __init__(self, limits: Limits, quads: Quads) -> None:
        self._limits = limits
        self._quads = quads
        self._spent = 0.0  # share of alpha that looks for a difference have had
        self._equivalence_looks = 0
        self._last_equivalence_look = 0
        self._suspected_at = 0
        self._decided: _Found | None = None

    def add(self, log_ratio: float, inside: float) -> bool:
        """Take one more quad in; whether it decides."""
        self._quads.add(log_ratio, inside)
        share = 1.0 - self._spent if self._is_last else difference_share(self._quads.n)
        if share > 0:
            centres = self._quads.centres()
            self._decided = self._equivalent(centres) or self._at_once(share) or self._different(centres, share)
            self._spent += share
        return self._decided is not None

    def decision(self) -> Decision:
        """What the quads say so far."""
        n = self._quads.n
        if self._decided:
            word, why, centre = self._decided
            return Decision(word, open=False, why=why, ratio=_ratio(centre), next_look=n)
        if not n:
            return Decision(Throughput.INCONCLUSIVE, open=True, why="no quad is complete", ratio=None, next_look=1)
        ratio = _ratio(self._quads.centre())
        if self._is_last:
            return Decision(Throughput.INCONCLUSIVE, open=False, why=self._why_never(), ratio=ratio, next_look=n)
        look = next_look(n, self._limits.max_quads)
        why = f"not decided yet, next look at {look} quads: {self._quads.scatter_text()}"
        return Decision(Throughput.INCONCLUSIVE, open=True, why=why, ratio=ratio, next_look=look)

    @property
    def _is_last(self) -> bool:
        return self._quads.n >= self._limits.max_quads

    def _equivalent(self, centres: Sequence[Centre]) -> _Found | None:
        tail = self._equivalence_tail() / len(centres)
        if self._quads.n < FEWEST or not tail:
            return None
        bound = math.log1p(self._limits.margin)
        halves = [centre.half(tail) for centre in centres]
        is_due = self._quads.n >= _GROWTH * self._last_equivalence_look and min(halves) <= _WORTH_A_LOOK * bound
        if not is_due and not self._is_last:
            return None
        self._equivalence_looks += 1
        self._last_equivalence_look = self._quads.n
        for centre, half in zip(centres, halves, strict=True):
            if abs(centre.value) + half < bound:
                certain = ", though a change is certain" if centre.p < self._limits.alpha else ""
                why = f"inside the margin of {self._limits.margin:.2g} on both sides{certain}"
                return self._found(Throughput.EQUIVALENT, why, centre)
        return None

    def _equivalence_tail(self) -> float:
        """What this look may spend on either side: its share, or all that is left."""
        made = self._equivalence_looks
        return EQUIVALENCE_ALPHA * sum(
            EQUIVALENCE_SHARES[made:] if self._is_last else EQUIVALENCE_SHARES[made : made + 1]
        )

    def _at_once(self, share: float) -> _Found | None:
        quads = self._quads
        if quads.n not in _NEAREST or quads.nearest < _NEAREST[quads.n]:
            return None
        if quads.clearest < (_CLEAR_ALONE if quads.n == 1 else _CLEAR):
            return None
        tail = share * self._limits.alpha / 2
        if quads.n == 1:
            centre = quads.centre()
            alone = quads.is_spread_known and centre.differs(tail)
            return self._found(_direction(centre), f"p = {centre.p:.2g} at once", centre) if alone else None
        centre = quads.bearable_centre()
        if not (quads.is_bearable and centre.differs(tail)):
            return None
        away = abs(centre.value) / centre.standard_error
        why = f"{away:.1f} standard errors from no change even if quads scattered by {percent(quads.bearable_sd)}"
        return self._found(_direction(centre), why, centre)

    def _different(self, centres: Sequence[Centre], share: float) -> _Found | None:
        tail = share * self._limits.alpha / 2 / len(centres)
        for centre in centres:
            if self._suspected_at and centre.differs(tail) and self._is_confirmed(centre):
                return self._found(_direction(centre), self._why_different(centre, 2 * tail), centre)
        if not self._suspected_at and self._is_suspect(centres):
            self._suspected_at = self._quads.n
        return None

    def _is_suspect(self, centres: Sequence[Centre]) -> bool:
        if any(centre.differs(_SCREEN_TAIL) for centre in centres):
            return True
        return self._quads.n < FEWEST and abs(self._quads.mean) > math.log1p(self._limits.margin)

    def _is_confirmed(self, centre: Centre) -> bool:
        """Whether the quads since the suspicion show the change without those that raised it."""
        if centre.n < FEWEST:
            return False
        fresh = math.copysign(1.0, centre.value) * self._quads.fresh(self._suspected_at, centre)
        return fresh > centre.half(_FRESH_TAIL) * sqrt(centre.n / (centre.n - self._suspected_at))

    def _why_different(self, centre: Centre, share: float) -> str:
        fresh = count(centre.n - self._suspected_at)
        figure = f"p = {centre.p:.2g} is below {share:.2g}, this look's share of {self._limits.alpha:g}"
        return f"{figure}, confirmed by {fresh} after the first suspicion"

    def _why_never(self) -> str:
        margin = f"the margin of {self._limits.margin:.2g}"
        if self._quads.n < FEWEST:
            return f"too few quads for {margin}: {self._quads.scatter_text()}"
        asked = f"neither different at {self._limits.alpha:g} nor inside it"
        return f"noise too high for {margin}, {asked}: {self._quads.scatter_text()}"

    def _found(self, word: Throughput, why: str, centre: Centre) -> _Found:
        trimmed = " by the trimmed mean" if centre.robust else ""
        return word, f"{why}{trimmed}, {self._quads.scatter_text()}", centre


def _direction(centre: Centre) -> Throughput:
    return Throughput.IMPROVED if centre.value > 0 else Throughput.REGRESSED


def _ratio(centre: Centre) -> Estimate:
    half = centre.half(INTERVAL_ALPHA / 2)
    low, high = exp_bounded(centre.value - half), exp_bounded(centre.value + half)
    return Estimate(exp_bounded(centre.value), low, high, centre.n, "ratio", centre.p, centre.assumed)
