"""Attribution: how much of a change in speed is due to either of two factors, and do they depend on each other?

In words. Four arms combine the old and the new side of two factors, say build and configuration. A datum is a *block*:
one process start of each arm, next to each other in time. With y the logarithm of a process's median speed, a block
gives three log contrasts, each of all four processes:

* the **main effect** of the first factor: what going from old to new does, averaged over both sides of the second one,
  ((y_new,old - y_old,old) + (y_new,new - y_old,new)) / 2;
* the main effect of the second factor, likewise;
* the **interaction**: by how much the first factor's effect differs between the sides of the second one (and the other
  way round, which is the same), (y_new,new - y_old,new) - (y_new,old - y_old,old).

The two main effects add up to the whole change, from both old to both new, whatever the interaction is. Each effect is
judged by the rule for quads, for which a block is one: four processes weigh as much. Half the interaction scatters as a
main effect does, so that is what the rule sees, with half the margin (on the log scale). Three tests are made of one
case, so each may spend a third of its alpha (Bonferroni): the chance that any of the three is called different although
nothing differs stays within the alpha of one case.

The **steps** (one factor alone, both together) are what a reader looks for next. They are shown with their intervals
and not judged: they are sums of the three effects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log1p

from harness.domain.measurement import ProcessRun
from harness.domain.spread import Spread
from harness.domain.verdict import Effect, Estimate
from harness.domain.words import Throughput
from harness.judging.intervals import LogMean
from harness.judging.samples import DEFAULT_CEILING_TPS, ProcessMedian, process_medians
from harness.judging.sequential import INTERVAL_ALPHA, Decision, Limits, decide

INTERACTION = "interaction"
TESTS = 3
"""Tests of one case, among which its alpha is divided."""

FEWEST_BLOCKS = 3
"""Below no interval is shown: that of two blocks spans orders of magnitude."""

_FIRST, _SECOND = (-0.5, -0.5, 0.5, 0.5), (-0.5, 0.5, -0.5, 0.5)
_BETWEEN = (1.0, -1.0, -1.0, 1.0)
_FIRST_ALONE, _SECOND_ALONE, _BOTH = (-1.0, 0.0, 1.0, 0.0), (-1.0, 1.0, 0.0, 0.0), (-1.0, 0.0, 0.0, 1.0)
"""Weights of the arms: both factors old; second new; first new; both new."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """What the blocks of four arms say.

    Attributes:
        first: Main effect of the first factor.
        second: Main effect of the second factor.
        interaction: What the new sides do together beyond what each does by itself.
        steps: First factor alone, second factor alone, both: shown, not judged.
        blocks: Blocks that have all four arms.
        open: More blocks can still decide an effect.
        medians: Process medians of each arm, all of them.
        dropped: Blocks that lack an arm.
        contrasts: Block by block, the log contrasts of the first and of the second factor.
    """

    first: Effect
    second: Effect
    interaction: Effect
    steps: tuple[Effect, Effect, Effect]
    blocks: int
    open: bool
    medians: tuple[tuple[ProcessMedian, ...], ...] = ()
    dropped: int = 0
    contrasts: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())

    @property
    def effects(self) -> tuple[Effect, ...]:
        """What is judged, then what is only shown."""
        return (self.first, self.second, self.interaction, *self.steps)

    @property
    def whole(self) -> Effect:
        """From both old to both new."""
        return self.steps[-1]


def judge_attribution(
    arms: Sequence[Sequence[ProcessRun]],
    workload: str,
    factors: tuple[str, str],
    limits: Limits,
    *,
    spread: Spread | None = None,
    ceiling_tps: float = DEFAULT_CEILING_TPS,
) -> Attribution:
    """Judge what two factors do to a speed.

    Args:
        arms: Processes of the four arms: both factors old; second new; first new; both new.
        workload: The workload's name.
        factors: What the two factors are called.
        limits: How strictly one case is decided; its alpha is divided among the three tests here.
        spread: What is known beforehand of the scatter of quads.
        ceiling_tps: Plausibility ceiling, tokens per second.

    Raises:
        Implausible: If a measurement is not a speed.
        NothingKept: If a process kept no repetition.
    """
    medians = [process_medians(runs, workload, ceiling_tps) for runs in arms]
    whole = sorted(set.intersection(*(set(found) for found in medians)))
    blocks = [tuple(found[block].log_tps for found in medians) for block in whole]
    return replace(
        judge_blocks(blocks, factors, limits, spread),
        medians=tuple(tuple(found.values()) for found in medians),
        dropped=len({block for found in medians for block in found} - set(whole)),
    )


def judge_blocks(
    blocks: Sequence[Sequence[float]], factors: tuple[str, str], limits: Limits, spread: Spread | None = None
) -> Attribution:
    """Judge whole blocks, in order of time.

    Args:
        blocks: Log speeds of the four arms, block by block.
        factors: What the two factors are called.
        limits: How strictly one case is decided; its alpha is divided among the three tests here.
        spread: What is known beforehand of the scatter of quads.
    """
    first, second = factors
    shared = limits_of_each(limits)
    half = Limits(shared.alpha, exp(log1p(limits.margin) / 2) - 1, limits.max_quads)
    main = (tuple(_contrasts(blocks, _FIRST)), tuple(_contrasts(blocks, _SECOND)))
    decisions = (
        *(_decided(contrasts, shared, spread) for contrasts in main),
        _decided([value / 2 for value in _contrasts(blocks, _BETWEEN)], half, spread),
    )
    words = [decision.throughput for decision, _ in decisions]
    return Attribution(
        first=_effect(first, blocks, _FIRST, words[0]),
        second=_effect(second, blocks, _SECOND, words[1]),
        interaction=_effect(INTERACTION, blocks, _BETWEEN, words[2]),
        steps=(
            _effect(f"{first} alone", blocks, _FIRST_ALONE),
            _effect(f"{second} alone", blocks, _SECOND_ALONE),
            _effect("both", blocks, _BOTH),
        ),
        blocks=len(blocks),
        open=any(still_open for _, still_open in decisions),
        contrasts=main,
    )


def limits_of_each(limits: Limits) -> Limits:
    """How strictly each main effect is decided: the tests of a case share its alpha."""
    return replace(limits, alpha=limits.alpha / TESTS)


def _decided(values: Sequence[float], limits: Limits, spread: Spread | None) -> tuple[Decision, bool]:
    """What the blocks so far say, if there are no more of them, and whether more could still decide it.

    As with quads, a job that ends before the rule has decided looks at its last block as the last look. Nothing is
    decided by blocks too few for a figure: a word without one would have to be believed.
    """
    if len(values) < FEWEST_BLOCKS:
        return decide((), limits, spread), True
    decision = decide(values, limits, spread)
    if not decision.open:
        return decision, False
    return decide(values, replace(limits, max_quads=len(values)), spread), True


def _contrasts(blocks: Sequence[Sequence[float]], weights: Sequence[float]) -> list[float]:
    return [sum(weight * value for weight, value in zip(weights, block, strict=True)) for block in blocks]


def _effect(
    name: str, blocks: Sequence[Sequence[float]], weights: Sequence[float], word: Throughput | None = None
) -> Effect:
    """An effect over all whole blocks: its figures stand beside one another, so they rest on the same data."""
    values = _contrasts(blocks, weights)
    if len(values) < FEWEST_BLOCKS:
        return Effect(name, word, None)
    mean = LogMean.of(values)
    low, high = mean.interval(INTERVAL_ALPHA)
    return Effect(name, word, Estimate(mean.factor, low, high, mean.n, "ratio", mean.p_two_sided()))
