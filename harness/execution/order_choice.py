"""One choice among waiting tasks and free slots, as things stand at one moment; the rules are told in `order`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from harness.execution.at_hand import Models
from harness.execution.order_places import Run, Site
from harness.execution.order_tasks import Group, Places, Task, Waiting

_URGENT = 0.9
"""Share of what is left of all work that a task must fill, with its load, to be begun before others. Only where its
model is in use nowhere: those that use it take the longest first anyway."""

_PRESSING = 0.75
"""Share of what is left of all work that places must have with what only they can take, to take nothing else. Before
that it would cost loads: what lies there is used first."""

_Loads: TypeAlias = dict[Models, float]

There: TypeAlias = tuple[tuple[str, ...], int]
"""Those of a set of places that are there, and how many slots they have."""


class Choice:
    """What is to be begun next, and where.

    Args:
        sites: All places.
        waiting: All tasks that wait.
        now: Seconds.
        pace: What a second that was thought really takes.
        there: What is there of sets of places, as found for earlier choices among the same ones.
    """

    def __init__(
        self, sites: Mapping[str, Site], waiting: Waiting, now: float, pace: float, there: dict[Places, There]
    ) -> None:
        self._waiting = waiting
        self._pace = pace
        self._free: list[str] = []
        self._left: dict[str, float] = {}
        self._using: dict[Models, list[Run]] = {}
        for name, site in sites.items():
            left_s = 0.0
            for run in site.runs.values():
                left_s += run.left_s(now, pace)
                self._using.setdefault(run.task.models, []).append(run)
            self._left[name] = left_s
        self._all = sum([site.place.slots for site in sites.values()])
        self._slots: dict[Places, int] = {}
        self._rest: dict[Places, float] = {}
        self._rest_of: dict[str, float] = {}
        self._groups_of: dict[str, tuple[list[Group], _Loads]] = {}
        self._users_of: dict[Group, Sequence[Run]] = {}
        for places, seconds in waiting.only_on():
            found = there.get(places)
            if found is None:  # in the order of sites: sums must be the same in each run
                names = tuple(name for name in sites if name in places)
                found = there[places] = names, sum([sites[name].place.slots for name in names])
            self._slots[places] = found[1]
            self._rest[places] = (pace * seconds + sum(map(self._left.__getitem__, found[0]))) / max(1, found[1])

    def among(self, free: Sequence[Site]) -> tuple[Site, Task] | None:
        """A task and a place with a slot; ``None``: nothing is to be begun now.

        Args:
            free: Places with a slot.
        """
        self._free = [site.place.id for site in free]
        for choose in (self._overdue, self._at_hand, self._worth_a_load):
            for site in free:
                task = choose(site)
                if task is not None:
                    return site, task
        return None

    def _overdue(self, site: Site) -> Task | None:
        return self._waiting.overdue(site.place.id)

    def _at_hand(self, site: Site) -> Task | None:
        """What ranks first there, if it needs no load; what is urgent and needs one, another free place can take."""
        groups, loads = self._groups(site)
        if not groups:
            return None
        urgent = self._urgent(site, groups, loads)
        if urgent and loads[urgent.models] and self._others(site, urgent):
            urgent = None
        own = [urgent] if urgent else self._own(site, groups)
        ready = [group for group in own if not loads[group.models]]
        return min(ready, key=self._rank(site, loads)).longest if ready else None

    def _worth_a_load(self, site: Site) -> Task | None:
        """What ranks first of that which ends no sooner elsewhere."""
        groups, loads = self._groups(site)
        if not groups:
            return None
        urgent = self._urgent(site, groups, loads)
        ranked = [*([urgent] if urgent else []), *sorted(groups, key=self._rank(site, loads))]
        found = (self._sooner_here(group, loads[group.models]) for group in ranked)
        return next((task for task in found if task is not None), None)

    def _groups(self, site: Site) -> tuple[list[Group], _Loads]:
        """What can run at a place, and the seconds that the models of each take there."""
        name = site.place.id
        if name not in self._groups_of:
            groups = self._waiting.groups(name)
            self._groups_of[name] = groups, _loads(site, groups)
        return self._groups_of[name]

    def _urgent(self, site: Site, groups: Sequence[Group], loads: _Loads) -> Group | None:
        """The group whose longest task would be the last of all to end if it waited; none whose model is in use."""
        pace, least_s = self._pace, _URGENT * self._rest_s(site)
        needs = [(pace * group.longest_s + loads[group.models], group) for group in groups]
        urgent = [found for found in needs if found[0] >= least_s and not self._users(found[1])]
        return max(urgent, key=lambda found: found[0])[1] if urgent else None

    def _others(self, site: Site, group: Group) -> bool:
        """Whether another free place can take a group."""
        return any(name in group.places for name in self._free if name != site.place.id)

    def _own(self, site: Site, groups: Sequence[Group]) -> Sequence[Group]:
        """Those that the fewest slots can take: no other ranks first."""
        levels = self._levels(site)
        fewest = min([levels[group.places] for group in groups])
        return [group for group in groups if levels[group.places] == fewest]

    def _levels(self, site: Site) -> Mapping[Places, int]:
        """How many slots can take what has some places; as if all could, while there is time for it."""
        press = _PRESSING * self._rest_s(site)
        return {places: slots if self._rest[places] >= press else self._all for places, slots in self._slots.items()}

    def _rest_s(self, site: Site) -> float:
        """Seconds until all is done, as far as a place can do something about it."""
        name = site.place.id
        if name not in self._rest_of:
            self._rest_of[name] = max([seconds for places, seconds in self._rest.items() if name in places])
        return self._rest_of[name]

    def _rank(self, site: Site, loads: _Loads) -> Callable[[Group], tuple[int, bool, int, float]]:
        """What comes first: few slots that can take it, no load, a model that has too few slots for its work."""
        slots_a_second = self._pace / max(self._rest_s(site), 1e-9)
        levels = self._levels(site)

        def rank(group: Group) -> tuple[int, bool, int, float]:
            share = slots_a_second * self._waiting.seconds_with(group.models)
            has = len(self._using.get(group.models, ()))
            return levels[group.places], loads[group.models] > 0, self._slots[group.places], has - share

        return rank

    def _users(self, group: Group) -> Sequence[Run]:
        """What runs with the same models, where its tasks can run too."""
        if group not in self._users_of:
            runs = self._using.get(group.models, ())
            self._users_of[group] = [run for run in runs if run.place in group.places]
        return self._users_of[group]

    def _sooner_here(self, group: Group, load_s: float) -> Task | None:
        """The longest task that ends here, with its load, before those places would be through that use its model."""
        users = self._users(group)
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
