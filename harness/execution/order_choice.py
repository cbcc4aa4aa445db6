"""One choice among waiting tasks and free slots, as things stand at one moment; the rules are told in `order`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from harness.execution.at_hand import Models
from harness.execution.order_places import Run, Site
from harness.execution.order_tasks import Group, Places, Task, Waiting

_URGENT = 0.9
"""Share of what is left of all work that a task must fill, with its load, to be begun before others."""

_Loads: TypeAlias = dict[Models, float]


class Choice:
    """What is to be begun next, and where.

    Args:
        sites: All places.
        waiting: All tasks that wait.
        now: Seconds.
        pace: What a second that was thought really takes.
    """

    def __init__(self, sites: Mapping[str, Site], waiting: Waiting, now: float, pace: float) -> None:
        self._waiting = waiting
        self._pace = pace
        self._left: dict[str, float] = {}
        self._using: dict[Models, list[Run]] = {}
        for name, site in sites.items():
            left_s = 0.0
            for run in site.runs.values():
                left_s += run.left_s(now, pace)
                self._using.setdefault(run.task.models, []).append(run)
            self._left[name] = left_s
        self._slots: dict[Places, int] = {}
        self._rest: dict[Places, float] = {}
        for places, seconds in waiting.only_on():
            there = [name for name in places if name in sites]
            self._slots[places] = sum([sites[name].place.slots for name in there])
            taken = sum([self._left[name] for name in there])
            self._rest[places] = (pace * seconds + taken) / max(1, self._slots[places])

    def among(self, free: Sequence[Site]) -> tuple[Site, Task] | None:
        """A task and a place with a slot; ``None``: nothing is to be begun now.

        Args:
            free: Places with a slot.
        """
        for choose in (self._overdue, self._at_hand, self._worth_a_load):
            for site in free:
                task = choose(site)
                if task is not None:
                    return site, task
        return None

    def _overdue(self, site: Site) -> Task | None:
        return self._waiting.overdue(site.place.id)

    def _at_hand(self, site: Site) -> Task | None:
        """What ranks first there, if it needs no load."""
        groups = self._waiting.groups(site.place.id)
        if not groups:
            return None
        loads = _loads(site, groups)
        first = self._urgent(site, groups, loads) or min(self._own(groups), key=self._rank(site, loads))
        return None if loads[first.models] else first.longest

    def _worth_a_load(self, site: Site) -> Task | None:
        """What ranks first of that which ends no sooner elsewhere."""
        groups = self._waiting.groups(site.place.id)
        if not groups:
            return None
        loads = _loads(site, groups)
        urgent = self._urgent(site, groups, loads)
        ranked = [*([urgent] if urgent else []), *sorted(groups, key=self._rank(site, loads))]
        found = (self._sooner_here(group, loads[group.models]) for group in ranked)
        return next((task for task in found if task is not None), None)

    def _urgent(self, site: Site, groups: Sequence[Group], loads: _Loads) -> Group | None:
        """The group whose longest task would be the last of all to end if it had to wait."""
        needs = [self._pace * group.longest_s + loads[group.models] for group in groups]
        need_s = max(needs)
        group = groups[needs.index(need_s)]
        return group if need_s >= _URGENT * self._rest_s(site) else None

    def _own(self, groups: Sequence[Group]) -> Sequence[Group]:
        """Those that the fewest slots can take: no other ranks first."""
        fewest = min([self._slots[group.places] for group in groups])
        return [group for group in groups if self._slots[group.places] == fewest]

    def _rest_s(self, site: Site) -> float:
        """Seconds until all is done, as far as a place can do something about it."""
        return max(seconds for places, seconds in self._rest.items() if site.place.id in places)

    def _rank(self, site: Site, loads: _Loads) -> Callable[[Group], tuple[int, bool, float]]:
        """What comes first: few slots that can take it, no load, a model that has too few slots for its work."""
        rest_s = max(self._rest_s(site), 1e-9)

        def rank(group: Group) -> tuple[int, bool, float]:
            share = self._pace * self._waiting.seconds_with(group.models) / rest_s
            has = len(self._using.get(group.models, ()))
            return self._slots[group.places], loads[group.models] > 0, has - share

        return rank

    def _sooner_here(self, group: Group, load_s: float) -> Task | None:
        """The longest task that ends here, with its load, before those places would be through that use its model."""
        users = [run for run in self._using.get(group.models, ()) if run.place in group.places]
        if not users or not load_s:
            return group.longest
        waiting_s = self._pace * self._waiting.seconds_with(group.models)
        through_s = (waiting_s + sum([self._left[run.place] for run in users])) / len(users)
        return group.within((through_s - load_s) / self._pace)


def _loads(site: Site, groups: Sequence[Group]) -> _Loads:
    """Seconds that each group's models take there."""
    loads: _Loads = {}
    for group in groups:
        if group.models not in loads:
            loads[group.models] = site.load_s(group.models)
    return loads
