"""Contrasts of speed: is the candidate faster, slower, equivalent, or is it not known?

The rule is provisional and stands behind ``judge_contrast`` alone, so that a sequential one can take its place.
In words:

A datum is a *pair*: one process start of each arm in the same block, next to each other in time. Each process gives
the median of its kept repetitions; a pair gives the logarithm of candidate speed over baseline speed. Two one-sided
tests say *equivalent* when the ratio is shown to lie inside the margin on both sides: a change that is certain but too
small to matter must not block anybody, so the reason tells of it and the verdict does not. Otherwise a two-sided t-test
over the pairs at ``alpha`` says *regressed* or *improved*. Otherwise it is *inconclusive*. A percentage of two means is
never judged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.domain.measurement import ProcessRun
from harness.domain.policy import Policy
from harness.domain.verdict import Estimate
from harness.domain.words import Throughput
from harness.judging.intervals import LogMean
from harness.judging.samples import DEFAULT_CEILING_TPS, ProcessMedian, process_medians

MIN_STARTS = 3
"""Fewest pairs, or process starts of a single arm, that anything is concluded from."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The settings of the decision.

    Attributes:
        alpha: Two-sided error rate of "different"; the interval holds 1 - alpha.
        margin: Relative change that is still equivalent; the bounds of the ratio are 1 / (1 + margin) and 1 + margin,
            so that swapping the arms cannot change the verdict's kind.
        equivalence_alpha: Error rate of each of the two one-sided tests.
        min_pairs: Fewest pairs that are judged.
        ceiling_tps: Plausibility ceiling, tokens per second.
    """

    alpha: float = 0.01
    margin: float = 0.05
    equivalence_alpha: float = 0.05
    min_pairs: int = MIN_STARTS
    ceiling_tps: float = DEFAULT_CEILING_TPS

    @classmethod
    def of(cls, policy: Policy) -> Rule:
        """The rule that a matrix's policy asks for."""
        return cls(alpha=policy.alpha, margin=policy.margin, ceiling_tps=policy.ceiling_tps)


@dataclass(frozen=True, slots=True)
class ContrastVerdict:
    """What the pairs say.

    Attributes:
        throughput: The word.
        why: The deciding figure in words.
        ratio: Candidate speed over baseline speed with its interval; ``None`` below the fewest pairs.
        baseline: Process medians of the baseline, all of them.
        candidate: Process medians of the candidate, all of them.
        dropped: Blocks that lack one arm.
    """

    throughput: Throughput
    why: str
    ratio: Estimate | None
    baseline: tuple[ProcessMedian, ...]
    candidate: tuple[ProcessMedian, ...]
    dropped: int


def judge_contrast(
    baseline: Sequence[ProcessRun], candidate: Sequence[ProcessRun], workload: str, rule: Rule
) -> ContrastVerdict:
    """Judge the speed of a candidate against its baseline.

    Args:
        baseline: Processes of the baseline.
        candidate: Processes of the candidate, of the same job.
        workload: The workload's name.
        rule: The settings.

    Raises:
        Implausible: If a measurement is not a speed.
        NothingKept: If a process kept no repetition.
    """
    ours = process_medians(baseline, workload, rule.ceiling_tps)
    theirs = process_medians(candidate, workload, rule.ceiling_tps)
    pairs = [theirs[block].log_tps - ours[block].log_tps for block in ours if block in theirs]
    word, why, ratio = _decide(pairs, rule)
    dropped = len(ours.keys() ^ theirs.keys())
    return ContrastVerdict(word, why, ratio, tuple(ours.values()), tuple(theirs.values()), dropped)


def _decide(pairs: Sequence[float], rule: Rule) -> tuple[Throughput, str, Estimate | None]:
    if len(pairs) < rule.min_pairs:  # an interval of two pairs spans orders of magnitude and says nothing
        return Throughput.INCONCLUSIVE, f"{len(pairs)} pairs, at least {rule.min_pairs} are needed", None
    mean = LogMean.of(pairs)
    p = mean.p_two_sided()
    low, high = mean.interval(rule.alpha)
    ratio = Estimate(mean.factor, low, high, mean.n, "ratio", p)
    if _inside_margin(mean, rule):
        certain = ", though a change is certain" if p < rule.alpha else ""
        return Throughput.EQUIVALENT, f"inside the margin of {rule.margin:.2g} on both sides{certain}", ratio
    if p < rule.alpha:
        word = Throughput.IMPROVED if mean.mean > 0 else Throughput.REGRESSED
        return word, f"p = {p:.2g} is below {rule.alpha:g}", ratio
    why = f"neither different at {rule.alpha:g} (p = {p:.2g}) nor shown to be inside the margin of {rule.margin:.2g}"
    return Throughput.INCONCLUSIVE, why, ratio


def _inside_margin(mean: LogMean, rule: Rule) -> bool:
    bound = math.log1p(rule.margin)
    return max(mean.p_above(-bound), mean.p_below(bound)) < rule.equivalence_alpha
