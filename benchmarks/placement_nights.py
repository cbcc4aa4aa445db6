"""Nights to simulate: fleets of unlike nodes, models of unlike popularity, jobs as long as real ones.

Durations are log-normal with the median and the spread of the jobs in the journals of `tests/data`. A job takes as long
on each node that can take it. What is thought of it is wrong by a factor that a whole night shares, and by one of its
own. Nothing lies on the nodes at the beginning.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

from harness.domain.node import GIB
from harness.execution.order_places import Place
from harness.execution.order_tasks import Task

JOURNALS = Path(__file__).parents[1] / "tests" / "data"
_MOST_KINDS = 3
_RATES = 0.1, 2.0
"""GiB a second at which a model gets onto a node: a gigabit network at the one end, a fast disk at the other."""
_MODELS_GIB = 8.0, 24.0
_CACHES_GIB = 24, 48, 96
_ANYWHERE = 0.5
"""Share of the jobs, about, that every node can take."""
_WRONG_NIGHT = 2.0
"""The factor that a whole night is off by lies between its inverse and it, at most."""
_WRONG_JOB = 0.4
"""Standard deviation of the logarithm of the factor that one job is off by."""


@dataclass(frozen=True, slots=True)
class Night:
    """Jobs for a fleet.

    Attributes:
        places: The nodes.
        kinds: Of each node, by its id; nodes of one kind take the same jobs and are as quick to load models.
        tasks: The jobs, as the planner of order knows them, those of a model together, as plans have them.
        takes: Seconds that each takes in truth, without loads.
    """

    places: tuple[Place, ...]
    kinds: Mapping[str, int]
    tasks: tuple[Task, ...]
    takes: Mapping[str, float]


@cache
def real_seconds() -> tuple[float, ...]:
    """What the jobs took that are in the journals of the tests' data."""
    found = []
    for path in sorted(JOURNALS.glob("h200_*/*.jsonl")) + sorted(JOURNALS.glob("gate/*.jsonl")):
        began: dict[str, datetime] = {}
        for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            when = datetime.fromisoformat(line["t"])
            if line["event"] == "job_started":
                began[line["job"]] = when
            elif line["event"] == "job_finished" and line["job"] in began:
                found.append((when - began[line["job"]]).total_seconds())
    return tuple(found)


def night(nodes: int, jobs: int, seed: int) -> Night:
    """One night.

    Args:
        nodes: Size of the fleet.
        jobs: Number of jobs.
        seed: Equal seeds give equal nights.
    """
    draw = random.Random(seed)  # noqa: S311 - a simulation
    places, kinds = _fleet(draw, nodes)
    models = _models(draw, max(_MOST_KINDS + 1, draw.randint(nodes // 4, nodes)))
    popular = [draw.lognormvariate(0, 1) for _ in models]
    classes = _classes(draw, kinds)
    logs = [math.log(seconds) for seconds in real_seconds()]
    middle, spread = statistics.median(logs), statistics.stdev(logs)
    wrong = math.exp(draw.uniform(-1, 1) * math.log(_WRONG_NIGHT))
    tasks, takes = [], {}
    for number in range(jobs):
        name = f"job-{number:04d}"
        takes[name] = draw.lognormvariate(middle, spread)
        thought = takes[name] * wrong * draw.lognormvariate(0, _WRONG_JOB)
        (of_class,) = draw.choices([places for places, _ in classes], [weight for _, weight in classes])
        (model,) = draw.choices(models, popular)
        tasks.append(Task(name, of_class, thought, (model,)))
    return Night(places, kinds, tuple(sorted(tasks, key=lambda task: task.models)), takes)


def _fleet(draw: random.Random, nodes: int) -> tuple[tuple[Place, ...], dict[str, int]]:
    """Nodes of one to three kinds."""
    count = draw.randint(1, min(_MOST_KINDS, nodes))
    ends = [*sorted(draw.sample(range(1, nodes), count - 1)), nodes]
    rates = [math.exp(draw.uniform(*map(math.log, _RATES))) * GIB for _ in ends]
    caches = [draw.choice(_CACHES_GIB) * GIB for _ in ends]
    kinds = {f"node-{number:02d}": sum(number >= end for end in ends) for number in range(nodes)}
    places = [Place(name, 1, caches[kind], 1 / rates[kind]) for name, kind in kinds.items()]
    return tuple(places), kinds


def _models(draw: random.Random, count: int) -> list[tuple[str, int]]:
    return [(f"model-{number:02d}", int(draw.uniform(*_MODELS_GIB) * GIB)) for number in range(count)]


def _classes(draw: random.Random, kinds: Mapping[str, int]) -> Sequence[tuple[frozenset[str], float]]:
    """Node classes, each as the places that belong to it, with its weight: all nodes, some kinds, one kind."""
    everyone = frozenset(kinds)
    found = [(everyone, _ANYWHERE * len(everyone))]
    all_kinds = range(1 + max(kinds.values()))
    for size in range(1, len(all_kinds)):
        for some in itertools.combinations(all_kinds, size):
            places = frozenset(name for name, kind in kinds.items() if kind in some)
            found.append((places, draw.random() * (1 - _ANYWHERE) * len(places)))
    return found
