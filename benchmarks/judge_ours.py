"""Our own rule in the benchmark: ``decide`` and ``bears_out`` of the harness itself, on quads of a machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from judge_noise import KEPT, QUAD_STARTS, Floats, Source, draw_quads, insides_of, quad_arms, quads_of
from judge_rivals import Words
from numpy.typing import NDArray

from harness.domain.spread import Spread
from harness.domain.words import Throughput
from harness.judging.quads import bears_out
from harness.judging.sequential import Limits, decide

BURN_IN_STARTS = 2
"""One process of each arm, not scored."""

CALIBRATION_QUADS = 24
"""Quads that a known spread was measured from, on another day of the same machine."""

_SIGN = {Throughput.REGRESSED: -1, Throughput.IMPROVED: 1}


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What the rule is told of the scatter.

    Attributes:
        name: In words, for the table.
        factor: The measured spread is told so many times as large as it was; ``None``: it was not measured.
        quad_sd: What is told where nothing was measured; ``None``: nothing.
    """

    name: str
    factor: float | None
    quad_sd: float | None = None


UNKNOWN = Knowledge("spread unknown", None)
KNOWN = Knowledge("spread known", 1.0)
TOO_SMALL = Knowledge("spread said half as large", 0.5)
TOO_LARGE = Knowledge("spread said twice as large", 2.0)
STALE = Knowledge("spread of a quiet day, 2 %", None, 0.02)


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of sessions.

    Attributes:
        words: -1 slower, 0 neither, 1 faster.
        equivalent: Where no change beyond the margin was shown.
        starts: Process starts, burn-in counted.
    """

    words: Words
    equivalent: NDArray[np.bool_]
    starts: NDArray[np.int_]


def spreads(source: Source, sessions: int, knowledge: Knowledge, rng: np.random.Generator) -> list[Spread | None]:
    """What each session is told: a calibration of its own, so that the luck of calibrating is in the figures."""
    if knowledge.quad_sd:
        return [Spread("simulated", knowledge.quad_sd, CALIBRATION_QUADS - 1, knowledge.name)] * sessions
    if knowledge.factor is None:
        return [None] * sessions
    measured = draw_quads(source, sessions, CALIBRATION_QUADS, rng).std(axis=1, ddof=1) * knowledge.factor
    return [Spread("simulated", float(sd), CALIBRATION_QUADS - 1, knowledge.name) for sd in measured]


def judge_quads(quads: Floats, insides: Floats, limits: Limits, told: list[Spread | None]) -> Judged:
    """Each session's quads, as many as the limits allow, judged until something is decided.

    Args:
        quads: Log ratios, sessions x quads.
        insides: How far apart the processes of one arm are in each.
        limits: How strictly.
        told: What is known of the scatter, for each session.
    """
    words, equivalent = np.zeros(len(quads), dtype=int), np.zeros(len(quads), dtype=bool)
    used = np.empty(len(quads), dtype=int)
    for index, (row, apart, spread) in enumerate(zip(quads.tolist(), insides.tolist(), told, strict=True)):
        known = spread if spread and bears_out(apart[0], spread) else None
        decision = decide(row, limits, known, apart)
        words[index] = _SIGN.get(decision.throughput, 0)
        equivalent[index] = decision.throughput is Throughput.EQUIVALENT
        used[index] = decision.next_look  # of an ended case: the quads that it took
    return Judged(words, equivalent, BURN_IN_STARTS + QUAD_STARTS * used)


def judge_sessions(
    source: Source, sessions: int, effect: float, limits: Limits, *, knowledge: Knowledge, rng: np.random.Generator
) -> Judged:
    """Judge fresh sessions of a machine.

    Args:
        source: The machine.
        sessions: How many.
        effect: True log ratio of candidate speed over baseline speed.
        limits: How strictly.
        knowledge: What the rule is told of the scatter.
        rng: Source of chance.
    """
    told = spreads(source, sessions, knowledge, rng)
    log_times = source.log_times(sessions, quad_arms(limits.max_quads), KEPT, rng)
    return judge_quads(quads_of(log_times, effect), insides_of(log_times), limits, told)
