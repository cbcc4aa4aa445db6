"""Processes of two sides as evidence: the log ratio, its variance, and what has to be known of both.

**The unit is the process start.** A file is one process; it gives the median of its repetitions without the first, or a
table's mean. The variance of the log ratio is put together from what is there:

- three and more pairs that follow one another in time, one process of both sides in each: the pairs' own scatter;
- otherwise each side alone. From three processes on it is the scatter of their figures over their number. Below that
  nothing in the files tells how far processes scatter, and repetitions do not: inside a process they understate it by
  half. So a *process spread* is assumed, and a note says which and where it is from. It is the standard deviation of
  one process's figure; where processes scatter independently that is a quad's too (two processes an arm, in pairs).
  To its variance, over the number of processes, that of each figure by its own repetitions is added: the square of
  their relative deviation over their number, for a median of three or more times pi/2. Where a process has only two
  repetitions left, which rest on one degree of freedom, one deviation is taken for the repetitions of both sides,
  pooled with their degrees of freedom as weights. Two processes that lie further apart than was assumed count with
  their own scatter.

The components are added, and the ratio is tested by Welch and Satterthwaite (``effects``). A difference that is beyond
the scatter of the repetitions but not beyond the process spread was real in that run; whether it comes again is not
known. A note says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, stdev, variance

from harness.judging.centres import SMALLEST_SD
from harness.judging.comparing_processes import Process, Reduction
from harness.judging.effects import Component, Effect, bounded_exp, p_text
from harness.judging.special import stdtr

MIN_STARTS = 3
"""Fewest processes of a side whose own scatter is judged by."""
_UNKNOWN_SHARE = 0.5**2
"""Repetitions scatter half as far as processes: what is taken where they do not tell, as a share of the variance."""
_ENOUGH_DF = 2
"""Fewer degrees of freedom are those of two repetitions: a t-distribution whose 99 % reach 64 deviations far."""
_BURN_IN_ALPHA = 0.01
_BURN_IN_FROM = 4


@dataclass(frozen=True, slots=True)
class Evidence:
    """The processes of both sides, and what may be assumed of them.

    Attributes:
        ours: The baseline's, in the order of files.
        theirs: The candidate's.
        reduction: How repetitions became one figure.
        spread: Variance of one process's log speed where the processes do not tell.
        spread_source: Where that is from, in words.
    """

    ours: tuple[Process, ...]
    theirs: tuple[Process, ...]
    reduction: Reduction
    spread: Component
    spread_source: str

    @property
    def count(self) -> int:
        """Pairs, or processes of the side that has fewer."""
        return min(len(self.ours), len(self.theirs))

    @property
    def paired(self) -> bool:
        """Whether blocks follow one another in time, each with one process of both sides."""
        if len(self.ours) != len(self.theirs) or self.count < MIN_STARTS:
            return False
        blocks = [(one.time, other.time) for one, other in zip(self.ours, self.theirs, strict=True)]
        if not all(time for block in blocks for time in block):
            return False
        return all(max(block) <= min(following) for block, following in pairwise(blocks))

    def effect(self, skip: int = 0) -> Effect:
        """The log ratio with its variance.

        Args:
            skip: First processes of both sides that are left out.
        """
        ours, theirs = self.ours[skip:], self.theirs[skip:]
        if self.paired:
            return Effect.of_pairs([b.log_tps - a.log_tps for a, b in zip(ours, theirs, strict=True)], SMALLEST_SD)
        return Effect(_mean(theirs) - _mean(ours), (*self._variance(ours), *self._variance(theirs)))

    def within(self) -> Effect | None:
        """The log ratio of two single processes with the scatter of their repetitions alone, where they have one."""
        first, second = self.ours[0].within, self.theirs[0].within
        if len(self.ours) + len(self.theirs) > 2 or first is None or second is None:  # noqa: PLR2004 - one a side
            return None
        return Effect(_mean(self.theirs) - _mean(self.ours), (first, second))

    def notes(self, alpha: float) -> list[str]:
        """What a reader has to know of the figure.

        Args:
            alpha: Error rate at which a difference counts.
        """
        return [
            *self._run_notes(alpha),
            *(self._assumption_notes() if self.count < MIN_STARTS else self._design_notes()),
            *self._repetition_notes(),
            *self._burn_in_notes(),
        ]

    def _variance(self, processes: Sequence[Process]) -> tuple[Component, ...]:
        """The variance of the mean of one side's processes."""
        count = len(processes)
        seen = variance(process.log_tps for process in processes) if count > 1 else 0.0
        if count >= MIN_STARTS:
            return (Component(max(seen, SMALLEST_SD**2) / count, count - 1),)
        unknown, pooled = self.spread.scaled(_UNKNOWN_SHARE), self._pooled_scatter()
        within = [
            (pooled.scaled(process.share) if pooled and process.within else process.within or unknown)
            for process in processes
        ]
        parts = [part.scaled(1 / count**2) for part in within]
        return (Component(max(seen, self.spread.variance) / count, self.spread.df), *parts)

    def _pooled_scatter(self) -> Component | None:
        """The variance of one repetition, of both sides together, where a process alone is too short to tell it.

        Its degrees of freedom are the part of one of the processes that count with it, for Welch and Satterthwaite add
        them up again.
        """
        told = [(one.within, one.share) for one in (*self.ours, *self.theirs) if one.within]
        if not any(within.df < _ENOUGH_DF for within, _ in told):
            return None
        df = sum(within.df for within, _ in told)
        variance_of_one = sum(within.df * within.variance / share for within, share in told) / df
        counting = [one for side in (self.ours, self.theirs) if len(side) < MIN_STARTS for one in side if one.within]
        return Component(variance_of_one, df / max(1, len(counting)))

    def _run_notes(self, alpha: float) -> list[str]:
        within = self.within()
        if within is None or within.p_two_sided() >= alpha or self.effect().p_two_sided() < alpha:
            return []
        p = f"{p_text(within.p_two_sided())} by its repetitions alone"
        return [f"real within its run ({p}), which does not tell whether it comes again in other processes"]

    def _assumption_notes(self) -> list[str]:
        single = len(self.ours) == len(self.theirs) == 1
        counts = "one process a side" if single else f"{len(self.ours)} and {len(self.theirs)} processes"
        spread = f"{100 * math.sqrt(self.spread.variance):.3g} %"
        return [f"{counts}: a process spread of {spread} is assumed ({self.spread_source})"]

    def _design_notes(self) -> list[str]:
        if not self.paired:
            return [f"{self._why_unpaired()}: independent samples, drift is not cancelled"]
        orders = {one.time <= other.time for one, other in zip(self.ours, self.theirs, strict=True)}
        first = "the baseline" if True in orders else "the candidate"
        drift = f", {first} always first: drift inside a pair is not cancelled" if len(orders) == 1 else ""
        return [f"{len(self.ours)} pairs that alternate by their times{drift}"]

    def _why_unpaired(self) -> str:
        ours, theirs = len(self.ours), len(self.theirs)
        if ours == theirs:
            return f"{ours} and {theirs} processes that do not alternate by their times"
        lacking = "baseline" if ours < theirs else "candidate"
        return f"{ours} and {theirs} processes, {abs(ours - theirs)} missing in the {lacking}, so not paired"

    def _repetition_notes(self) -> list[str]:
        notes = []
        if self.reduction.means:
            notes = ["means of all repetitions, the first included, since a table has no more; 5 repetitions assumed"]
        elif not self.reduction.dropped:
            notes = ["the first repetition is kept: a process has fewer than three"]
        if self.count < MIN_STARTS and self._pooled_scatter():
            fewest = min(process.repetitions for process in (*self.ours, *self.theirs) if process.within)
            more = "measure with -r 5 or more to narrow the interval"
            notes.append(f"only {fewest} repetitions of a process are left: scatter pooled of both sides; {more}")
        return notes

    def _burn_in_notes(self) -> list[str]:
        sides = (("baseline", self.ours), ("candidate", self.theirs))
        notes = [note for name, side in sides if (note := _burn_in_note(name, side))]
        if notes and self.count >= _BURN_IN_FROM:
            notes.append(f"without the first process of both sides the ratio is {self.effect(skip=1).ratio:.3f}")
        return notes


def _mean(processes: Sequence[Process]) -> float:
    return fmean(process.log_tps for process in processes)


def _burn_in_note(name: str, side: Sequence[Process]) -> str:
    """Whether the first process of a side is one like the others: a t-test of one value against the rest."""
    if len(side) < _BURN_IN_FROM:
        return ""
    rest = [process.log_tps for process in side[1:]]
    distance = side[0].log_tps - fmean(rest)
    spread = stdev(rest) * math.sqrt(1 + 1 / len(rest))
    p = float(2 * stdtr(len(rest) - 1, -abs(distance) / spread)) if spread else float(distance == 0)
    if p >= _BURN_IN_ALPHA:
        return ""
    change = f"{100 * (bounded_exp(distance) - 1):+.1f} %"
    return f"the first process of the {name} is unlike the others ({change}, {p_text(p)}), a burn-in perhaps: kept"
