"""What a budget can decide: quads and minutes that an effect needs, and the smallest effect that a budget finds.

Nothing here is a formula for some test: the rule itself (`decide`) is run on simulated quads, always the same ones,
scaled to the known spread. So the forecast is of the rule as it is. The simulated quads are normal and independent;
real ones have longer tails and drift, so a forecast is the better case.

An *effect* is a loss of speed: 0.03 is a candidate at 97 % of its baseline's speed. The rule treats gains alike.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

from harness.domain.spread import Spread
from harness.domain.words import Throughput
from harness.judging.sequential import Limits, decide

LIKELY, NEARLY_SURE = 0.80, 0.95
"""The two probabilities that are told."""
EFFECTS = (0.02, 0.03, 0.05, 0.10)
"""The losses that are told."""
ASSUMED_QUAD_SD = 0.034
"""The spread that is planned with where none is known: simulated quads of a machine with typical noise."""

_GRID = (0.003, 0.005, 0.0075, 0.01, 0.0125, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2)
_LARGE = (0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 0.9)
_PATHS = 200
_SEED = 20_251_201
_SD_STEP = 1.05
"""Spreads are rounded up to a power of it, so that neighbours share their simulation."""
_QUAD_PROCESSES = 4


def assumed_spread(workload: str) -> Spread:
    """The spread to plan with where nothing is known. It has no degrees of freedom: the rule does not use it."""
    return Spread(workload, ASSUMED_QUAD_SD, 0.0, "assumed, no calibration of this node says otherwise")


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a contrast's processes take.

    Attributes:
        process_s: Seconds of one process start with all workloads of its job.
        burn_in: Processes per arm that come first and are not scored.
    """

    process_s: float
    burn_in: int = 1

    def minutes(self, quads: int) -> float:
        """Minutes that so many quads take, burn-in included."""
        return (2 * self.burn_in + _QUAD_PROCESSES * quads) * self.process_s / 60

    def quads(self, minutes: float) -> int:
        """Whole quads that fit into so many minutes, burn-in included."""
        processes = minutes * 60 / self.process_s - 2 * self.burn_in if self.process_s > 0 else math.inf
        return max(0, math.floor(min(processes, 1e9) / _QUAD_PROCESSES))

    def measured(self, minutes: float) -> int:
        """Quads that a job has in so many minutes: the first is measured whatever it takes."""
        return max(1, self.quads(minutes))


@dataclass(frozen=True, slots=True)
class Need:
    """What it takes to decide one question.

    Attributes:
        effect: The loss of speed; 0: that there is none (the word is then *equivalent*).
        probability: With which the right word is found by then.
        quads: Quads; ``None``: not within the limits' quads.
        minutes: Minutes; ``None`` as above, or not known.
    """

    effect: float
    probability: float
    quads: int | None
    minutes: float | None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is known of a contrast's chances before it runs.

    Attributes:
        spread: What it rests on, with its source.
        quads: Quads that the budget has.
        minutes: Minutes that they take; ``None``: not known.
        smallest: Smallest loss found with ``NEARLY_SURE`` within them; ``None``: none of those tried (up to 90 %).
        needs: For each of ``EFFECTS``, at ``LIKELY`` and at ``NEARLY_SURE``.
        equivalent: What saying *equivalent* needs, at ``NEARLY_SURE``, where nothing changed.
    """

    spread: Spread
    quads: int
    minutes: float | None
    smallest: float | None
    needs: tuple[Need, ...]
    equivalent: Need


def forecast(spread: Spread, limits: Limits, pace: Pace | None, minutes: float | None = None) -> Forecast:
    """What a contrast's budget can decide.

    Args:
        spread: What is known of its quads' scatter; see `assumed_spread`.
        limits: How strictly is decided; ``max_quads`` bounds the budget too.
        pace: How long processes take, where that is known.
        minutes: The budget in minutes; ``None``: the limits' quads alone.
    """
    affordable = limits.max_quads if minutes is None or pace is None else pace.quads(minutes)
    quads = min(limits.max_quads, affordable)

    def need(effect: float, probability: float) -> Need:
        wanted = quads_needed(effect, probability, spread, limits)
        return Need(effect, probability, wanted, None if wanted is None or pace is None else pace.minutes(wanted))

    return Forecast(
        spread=spread,
        quads=quads,
        minutes=pace.minutes(quads) if pace else None,
        smallest=smallest_effect(quads, NEARLY_SURE, spread, limits),
        needs=tuple(need(effect, probability) for effect in EFFECTS for probability in (LIKELY, NEARLY_SURE)),
        equivalent=need(0.0, NEARLY_SURE),
    )


def quads_needed(effect: float, probability: float, spread: Spread, limits: Limits) -> int | None:
    """Quads after which the rule has found an effect with some probability.

    Args:
        effect: The loss of speed, 0 to below 1; 0 asks for *equivalent*.
        probability: Of the right word by then.
        spread: Of the quads.
        limits: How strictly is decided.

    Returns:
        ``None``: not within ``limits.max_quads``; also where the effect is inside the margin.
    """
    found = _decided_at(effect, *_rounded(spread), limits)
    index = math.ceil(probability * _PATHS) - 1
    return found[index] if index < len(found) else None


def chance(effect: float, quads: int, spread: Spread, limits: Limits) -> float:
    """Probability that the rule has found an effect after so many quads; effect 0 asks for *equivalent*."""
    return bisect_right(_decided_at(effect, *_rounded(spread), limits), quads) / _PATHS


def smallest_effect(quads: int, probability: float, spread: Spread, limits: Limits) -> float | None:
    """The smallest loss of speed, of a ladder from 0.3 to 90 %, that so many quads find with some probability."""
    ladder = (*_GRID, *_LARGE)
    low, high = 0, len(ladder)
    while low < high:
        middle = (low + high) // 2
        wanted = quads_needed(ladder[middle], probability, spread, limits)
        if wanted is not None and wanted <= quads:
            high = middle
        else:
            low = middle + 1
    return ladder[low] if low < len(ladder) else None


def _rounded(spread: Spread) -> tuple[float, float]:
    """Spread and degrees of freedom, rounded to the cautious side so that neighbours share a simulation."""
    step = math.ceil(round(math.log(max(spread.quad_sd, 1e-5)) / math.log(_SD_STEP), 6))
    return _SD_STEP**step, 0.0 if spread.df < 1 else 2.0 ** min(math.floor(math.log2(spread.df)), 7)


@lru_cache(maxsize=4096)
def _decided_at(effect: float, quad_sd: float, df: float, limits: Limits) -> tuple[int, ...]:
    """Quads at which simulated contrasts of an effect came to the right word, ascending; the others are left out."""
    shift = math.log1p(-effect)
    right = Throughput.REGRESSED if effect else Throughput.EQUIVALENT
    known = Spread("", quad_sd, df, "") if df else None
    ends = (
        decide([shift + quad_sd * z for z in path[: limits.max_quads]], limits, known)
        for path in normal_paths(limits.max_quads)
    )
    return tuple(sorted(decision.next_look for decision in ends if decision.throughput is right))


def normal_paths(length: int) -> tuple[tuple[float, ...], ...]:
    """Paths of standard normal numbers, of this length at least; longer ones begin as shorter ones do."""
    return _normals(1 << max(length - 1, 1).bit_length())


@lru_cache(maxsize=16)
def _normals(length: int) -> tuple[tuple[float, ...], ...]:
    sources = [random.Random(_SEED + path) for path in range(_PATHS)]  # noqa: S311 - no secret
    return tuple(tuple(source.gauss(0, 1) for _ in range(length)) for source in sources)
