"""Drive a planner of order through a night, without any executor: only time is simulated."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from placement_nights import Night
from placement_rivals import Planner

from harness.execution.at_hand import ModelsAtHand

_ASKED_AGAIN_S = 10.0
"""A planner that leaves slots free is asked again, as the dispatcher does."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a night went.

    Attributes:
        end_s: When the last job ended.
        loads: Models that had to be loaded.
        cpu_s: Seconds of CPU that the planner took for all its decisions.
        at: Place of each job.
    """

    end_s: float
    loads: int
    cpu_s: float
    at: dict[str, str]


class _Clocked:
    """Adds up the CPU time of calls."""

    def __init__(self) -> None:
        self.cpu_s = 0.0

    def __call__(self, work: Callable[[], Answer]) -> Answer:
        began = time.process_time()
        try:
            return work()
        finally:
            self.cpu_s += time.process_time() - began


def run_night(night: Night, planner: Planner) -> Outcome:
    """Run it to its end.

    Raises:
        RuntimeError: The planner left jobs behind, or put one where it can't run.
    """
    tasks = {task.id: task for task in night.tasks}
    places = {place.id: place for place in night.places}
    at_hand = {name: ModelsAtHand(place.cache_bytes, place.holds) for name, place in places.items()}
    clocked = _Clocked()
    clocked(lambda: planner.set_places(night.places))
    for task in night.tasks:
        clocked(lambda task=task: planner.add(task))  # type: ignore[misc]  # mypy does not know defaults of lambdas
    at: dict[str, str] = {}
    ends: list[tuple[float, str]] = []
    now, loads = 0.0, 0
    while True:
        while (placed := clocked(lambda: planner.next(now))) is not None:  # noqa: B023 - called at once
            name, place = placed
            if name in at or place not in tasks[name].places:
                raise RuntimeError(f"{name} was put to {place}")
            at[name] = place
            missing = at_hand[place].missing(tasks[name].models)
            at_hand[place].use(tasks[name].models)
            loads += missing > 0
            heapq.heappush(ends, (now + places[place].load_s_per_byte * missing + night.takes[name], name))
        if not ends:
            break
        free = len(ends) < sum(place.slots for place in night.places)
        if free and len(planner) and ends[0][0] > now + _ASKED_AGAIN_S:
            now += _ASKED_AGAIN_S
            continue
        now, name = heapq.heappop(ends)
        clocked(lambda: planner.ended(name, now))  # noqa: B023 - called at once
    if len(at) < len(tasks):
        raise RuntimeError(f"{len(tasks) - len(at)} jobs were left behind")
    return Outcome(now, loads, clocked.cpu_s, at)
