"""Time as a + b x depth: does a case lose at an empty context, or with every token that is already there?

One process measures all depths of a workload, so each process gives a line of its own; the process is what scatters.
Of a pair the lines of the two processes of a block are subtracted, and the blocks of a quad averaged, as for speeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

import numpy as np

from harness.domain.measurement import NS, ProcessRun
from harness.domain.workload import Timed, Workload
from harness.judging.special import stdtrit

ALPHA = 0.01
"""Two-sided error rate of the intervals: 99 %, as all others."""
FEWEST = 3
"""Processes, or quads, below which no interval is told."""
_FEWEST_DEPTHS = 2
_BENT = 0.05
"""Share of a time by which a line may miss it before it is told to be none."""
_PAIR = 2
_MS = 1000.0


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its 99 % interval.

    Attributes:
        value: Best estimate.
        low: Lower bound; ``None`` where too few processes tell.
        high: Upper bound.
        n: Processes of an arm, quads of a pair.
    """

    value: float
    low: float | None
    high: float | None
    n: int

    @property
    def moved(self) -> bool | None:
        """Whether its interval leaves 0 out; ``None``: it has none."""
        return None if self.low is None or self.high is None else not self.low <= 0 <= self.high


@dataclass(frozen=True, slots=True)
class Line:
    """One arm's time of the workload as a line over the depth.

    Attributes:
        arm: Its label.
        at_zero: a, ms.
        per_thousand: b, ms for every 1000 tokens of depth.
        misses: Largest share by which the line of the arm's medians misses one of them.
    """

    arm: str
    at_zero: Figure
    per_thousand: Figure
    misses: float


@dataclass(frozen=True, slots=True)
class DepthFit:
    """The lines of a case's arms.

    Attributes:
        workload: The workload without its depth, e.g. ``tg128``.
        depths: Depths that were run, tokens.
        lines: One for each arm.
        change: Of a pair, candidate minus baseline: a in ms and b in ms for every 1000 tokens; ``None`` otherwise.
        reading: Which of the two moved, in words.
    """

    workload: str
    depths: tuple[int, ...]
    lines: tuple[Line, ...]
    change: tuple[Figure, Figure] | None
    reading: str


def fit_depths(workload: Timed, measured: Sequence[Timed], arms: Mapping[str, Sequence[ProcessRun]]) -> DepthFit | None:
    """Fit the lines of a case.

    Args:
        workload: The case's workload.
        measured: All workloads that its job's processes measured.
        arms: Sound processes of each arm by its label, baseline first.

    Returns:
        ``None`` where fewer than two depths of the workload were run.
    """
    if not isinstance(workload, Workload):
        return None
    by_depth = {
        each.n_depth: each
        for each in measured
        if isinstance(each, Workload) and (each.n_prompt, each.n_gen) == (workload.n_prompt, workload.n_gen)
    }
    kin = [each for _, each in sorted(by_depth.items())]
    if len(kin) < _FEWEST_DEPTHS:
        return None
    depths = tuple(each.n_depth for each in kin)
    found = {label: _process_lines(runs, kin) for label, runs in arms.items()}
    if not all(found.values()):
        return None
    lines = tuple(
        Line(
            label,
            _figure([line.at_zero for line in each.values()]),
            _figure([line.slope for line in each.values()]),
            _misses([line.times for line in each.values()], depths),
        )
        for label, each in found.items()
    )
    change = _change(*found.values()) if len(found) == _PAIR else None
    return DepthFit(
        Workload(workload.n_prompt, workload.n_gen).name, depths, lines, change, _reading(lines, change, depths)
    )


@dataclass(frozen=True, slots=True)
class _ProcessLine:
    """Times in ms by depth, a in ms, b in ms for every 1000 tokens."""

    times: tuple[float, ...]
    at_zero: float
    slope: float


def _process_lines(runs: Sequence[ProcessRun], kin: Sequence[Workload]) -> dict[int, _ProcessLine]:
    """By block, the line of each scored process that measured all depths."""
    found = {}
    for run in runs:
        samples = [run.samples_of(each.name) for each in kin]
        if not run.step.scored or not all(each and each.kept_ns and min(each.kept_ns) > 0 for each in samples):
            continue
        times = tuple(_MS * median(each.kept_ns) / NS for each in samples if each)
        found[run.step.block] = _ProcessLine(times, *_line(times, [each.n_depth for each in kin]))
    return found


def _line(times: Sequence[float], depths: Sequence[int]) -> tuple[float, float]:
    """Least squares of relative misses: a time scatters by a share of itself."""
    slope, at_zero = np.polyfit([depth / 1000 for depth in depths], times, 1, w=[1 / time for time in times])
    return float(at_zero), float(slope)


def _misses(times: Sequence[Sequence[float]], depths: Sequence[int]) -> float:
    middle = [float(median(column)) for column in zip(*times, strict=True)]
    at_zero, slope = _line(middle, depths)
    return max(abs(at_zero + slope * depth / 1000 - time) / time for depth, time in zip(depths, middle, strict=True))


def _figure(values: Sequence[float]) -> Figure:
    mean = fmean(values)
    if len(values) < FEWEST:
        return Figure(mean, None, None, len(values))
    half = stdtrit(len(values) - 1, 1 - ALPHA / 2) * stdev(values) / math.sqrt(len(values))
    return Figure(mean, mean - half, mean + half, len(values))


def _change(ours: Mapping[int, _ProcessLine], theirs: Mapping[int, _ProcessLine]) -> tuple[Figure, Figure] | None:
    both = ours.keys() & theirs.keys()
    quads = [block for block in sorted(both) if block % _PAIR == 0 and block + 1 in both]
    if not quads:
        return None

    def of(part: Callable[[_ProcessLine], float]) -> Figure:
        pairs = {block: part(theirs[block]) - part(ours[block]) for block in both}
        return _figure([fmean((pairs[block], pairs[block + 1])) for block in quads])

    return of(lambda line: line.at_zero), of(lambda line: line.slope)


def _reading(lines: Sequence[Line], change: tuple[Figure, Figure] | None, depths: Sequence[int]) -> str:
    bent = max(lines, key=lambda line: line.misses)
    doubt = ""
    if bent.misses > _BENT:
        doubt = f"; {bent.arm} is no straight line: it misses a depth by {100 * bent.misses:.0f} %"
    if len(depths) == _FEWEST_DEPTHS:
        doubt += "; two depths always make a line, a third would test it"
    if change is None:
        return f"nothing is compared{doubt}"
    a, b = change
    if a.moved is None or b.moved is None:
        return f"fewer than {FEWEST} quads do not tell which of the two moved{doubt}"
    told = {
        (True, True): "both moved: the cost at an empty context and that of every token in it",
        (True, False): "a moved: the cost that does not depend on depth; for b nothing is shown",
        (
            False,
            True,
        ): "b moved: the cost of every token in the context, so it grows with depth; for a nothing is shown",
        (False, False): "neither moved beyond its interval",
    }
    return told[a.moved, b.moved] + doubt
