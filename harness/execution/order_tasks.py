"""Jobs that wait, as far as their order goes: found by where they can run and what they load, longest last."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from harness.execution.at_hand import Models

Places: TypeAlias = frozenset[str]

_SPARED = 64
"""Decisions that may pass over a task, beside one for each that waits when it could first have been chosen."""


@dataclass(frozen=True, slots=True)
class Task:
    """A job as far as its order goes.

    Attributes:
        id: The job's.
        places: Where it can run.
        seconds: What it is thought to take there, without the loading of models.
        models: What it loads.
    """

    id: str
    places: Places
    seconds: float
    models: Models = ()


_Entry: TypeAlias = tuple[float, int, Task]
"""Seconds, minus the number of its coming, and the task: the first of equally long ones stands last."""


@dataclass(slots=True, eq=False)
class Group:
    """Waiting tasks that differ in their seconds alone, shortest first; never empty.

    Attributes:
        places: Where they can run.
        models: What they load.
        entries: The tasks.
    """

    places: Places
    models: Models
    entries: list[_Entry] = field(default_factory=list)

    @property
    def longest_s(self) -> float:
        """Of the longest task."""
        return self.entries[-1][0]

    @property
    def longest(self) -> Task:
        """The longest task, of equal ones the first that came."""
        return self.entries[-1][2]

    def within(self, seconds: float) -> Task | None:
        """The longest task that takes no more than that; ``None``: all take more."""
        end = bisect_right(self.entries, seconds, key=lambda entry: entry[0])
        return self.entries[end - 1][2] if end else None


class Waiting:
    """All tasks that wait."""

    def __init__(self) -> None:
        self._groups: dict[Places, dict[Models, Group]] = {}
        self._entries: dict[str, _Entry] = {}
        self._by_places: dict[Places, float] = {}
        self._by_models: dict[Models, float] = {}
        self._inside: dict[Places, tuple[Places, ...]] = {}
        self._new: list[str] = []
        self._due: deque[tuple[int, str]] = deque()
        self._came = 0
        self._taken = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Task]:
        """In the order in which they came."""
        return (task for _, _, task in self._entries.values())

    def add(self, task: Task) -> None:
        """Have a task wait."""
        self._came += 1
        entry = self._entries[task.id] = (task.seconds, -self._came, task)
        if task.places not in self._groups:
            self._groups[task.places] = {}
            self._nest()
        groups = self._groups[task.places]
        insort(groups.setdefault(task.models, Group(task.places, task.models)).entries, entry)
        self._count(task, task.seconds)
        self._new.append(task.id)

    def take(self, task: Task) -> None:
        """Have a task wait no more, since it is placed."""
        due = self._taken + len(self._entries) + _SPARED
        self._due.extend((due, name) for name in self._new)
        self._new.clear()
        self._taken += 1
        self.drop(task.id)

    def get(self, task: str) -> Task | None:
        """What waits under a name."""
        entry = self._entries.get(task)
        return entry[2] if entry else None

    def drop(self, task: str) -> None:
        """Have a task wait no more, if it does."""
        entry = self._entries.pop(task, None)
        if entry is None:
            return
        found = entry[2]
        groups = self._groups[found.places]
        entries = groups[found.models].entries
        del entries[bisect_left(entries, entry[:2], key=lambda each: each[:2])]
        if not entries:
            del groups[found.models]
        if not groups:
            del self._groups[found.places]
            self._nest()
        self._count(found, -found.seconds)

    def groups(self, place: str) -> list[Group]:
        """Those that can run at a place."""
        return [group for places, groups in self._groups.items() if place in places for group in groups.values()]

    def only_on(self) -> Iterator[tuple[Places, float]]:
        """Each set of places that some task has, and seconds of all that can run nowhere else."""
        return ((places, sum([self._by_places[each] for each in inside])) for places, inside in self._inside.items())

    def seconds_with(self, models: Models) -> float:
        """Of all tasks that load the same."""
        return self._by_models[models]

    def overdue(self, place: str) -> Task | None:
        """The first task of those that have been passed over for too long and can run at a place."""
        while self._due and self._due[0][1] not in self._entries:
            self._due.popleft()
        for due, name in self._due:
            if due > self._taken:
                return None
            if name in self._entries and place in self._entries[name][2].places:
                return self._entries[name][2]
        return None

    def _count(self, task: Task, seconds: float) -> None:
        self._by_places[task.places] = self._by_places.get(task.places, 0.0) + seconds
        self._by_models[task.models] = self._by_models.get(task.models, 0.0) + seconds

    def _nest(self) -> None:
        sets = tuple(self._groups)
        self._inside = {places: tuple(other for other in sets if other <= places) for places in sets}
