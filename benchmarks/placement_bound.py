"""A lower bound of the time in which a night can be over, whoever plans it and whatever he knows.

The largest of three, each of which no schedule can beat:

* the longest job, with the quickest load of its model;
* longest jobs that have to share slots: of ``q * n + 1`` jobs that only ``n`` slots can take, ``q + 1`` share one;
* the least ``T`` for which a linear programme has a solution: the work of each class and model is spread over the kinds
  of nodes that can take it; no kind works more than its nodes have time until ``T``; a node that works on a model loads
  it first, so it can do at most ``T - load`` of it, and of each model at least so many nodes must load it that they can
  do its work.

Of a small night there is a fourth: what is proved of the least end of all schedules by branch and bound. There each job
is done by one node, and each node loads, once at least, each model of its jobs.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from placement_nights import Night
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array

from harness.execution.order_tasks import Task

_PRECISION = 1.003
_GROWTH = 1.2
_SMALL = 100
"""Pairs of jobs and nodes of a night of which the least end can be had in seconds."""
_PROVING_S = 30.0
_GAP = 0.003


@dataclass(frozen=True, slots=True)
class _Load:
    """Work of one model for one class, as the kinds of nodes that can take it."""

    kinds: tuple[int, ...]
    model: str


_Row = dict[int, float]


class _Programme:
    """The linear programme of a night."""

    def __init__(self, night: Night) -> None:
        self._nodes = Counter(night.kinds.values())
        rates = {night.kinds[place.id]: place.load_s_per_byte for place in night.places}
        sizes = {key: size for task in night.tasks for key, size in task.models}
        self._load_s = {(model, kind): size * rates[kind] for model, size in sizes.items() for kind in rates}
        self._models, self._kinds = sorted(sizes), sorted(rates)
        self._work: dict[_Load, float] = defaultdict(float)
        for task in night.tasks:
            self._work[_Load(kinds_of(task.places, night.kinds), task.models[0][0])] += night.takes[task.id]
        self._share = {
            (load, kind): number
            for number, (load, kind) in enumerate((load, kind) for load in self._work for kind in load.kinds)
        }
        pairs = itertools.product(self._models, self._kinds)
        self._loaders = {pair: len(self._share) + number for number, pair in enumerate(pairs)}

    def allows(self, end_s: float) -> bool:
        """Whether all could be done by then."""
        at_most, limits = zip(*self._limits(end_s), strict=True)
        equal = [{self._share[load, kind]: 1.0 for kind in load.kinds} for load in self._work]
        columns = len(self._share) + len(self._loaders)
        bounds = [(0.0, math.inf)] * len(self._share) + [(0.0, float(self._nodes[kind])) for _, kind in self._loaders]
        solved = linprog(
            np.zeros(columns),
            A_ub=_matrix(at_most, columns),
            b_ub=limits,
            A_eq=_matrix(equal, columns),
            b_eq=list(self._work.values()),
            bounds=bounds,
        )
        return bool(solved.status == 0)

    def _limits(self, end_s: float) -> Iterable[tuple[_Row, float]]:
        for model in self._models:
            room_s = end_s - min(self._load_s[model, kind] for kind in self._kinds)
            work_s = sum(seconds for load, seconds in self._work.items() if load.model == model)
            loaders = math.ceil(work_s / room_s - 1e-9) if room_s > 0 else math.inf
            yield {self._loaders[model, kind]: -1.0 for kind in self._kinds}, -float(min(loaders, 1e9))
            for kind in self._kinds:
                row = {column: 1.0 for (load, on), column in self._share.items() if (load.model, on) == (model, kind)}
                row[self._loaders[model, kind]] = -max(0.0, end_s - self._load_s[model, kind])
                yield row, 0.0
        for kind in self._kinds:
            row = {column: 1.0 for (_, on), column in self._share.items() if on == kind}
            row |= {self._loaders[model, kind]: self._load_s[model, kind] for model in self._models}
            yield row, self._nodes[kind] * end_s


def lower_bound(night: Night) -> float:
    """Seconds; rounded down by less than a third of a percent."""
    bound = _fractional(night)
    return max(bound, _proved(night, bound)) if len(night.tasks) * len(night.places) <= _SMALL else bound


def _fractional(night: Night) -> float:
    programme = _Programme(night)
    low = max(_longest(night), _sharing(night))
    if programme.allows(low):
        return low
    high = low * _GROWTH
    while not programme.allows(high):
        low, high = high, high * _GROWTH
    while high / low > _PRECISION:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if programme.allows(middle) else (middle, high)
    return low


def _proved(night: Night, at_least: float) -> float:
    """Seconds that no schedule can beat, whatever time it took to prove that.

    Args:
        night: The night.
        at_least: What is known of it.
    """
    done = {(task.id, name): number for number, (task, name) in enumerate(_pairs(night))}
    sizes = {key: size for task in night.tasks for key, size in task.models}
    names = [place.id for place in night.places]
    loaded = {pair: len(done) + number for number, pair in enumerate(itertools.product(sizes, names))}
    end = len(done) + len(loaded)
    rows: list[tuple[_Row, float, float]] = [
        ({done[task.id, name]: 1.0 for name in names if name in task.places}, 1.0, 1.0) for task in night.tasks
    ]
    rows += [
        ({done[task.id, name]: 1.0, loaded[key, name]: -1.0}, -math.inf, 0.0)
        for task, name in _pairs(night)
        for key, _ in task.models
    ]
    for place in night.places:
        row = {column: night.takes[task] for (task, name), column in done.items() if name == place.id}
        row |= {loaded[key, place.id]: size * place.load_s_per_byte for key, size in sizes.items()}
        rows.append((row | {end: -1.0}, -math.inf, 0.0))
    limits = LinearConstraint(
        _matrix([row for row, _, _ in rows], end + 1), *zip(*(row[1:] for row in rows), strict=True)
    )
    with _silent():
        solved = milp(
            np.eye(1, end + 1, end)[0],
            constraints=limits,
            integrality=[*[1] * end, 0],
            bounds=Bounds([*[0.0] * end, at_least], [*[1.0] * end, math.inf]),
            options={"time_limit": _PROVING_S, "mip_rel_gap": _GAP},
        )
    return float(solved.mip_dual_bound or 0.0)


@contextmanager
def _silent() -> Iterator[None]:
    """Keep what the solver prints for its makers out of our output: it writes past Python."""
    sys.stdout.flush()
    kept = os.dup(1)
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _pairs(night: Night) -> Iterable[tuple[Task, str]]:
    return ((task, place.id) for task in night.tasks for place in night.places if place.id in task.places)


def kinds_of(places: frozenset[str], kinds: Mapping[str, int]) -> tuple[int, ...]:
    """The kinds of some nodes."""
    return tuple(sorted({kinds[name] for name in places}))


def _longest(night: Night) -> float:
    rates = {place.id: place.load_s_per_byte for place in night.places}
    quickest = {places: min(rates[name] for name in places) for places in {task.places for task in night.tasks}}
    return max(
        night.takes[task.id] + quickest[task.places] * sum(size for _, size in task.models) for task in night.tasks
    )


def _sharing(night: Night) -> float:
    """Jobs that have to share a slot; for each set of nodes those that can go nowhere else."""
    unions = {frozenset[str]()}
    for places in {task.places for task in night.tasks}:
        unions |= {places | union for union in unions}
    best = 0.0
    for union in unions - {frozenset[str]()}:
        seconds = sorted((night.takes[task.id] for task in night.tasks if task.places <= union), reverse=True)
        for last in range(len(union), len(seconds), len(union)):
            best = max(best, sum(seconds[last - last // len(union) : last + 1]))
    return best


def _matrix(rows: Iterable[_Row], columns: int) -> csr_array:
    listed = list(rows)
    data = [value for row in listed for value in row.values()]
    at = [number for number, row in enumerate(listed) for _ in row], [column for row in listed for column in row]
    return csr_array((data, at), shape=(len(listed), columns))
