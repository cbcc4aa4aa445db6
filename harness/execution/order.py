"""Which job goes to which free slot next: jobs of one model where it lies, longest first, scarce places for their own.

Nothing here knows executors or clocks: who drives it says what time it is, which places there are, and what ended. The
dispatcher does that, and a simulator drives the same code. It is asked again at each event, so that what really
happened counts, not what was thought.

A free slot takes, in this order:

1. what has been passed over for too long;
2. what would be the last to end if it began any later, of a model that is in use nowhere;
3. what only few slots can take, once these have little time to spare for anything else;
4. what needs no load, of that what the fewest slots can take; then the model that has too few slots for its share of
   the work; of each model the longest job.

Slots at which the model lies choose first. A slot stays free where a job would end later, with the load, than the
places would be through that use its model: nothing would be won but a load.

The last ones are shared out all at once instead, see `order_shares`; what has been passed over for too long still is
first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from harness.execution.at_hand import ModelsAtHand
from harness.execution.order_choice import Choice, There
from harness.execution.order_places import Place, Run, Site
from harness.execution.order_shares import Shares
from harness.execution.order_tasks import Places, Task, Waiting

_LEARN_FROM = 3
"""Ends from which on what was thought is corrected by what was so."""

_LAST = 96
_LAST_PAIRS = 1000
"""So many waiting tasks, or pairs of them for each place, are shared out all at once; it takes time by their pairs."""
_AGAIN_S = 10.0
"""When they are shared out again although nothing happened: a run takes longer than was thought."""
_ANEW = 0.8
"""Share of the waiting tasks that is left when they are dealt anew, whatever was shared out before."""


class Order:
    """Decides, task by task. Equal calls give equal answers."""

    def __init__(self) -> None:
        self._sites: dict[str, Site] = {}
        self._waiting = Waiting()
        self._runs: dict[str, Run] = {}
        self._ends = 0
        self._thought_s = self._took_s = 0.0
        self._there: dict[Places, There] = {}
        self._shares: Shares | None = None
        self._shared_at: dict[str, str] = {}
        self._shared_when = 0.0
        self._dealt = math.inf

    def __len__(self) -> int:
        """Tasks that wait."""
        return len(self._waiting)

    def set_places(self, places: Iterable[Place]) -> None:
        """Say which places there are. What was placed where one is gone is so until its end is told."""
        sites = {}
        for place in places:
            site = self._sites.get(place.id) or Site(place, ModelsAtHand(place.cache_bytes, place.holds))
            site.place = place
            sites[place.id] = site
        self._sites = sites
        self._there = {}
        self._shares, self._dealt = None, math.inf

    def add(self, task: Task) -> None:
        """Have a task wait for a slot, in place of what waits under its name. An equal one keeps its turn."""
        if self._waiting.get(task.id) != task:
            self._waiting.drop(task.id)
            self._waiting.add(task)
            self._shares = None

    def drop(self, task: str) -> None:
        """Have a task wait no more, if it does."""
        self._waiting.drop(task)
        self._shares = None

    def next(self, now: float) -> tuple[str, str] | None:
        """Place one task; to be asked until it places none.

        Args:
            now: Seconds, monotonic.

        Returns:
            Task and place, whose slot is taken from now on; ``None``: nothing is to be begun before something happens.
        """
        free = [site for site in self._sites.values() if site.is_free]
        if not free or not self._waiting:
            return None
        if len(self._sites) == 1:
            found = self._as_they_came(free[0])
        elif len(self._waiting) <= min(_LAST, math.sqrt(_LAST_PAIRS * len(self._sites))):
            found = self._overdue(free) or self._shared_out(now).next(free)
        else:
            found = Choice(self._sites, self._waiting, now, self._pace, self._there).among(free)
        if found is None:
            return None
        site, task = found
        self._waiting.take(task)
        self._begin(task, site, now)
        if self._shares is not None:
            self._shares.take(task)
        return task.id, site.place.id

    def moved(self, task: str, place: str, now: float) -> None:
        """Say where a task began in truth. One that was placed by somebody else is nothing to the order."""
        run = self._runs.get(task)
        if run is not None and run.place != place and place in self._sites:
            self._leave(run)
            if run.load_s and run.place in self._sites:
                self._sites[run.place].at_hand.forget(run.task.models)
            self._begin(run.task, self._sites[place], now)
            self._shares = None

    def ended(self, task: str, now: float, *, whole: bool = True) -> None:
        """Say that a task ended. One that was placed by somebody else is nothing to the order.

        Args:
            task: The task.
            now: Seconds, monotonic.
            whole: It did all that it was to do: how long that took tells of others.
        """
        run = self._runs.pop(task, None)
        if run is None:
            return
        self._leave(run)
        self._shares = None
        took = now - run.began - run.load_s
        if whole and took > 0:
            self._ends += 1
            self._thought_s += run.task.seconds
            self._took_s += took

    @property
    def _pace(self) -> float:
        """What a second that was thought really takes."""
        return self._took_s / self._thought_s if self._ends >= _LEARN_FROM and self._thought_s else 1.0

    def _overdue(self, free: Sequence[Site]) -> tuple[Site, Task] | None:
        found = ((site, self._waiting.overdue(site.place.id)) for site in free)
        return next(((site, task) for site, task in found if task is not None), None)

    def _shared_out(self, now: float) -> Shares:
        """The waiting tasks as they are shared out now."""
        if self._shares is None or now >= self._shared_when + _AGAIN_S:
            anew = len(self._waiting) <= _ANEW * self._dealt
            if anew:
                self._dealt = len(self._waiting)
            sites = list(self._sites.values())
            self._shares = Shares(sites, self._waiting, now, self._pace, self._shared_at, anew=anew)
            self._shared_at, self._shared_when = self._shares.at(), now
        return self._shares

    def _as_they_came(self, site: Site) -> tuple[Site, Task] | None:
        """At a place alone no order is quicker, but for loads; what people gave is the one that they know."""
        first = None
        for task in self._waiting:
            if site.place.id in task.places:
                if not site.load_s(task.models):
                    return site, task
                first = first or (site, task)
        return first

    def _begin(self, task: Task, site: Site, now: float) -> None:
        run = Run(task, site.place.id, now, site.load_s(task.models))
        self._runs[task.id] = site.runs[task.id] = run
        site.at_hand.use(task.models)

    def _leave(self, run: Run) -> None:
        if run.place in self._sites:
            self._sites[run.place].runs.pop(run.task.id, None)
