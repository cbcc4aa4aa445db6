"""What an arm measured against itself says about a cell: its scatter, the rule's false alarms, and what it could find.

Nothing changed between the two arms, so every *regressed* or *improved* is a false alarm. They are counted twice. On
*fresh* quads, each used for one decision only: few decisions, honest ones, with exact binomial bounds. And on
*resampled* ones, thousands of decisions over the same few quads with their signs and order drawn at random: they say
whether the rule keeps its promise on scatter of this shape, and nothing about drift or about an arm that is favoured.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from harness.domain.spread import Spread
from harness.domain.words import Throughput
from harness.judging.budget import EFFECTS, NEARLY_SURE, chance, smallest_effect
from harness.judging.intervals import LogMean
from harness.judging.sequential import Limits, decide
from harness.judging.special import betainc, betaincinv, chdtri, fdtrc

ALPHAS = (0.05, 0.01)
FEWEST_QUADS = 3
RESAMPLES = 1000
FEWEST_TO_RESAMPLE = 10
"""Of fewer quads the same ones are drawn again and again, and agree with each other as fresh ones never would."""
NOISIEST_SD = 0.14
"""Twice the spread of the noisiest machines that contrasts are judged on at all."""

_SEED = 20_251_202
_MOST_TIMES = 2.0
_SURE = 0.05
_RARE = 0.001
"""How improbable it must be that a healthy cell looks so ill: a matrix has many cells."""
_ALARMED = (Throughput.REGRESSED, Throughput.IMPROVED)


@dataclass(frozen=True, slots=True)
class Alarms:
    """False alarms of the rule at one error rate.

    Attributes:
        alpha: The error rate that is promised.
        decisions: Decisions on fresh quads; no quad is in two of them.
        alarms: How many of them found a change.
        low: Lower bound of the alarm rate, exact binomial, two-sided 95 %.
        high: Upper bound.
        resampled: Alarm rate on resampled quads; ``None`` where there are too few to draw from.
    """

    alpha: float
    decisions: int
    alarms: int
    low: float
    high: float
    resampled: float | None


@dataclass(frozen=True, slots=True)
class Alike:
    """An arm against itself, one workload.

    Attributes:
        quads: Quads.
        quad_sd: Their standard deviation about their mean, log scale.
        sd_low: Lower bound of it, two-sided 95 %.
        sd_high: Upper bound.
        shift: Mean of the log ratios: 0, but for chance, where nothing favours an arm.
        shift_p: Two-sided p-value of the shift.
        alarms: For each of ``ALPHAS``.
        power: For each of ``EFFECTS``, how often a loss of it is found within the limits' quads.
        smallest: Smallest loss that is nearly surely found; ``None``: none up to 90 %.
    """

    quads: int
    quad_sd: float
    sd_low: float
    sd_high: float
    shift: float
    shift_p: float
    alarms: tuple[Alarms, ...]
    power: tuple[tuple[float, float], ...]
    smallest: float | None


def judge_alike(workload: str, log_ratios: Sequence[float], limits: Limits) -> Alike | None:
    """Sum up the quads of an arm against itself.

    Args:
        workload: The workload's name.
        log_ratios: One per quad, in order of time.
        limits: As the matrix is judged, but for alpha.

    Returns:
        ``None`` below ``FEWEST_QUADS``.
    """
    if len(log_ratios) < FEWEST_QUADS:
        return None
    sd, df = max(stdev(log_ratios), 1e-6), len(log_ratios) - 1
    low, high = sd_bounds(sd, df)
    spread = Spread(workload, sd, df, "this calibration")
    return Alike(
        quads=len(log_ratios),
        quad_sd=sd,
        sd_low=low,
        sd_high=high,
        shift=fmean(log_ratios),
        shift_p=LogMean.of(log_ratios).p_two_sided(),
        alarms=tuple(_alarms(log_ratios, replace(limits, alpha=alpha), spread) for alpha in ALPHAS),
        power=tuple((effect, chance(effect, limits.max_quads, spread, limits)) for effect in EFFECTS),
        smallest=smallest_effect(limits.max_quads, NEARLY_SURE, spread, limits),
    )


def faults(alike: Alike, earlier: Spread | None) -> tuple[str, ...]:
    """Why a cell must not be judged by these quads; empty where it may.

    Args:
        alike: Its quads of an arm against itself.
        earlier: What earlier calibrations found for the same cell on the same node.
    """
    return tuple(filter(None, (_too_alarmed(alike), _favoured(alike), _too_wide(alike, earlier))))


def pooled_alarms(cells: Sequence[Alike]) -> tuple[Alarms, ...]:
    """All cells of a node together: more decisions, so narrower bounds."""
    columns = zip(*(cell.alarms for cell in cells), strict=True)
    return tuple(_pool(column) for column in columns)


def binomial_bounds(hits: int, trials: int, alpha: float = 0.05) -> tuple[float, float]:
    """Exact (Clopper-Pearson) two-sided bounds of a probability."""
    if not trials:
        return 0.0, 1.0
    low = float(betaincinv(hits, trials - hits + 1, alpha / 2)) if hits else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1 - alpha / 2)) if hits < trials else 1.0
    return low, high


def _pool(found: Sequence[Alarms]) -> Alarms:
    decisions, alarms = sum(each.decisions for each in found), sum(each.alarms for each in found)
    low, high = binomial_bounds(alarms, decisions)
    drawn = [each.resampled for each in found if each.resampled is not None]
    return Alarms(found[0].alpha, decisions, alarms, low, high, fmean(drawn) if drawn else None)


def sd_bounds(sd: float, df: int) -> tuple[float, float]:
    """Two-sided 95 % bounds of a standard deviation that was estimated with so many degrees of freedom."""
    return sd * math.sqrt(df / chdtri(df, 0.025)), sd * math.sqrt(df / chdtri(df, 0.975))


def _alarms(log_ratios: Sequence[float], limits: Limits, spread: Spread) -> Alarms:
    words = _fresh_decisions(log_ratios, limits, spread)
    alarms = sum(word in _ALARMED for word in words)
    low, high = binomial_bounds(alarms, len(words))
    return Alarms(limits.alpha, len(words), alarms, low, high, _resampled(log_ratios, limits, spread))


def _fresh_decisions(log_ratios: Sequence[float], limits: Limits, spread: Spread) -> list[Throughput]:
    """One decision after the other, each on the quads that the one before left; an unfinished last one is none."""
    words, begin = [], 0
    while begin < len(log_ratios):
        decision = decide(log_ratios[begin:], limits, spread)
        if decision.open:
            break
        words.append(decision.throughput)
        begin += decision.next_look
    return words


def _resampled(log_ratios: Sequence[float], limits: Limits, spread: Spread) -> float | None:
    """Which arm is called the candidate is arbitrary in each quad, so their signs may be drawn."""
    if len(log_ratios) < FEWEST_TO_RESAMPLE:
        return None
    source = random.Random(_SEED)  # noqa: S311 - no secret
    found = 0
    for _ in range(RESAMPLES):
        drawn = source.choices(log_ratios, k=limits.max_quads)
        signed = [value if source.random() < 0.5 else -value for value in drawn]  # noqa: PLR2004 - a coin
        found += decide(signed, limits, spread).throughput in _ALARMED
    return found / RESAMPLES


def _too_alarmed(alike: Alike) -> str:
    for found in alike.alarms:
        if found.alarms and betainc(found.alarms, found.decisions - found.alarms + 1, found.alpha) < _RARE:
            return f"the rule found a change in {found.alarms} of {found.decisions} decisions at {found.alpha:g}"
        drawn = found.resampled or 0.0
        surely, _ = binomial_bounds(round(drawn * RESAMPLES), RESAMPLES, _RARE)
        if surely > 2 * found.alpha:
            return f"its scatter makes the rule alarm in {drawn:.1%} of cases at {found.alpha:g}"
    return ""


def _favoured(alike: Alike) -> str:
    if alike.shift_p >= _RARE:
        return ""
    return f"equal arms differed by {alike.shift:+.2%} (p = {alike.shift_p:.1g})"


def _too_wide(alike: Alike, earlier: Spread | None) -> str:
    if earlier is not None and _rose(alike, earlier):
        known = f"{earlier.quad_sd:.1%} known ({earlier.source})"
        return f"its quad SD rose to {alike.quad_sd:.1%}, more than twice the {known}"
    if alike.sd_low > NOISIEST_SD:
        return f"its quad SD of {alike.quad_sd:.1%} is more than any contrast can be judged by"
    return ""


def _rose(alike: Alike, earlier: Spread) -> bool:
    """Whether the scatter more than doubled, and more than chance explains."""
    times = alike.quad_sd / earlier.quad_sd
    return times > _MOST_TIMES and float(fdtrc(alike.quads - 1, max(earlier.df, 1), times**2)) <= _SURE
