"""Simple ways to order jobs, to be held against the planner's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from harness.execution.at_hand import Models, ModelsAtHand
from harness.execution.order_places import Place
from harness.execution.order_tasks import Task


class Planner(Protocol):
    """What the simulator drives: the methods of `harness.execution.order.Order`."""

    def __len__(self) -> int:
        """Tasks that wait."""
        ...

    def set_places(self, places: Iterable[Place]) -> None:
        """Say which places there are."""
        ...

    def add(self, task: Task) -> None:
        """Have a task wait."""
        ...

    def next(self, now: float) -> tuple[str, str] | None:
        """Place one task."""
        ...

    def ended(self, task: str, now: float) -> None:
        """Say that a placed task ended."""
        ...


class FirstCome:
    """A free slot takes the first job that it can."""

    def __init__(self) -> None:
        self._tasks: list[Task] = []
        self._free: dict[str, int] = {}
        self._at: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def set_places(self, places: Iterable[Place]) -> None:
        """All are free."""
        self._free = {place.id: place.slots for place in places}

    def add(self, task: Task) -> None:
        """The last one."""
        self._tasks.append(task)

    def next(self, now: float) -> tuple[str, str] | None:
        """One job."""
        del now
        for place in (name for name, free in self._free.items() if free):
            task = self._chosen(place)
            if task is not None:
                self._tasks.remove(task)
                self._free[place] -= 1
                self._at[task.id] = place
                return task.id, place
        return None

    def ended(self, task: str, now: float) -> None:
        """Its slot is free."""
        del now
        self._free[self._at.pop(task)] += 1

    def _chosen(self, place: str) -> Task | None:
        return next((task for task in self._tasks if place in task.places), None)


class LongestFirst(FirstCome):
    """A free slot takes the longest job that it can."""

    def add(self, task: Task) -> None:
        """Where it belongs."""
        super().add(task)
        self._tasks.sort(key=lambda each: -each.seconds)


class ShortestFirst(FirstCome):
    """The wrong way round: what a planner must be told from."""

    def add(self, task: Task) -> None:
        """Where it belongs."""
        super().add(task)
        self._tasks.sort(key=lambda each: each.seconds)


class Affinity(FirstCome):
    """A free slot takes the first job whose model lies there, else of a model that nobody has, else that it can."""

    def set_places(self, places: Iterable[Place]) -> None:
        """All are free, and nothing lies there."""
        listed = list(places)
        super().set_places(listed)
        self._at_hand = {place.id: ModelsAtHand(place.cache_bytes, place.holds) for place in listed}
        self._known: set[Models] = set()

    def _chosen(self, place: str) -> Task | None:
        at_hand = self._at_hand[place]
        tasks = [task for task in self._tasks if place in task.places]
        near = (task for task in tasks if not at_hand.missing(task.models))
        new = (task for task in tasks if task.models not in self._known)
        task = next(near, None) or next(new, None) or next(iter(tasks), None)
        if task is not None:
            at_hand.use(task.models)
            self._known.add(task.models)
        return task
