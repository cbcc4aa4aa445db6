"""Judges what the benchmark of output equivalence kept: every pair of ways by the product's judge, and by rivals."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from equivalence_plan import FAULTS, Role, Way, broken_ways, harmless_ways
from equivalence_rivals import CRITERIA
from equivalence_runs import Kept

from harness.domain.model import Model
from harness.domain.outputs import Output
from harness.domain.tolerance import ContrastClass, Figures, Tolerance
from harness.domain.words import Status
from harness.domain.workload import OutputProfile
from harness.judging.output_floors import seen_in, tolerated_after
from harness.judging.outputs import judge_outputs
from harness.judging.outputs_allowed import allowed_of, contrast_class
from harness.judging.outputs_statistics import Comparison
from harness.judging.quants import limits_of

_PROMPTS_OF = {250: 2, 1000: 8, 4000: 32}
"""Prompts that come nearest to a budget of positions."""
CRASHED = "crash"


@dataclass(frozen=True, slots=True)
class Answers:
    """What one process said.

    Attributes:
        way: The way of running.
        outputs: Its answers, by prompt.
        profile: What it was asked.
        crash: Why it gave none; empty where it did.
    """

    way: Way
    outputs: tuple[Output, ...]
    profile: OutputProfile
    crash: str


@dataclass(frozen=True, slots=True)
class Judged:
    """One comparison.

    Attributes:
        net: The network's name.
        quant: Its quantization.
        contrast: In what the two ways differ.
        fork: Whose engine the second of them is.
        planted: The fault in the second; empty: none.
        budget: Positions, about.
        found: It was called different or broken.
        tier: The word it got; ``crash`` where there was nothing to judge.
        why: The reason.
        rivals: Whether each other criterion called it different; empty where none was asked.
        calibrated: The same as ``found``, by what a calibration of this very network tolerates, alone: as for a real
            model, of which nothing is shipped. ``None``: it calibrates no contrast of this class.
    """

    net: str
    quant: str
    contrast: ContrastClass
    fork: str
    planted: str
    budget: int
    found: bool
    tier: str
    why: str
    rivals: tuple[bool, ...] = ()
    calibrated: bool | None = None


def answers_of(kept: Kept, ways: Iterator[Way]) -> list[Answers]:
    """Those ways that have been run."""
    found = []
    for way in ways:
        said = kept.report(way)
        if said is not None:
            report, profile = said
            found.append(Answers(way, report.outputs, profile, report.failure.message if report.failure else ""))
    return found


def harmless_pairs(kept: Kept, *, budgets: Sequence[int] = (250, 1000)) -> Iterator[Judged]:
    """Every pair of sound ways, each once."""
    sound = answers_of(kept, harmless_ways(combined=True))
    for one, other in itertools.combinations(sound, 2):
        yield from _judged(kept, one, other, budgets)
    # Two threads on few cores crawl: these answer few prompts.
    for one, other in itertools.product(_bases(sound), answers_of(kept, harmless_ways(threads=True))):
        yield from _judged(kept, one, other, budgets[:1])


def planted_pairs(kept: Kept, *, budgets: Sequence[int] = (250, 1000)) -> Iterator[Judged]:
    """Every broken way beside the plain one of each fork."""
    bases = _bases(answers_of(kept, harmless_ways()))
    for other, base in itertools.product(answers_of(kept, broken_ways(kept.net.seed)), bases):
        yield from _judged(kept, base, other, budgets)


def figures_of(kept: Kept) -> Iterator[tuple[ContrastClass, Figures]]:
    """What harmless pairs of a calibration network showed."""
    if kept.net.role is not Role.CALIBRATION:
        raise ValueError(f"{kept.net.name} is not for calibration")
    for one, other in itertools.permutations(answers_of(kept, harmless_ways()), 2):
        compared = Comparison(list(zip(one.outputs, other.outputs, strict=True)))
        yield _contrast(kept, one.way, other.way), compared.figures


@lru_cache
def _calibration(kept: Kept) -> tuple[Tolerance, ...]:
    """What ``calibrate --outputs`` finds of a network: plain and with the other attention, on both forks."""
    ways = [way for way in harmless_ways() if way.name.endswith(("-base", "-fa0"))]
    answers = answers_of(kept, iter(ways))
    kinds: dict[ContrastClass, list[tuple[tuple[Output, ...], tuple[Output, ...]]]] = {}
    for one, other in itertools.combinations(answers, 2):
        kinds.setdefault(_contrast(kept, one.way, other.way), []).append((one.outputs, other.outputs))
    found = []
    for contrast, pairs in kinds.items():
        alone = [outputs for pair in pairs for outputs in pair] if contrast is ContrastClass.FLAGS else []
        seen = seen_in(pairs, alone)
        if seen:
            found.append(Tolerance(contrast, tolerated_after(seen.figures, contrast), "its calibration"))
    return tuple(found)


def _bases(answers: Sequence[Answers]) -> list[Answers]:
    return [each for each in answers if each.way.name.endswith("-base")]


def _contrast(kept: Kept, one: Way, other: Way) -> ContrastClass:
    arms = (way.arm(kept.net.name, kept.quant) for way in (one, other))
    return contrast_class(*arms, None)


def _judged(kept: Kept, one: Answers, other: Answers, budgets: Sequence[int]) -> Iterator[Judged]:
    for budget in budgets:
        size = _PROMPTS_OF[budget]
        most = min(len(one.profile.prompts), len(other.profile.prompts))
        for first in range(0, max(1, most - size + 1), size):
            yield _judge(kept, one, other, budget, slice(first, min(first + size, most)))


def _judge(kept: Kept, one: Answers, other: Answers, budget: int, part: slice) -> Judged:
    arms = [each.way.arm(kept.net.name, kept.quant) for each in (one, other)]
    planted = "" if other.way.sound else _fault(other.way)
    judged = Judged(
        kept.net.name, kept.quant, contrast_class(*arms, None), str(other.way.fork), planted, budget, True, CRASHED, ""
    )
    if other.crash:
        return replace(judged, why=other.crash, rivals=(True,) * len(CRITERIA), calibrated=True)
    asked = replace(other.profile, prompts=other.profile.prompts[part])
    ours, theirs = one.outputs[part], other.outputs[part]
    limits = limits_of(arms[0].model)
    verdict = judge_outputs(ours, theirs, asked, limits, allowed_of(*arms, None, (), None))
    known = [each for each in _calibration(kept) if each.contrast is judged.contrast]
    real = [replace(arm, model=Model("real", path=f"{kept.quant}.gguf")) for arm in arms]
    after = judge_outputs(ours, theirs, asked, limits, allowed_of(*real, None, known, None)) if known else None
    rivals = tuple(not same(list(zip(ours, theirs, strict=True))) for same in CRITERIA.values())
    return replace(
        judged,
        found=verdict.status is not Status.PASS,
        tier=str(verdict.equivalence or verdict.status),
        why=verdict.why,
        rivals=rivals,
        calibrated=after.status is not Status.PASS if after else None,
    )


def _fault(way: Way) -> str:
    if way.kind is not None:
        return str(way.kind)
    return next(name for name in FAULTS if f"-{name}" in way.name)
