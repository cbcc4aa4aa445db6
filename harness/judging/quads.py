"""Quads: the datum of a contrast, made of four processes next to each other in time.

Blocks 2k and 2k + 1 of a job of two arms are one quad: ABBA, then BAAB. Its log ratio is the mean of its two pairs', of
which each is candidate over baseline in one block, so that drift cancels. A quad that lacks a process, or of which one
is void, counts for nothing: half a quad has no order that drift cancels in.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from harness.domain.measurement import ProcessRun
from harness.domain.spread import Spread
from harness.judging.centres import CONTRADICTED, SMALLEST_SD
from harness.judging.samples import DEFAULT_CEILING_TPS, ProcessMedian, process_medians

BLOCKS = 2
"""Blocks of a quad."""


@dataclass(frozen=True, slots=True)
class Quad:
    """Four processes.

    Attributes:
        baseline: Medians of the baseline's two processes.
        candidate: Medians of the candidate's two processes.
    """

    baseline: tuple[ProcessMedian, ProcessMedian]
    candidate: tuple[ProcessMedian, ProcessMedian]

    @property
    def log_ratio(self) -> float:
        """Natural log of candidate speed over baseline speed."""
        (first, second), (ours, theirs) = self.baseline, self.candidate
        return ((ours.log_tps - first.log_tps) + (theirs.log_tps - second.log_tps)) / 2

    @property
    def inside(self) -> float:
        """How far apart the two processes of one arm are, log scale: of the arm where it is more."""
        return max(abs(first.log_tps - second.log_tps) for first, second in (self.baseline, self.candidate))


@dataclass(frozen=True, slots=True)
class QuadSet:
    """The quads of one workload, and what did not make one.

    Attributes:
        quads: Whole quads in order of time.
        incomplete: Processes of the baseline and of the candidate that belong to no whole quad.
        void: Processes of the baseline and of the candidate that are void.
    """

    quads: tuple[Quad, ...]
    incomplete: tuple[int, int]
    void: tuple[int, int]

    @property
    def log_ratios(self) -> tuple[float, ...]:
        """What is judged."""
        return tuple(quad.log_ratio for quad in self.quads)

    @property
    def insides(self) -> tuple[float, ...]:
        """How far apart the processes of one arm are in each."""
        return tuple(quad.inside for quad in self.quads)

    def borne_out(self, spread: Spread | None) -> Spread | None:
        """The known spread, unless the first quad contradicts it: ``None`` then.

        A single quad may decide by a known spread. On a machine that is busier than when the spread was measured it
        would decide by noise; there the processes of one arm differ as much as the arms. From the third quad on the
        rule itself sees how far quads scatter.

        Args:
            spread: What is known beforehand of the quads' scatter.
        """
        is_contradicted = spread and self.quads and not bears_out(self.quads[0].inside, spread)
        return None if is_contradicted else spread


def bears_out(inside: float, spread: Spread) -> bool:
    """Whether the first quad goes with a known spread.

    Args:
        inside: How far apart the two processes of one arm are in it, log scale.
        spread: What is known beforehand.
    """
    return inside <= CONTRADICTED * max(spread.quad_sd, SMALLEST_SD)


def quads_of(
    baseline: Sequence[ProcessRun],
    candidate: Sequence[ProcessRun],
    workload: str,
    voided: Collection[int] = (),
    ceiling_tps: float = DEFAULT_CEILING_TPS,
) -> QuadSet:
    """Put processes together to quads.

    Args:
        baseline: Processes of the baseline.
        candidate: Processes of the candidate, of the same job.
        workload: The workload's name.
        voided: Blocks that count for nothing.
        ceiling_tps: Plausibility ceiling, tokens per second.

    Raises:
        Implausible: If a measurement is not a speed.
        NothingKept: If a process kept no repetition.
    """
    measured = [process_medians(runs, workload, ceiling_tps) for runs in (baseline, candidate)]
    void = [sum(block in voided for block in medians) for medians in measured]
    ours, theirs = ({block: each for block, each in medians.items() if block not in voided} for medians in measured)
    both = ours.keys() & theirs.keys()
    firsts = sorted(block for block in both if block % BLOCKS == 0 and block + 1 in both)
    quads = tuple(Quad((ours[at], ours[at + 1]), (theirs[at], theirs[at + 1])) for at in firsts)
    used = BLOCKS * len(quads)
    return QuadSet(quads, (len(ours) - used, len(theirs) - used), (void[0], void[1]))
