"""The cells of the benchmark's table: one machine, one true change, one way of judging."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import chain

import numpy as np
from judge_noise import PROFILES, QUIET, TYPICAL, Source, adversaries, with_quad_sd
from judge_ours import KNOWN, TOO_LARGE, TOO_SMALL, UNKNOWN, Judged, Knowledge, judge_sessions
from judge_rivals import Rival, rivals
from judge_traces import h200_traces, own_traces

from harness.judging.sequential import Limits

MAX_QUADS = 48
_CHUNK = 500


@dataclass(frozen=True, slots=True)
class Ours:
    """Our rule with what it is told.

    Attributes:
        alpha: Two-sided error rate of a case.
        knowledge: What it is told of the scatter.
    """

    alpha: float
    knowledge: Knowledge

    @property
    def name(self) -> str:
        """What it is called in the table."""
        return f"ours, alpha {self.alpha:g}, {self.knowledge.name}"


OURS = tuple(Ours(alpha, told) for alpha in (1e-5, 1e-3) for told in (UNKNOWN, KNOWN, TOO_SMALL, TOO_LARGE))


@dataclass(frozen=True, slots=True)
class Task:
    """One cell.

    Attributes:
        machine: Name of the source.
        way: Our rule, or the name of a rival.
        effect: True log ratio of candidate speed over baseline speed.
        margin: Margin of our rule.
        sessions: How many sessions are judged.
        seed: Of everything that is drawn.
    """

    machine: str
    way: Ours | str
    effect: float
    margin: float
    sessions: int
    seed: int


@dataclass(frozen=True, slots=True)
class Cell:
    """What became of the sessions of a task.

    Attributes:
        slower: Sessions called slower.
        faster: Sessions called faster.
        equivalent: Sessions shown to lie inside the margin.
        starts: Mean of process starts.
        sessions: How many there were.
    """

    slower: int
    faster: int
    equivalent: int
    starts: float
    sessions: int


@cache
def machines() -> dict[str, Source]:
    """Everything that is judged on, by name."""
    scaled = (with_quad_sd(QUIET, 0.01), with_quad_sd(TYPICAL, 0.034))
    everything: Iterable[Source] = chain(PROFILES, scaled, adversaries(), h200_traces(), own_traces())
    return {source.name: source for source in everything}


RIVALS: dict[str, Rival] = {rival.name: rival for rival in rivals()}


def measure(task: Task) -> Cell:
    """Judge the sessions of a cell; equal tasks give equal cells."""
    source, way = machines()[task.machine], task.way
    rng = np.random.default_rng([task.seed, zlib.crc32(repr(task).encode())])
    if isinstance(way, Ours):
        limits = Limits(way.alpha, task.margin, MAX_QUADS)
        return _sum(
            [
                judge_sessions(source, count, task.effect, limits, knowledge=way.knowledge, rng=rng)
                for count in _chunks(task.sessions)
            ]
        )
    rival = RIVALS[way]
    words = rival.words(source, task.sessions, task.effect, rng)
    return Cell(int((words < 0).sum()), int((words > 0).sum()), 0, float(len(rival.arms)), len(words))


def measure_all(tasks: list[Task], jobs: int) -> Iterator[tuple[Task, Cell]]:
    """All cells, in the order of the tasks.

    Args:
        tasks: The cells wanted.
        jobs: Processes to share them out to.
    """
    if jobs == 1:
        yield from zip(tasks, map(measure, tasks), strict=True)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from zip(tasks, pool.map(measure, tasks), strict=True)


def _chunks(sessions: int) -> Iterator[int]:
    for done in range(0, sessions, _CHUNK):
        yield min(_CHUNK, sessions - done)


def _sum(parts: list[Judged]) -> Cell:
    words = np.concatenate([part.words for part in parts])
    starts = np.concatenate([part.starts for part in parts])
    equivalent = sum(int(part.equivalent.sum()) for part in parts)
    return Cell(int((words < 0).sum()), int((words > 0).sum()), equivalent, float(starts.mean()), len(words))
