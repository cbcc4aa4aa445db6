"""Contrasts of speed: the processes of two arms to a decision by the sequential rule.

The rule itself is in `sequential`; here is what it is fed with, and what becomes of a job that ended before it decided.
A percentage of two means is never judged.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from harness.domain.job import Job
from harness.domain.measurement import ProcessRun
from harness.domain.policy import Policy
from harness.domain.spread import Spread
from harness.domain.verdict import Estimate
from harness.domain.words import Throughput
from harness.judging.quads import quads_of
from harness.judging.samples import DEFAULT_CEILING_TPS, ProcessMedian
from harness.judging.sequential import Limits, decide


@dataclass(frozen=True, slots=True)
class ContrastVerdict:
    """What the quads say.

    Attributes:
        throughput: The word.
        why: The deciding figure in words.
        ratio: Candidate speed over baseline speed with its interval; ``None`` without a quad.
        baseline: Process medians of the baseline that the ratio is made of.
        candidate: Process medians of the candidate that the ratio is made of.
        incomplete: Processes of baseline and candidate that belong to no whole quad.
        open: More quads could have decided it.
    """

    throughput: Throughput
    why: str
    ratio: Estimate | None
    baseline: tuple[ProcessMedian, ...]
    candidate: tuple[ProcessMedian, ...]
    incomplete: tuple[int, int]
    open: bool

    @property
    def log_ratios(self) -> tuple[float, ...]:
        """Log ratios of the quads that the ratio is made of."""
        pairs = [theirs.log_tps - ours.log_tps for ours, theirs in zip(self.baseline, self.candidate, strict=True)]
        return tuple((first + second) / 2 for first, second in zip(pairs[::2], pairs[1::2], strict=True))


def limits_of(policy: Policy, job: Job, workload: str) -> Limits:
    """How strictly a workload of a job is decided: its schedule is the most that can be had.

    Args:
        policy: The matrix's policy.
        job: The job: its quads, or blocks where it has more than two arms, bound the looks.
        workload: The workload's name.
    """
    margin = policy.margin_for(job.spread_of(workload))
    return Limits(policy.alpha, margin, max(1, job.design.blocks // job.blocks_at_once))


def judge_contrast(
    baseline: Sequence[ProcessRun],
    candidate: Sequence[ProcessRun],
    workload: str,
    limits: Limits,
    *,
    spread: Spread | None = None,
    voided: Collection[int] = (),
    ceiling_tps: float = DEFAULT_CEILING_TPS,
) -> ContrastVerdict:
    """Judge the speed of a candidate against its baseline.

    A job can end before the rule has decided: by its budget, or because it was stopped. Then the last quad is looked at
    as the last look, which may spend what is left of the error rates: when it ended did not depend on the speeds.

    Args:
        baseline: Processes of the baseline.
        candidate: Processes of the candidate, of the same job.
        workload: The workload's name.
        limits: How strictly is decided.
        spread: What is known beforehand of the quads' scatter.
        voided: Blocks that count for nothing.
        ceiling_tps: Plausibility ceiling, tokens per second.

    Raises:
        Implausible: If a measurement is not a speed.
        NothingKept: If a process kept no repetition.
    """
    found = quads_of(baseline, candidate, workload, voided, ceiling_tps)
    known = found.borne_out(spread)
    disbelieved = spread if known is None else None
    decision = decide(found.log_ratios, limits, known, found.insides, disbelieved)
    if decision.open and found.quads:
        last = replace(limits, max_quads=len(found.quads))
        final = decide(found.log_ratios, last, known, found.insides, disbelieved)
    else:
        final = decision
    counted = found.quads[: final.ratio.n] if final.ratio else ()
    return ContrastVerdict(
        final.throughput,
        final.why,
        final.ratio,
        baseline=_medians([quad.baseline for quad in counted]),
        candidate=_medians([quad.candidate for quad in counted]),
        incomplete=found.incomplete,
        open=decision.open and final.throughput is Throughput.INCONCLUSIVE,
    )


def _medians(pairs: Sequence[tuple[ProcessMedian, ProcessMedian]]) -> tuple[ProcessMedian, ...]:
    return tuple(median for pair in pairs for median in pair)
