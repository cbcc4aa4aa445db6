"""Who does what of the last jobs of a night: all of them shared out at once, and shared out anew as things happen.

Near the end what a job costs is whom it keeps from ending. So the waiting tasks are dealt to the places as they stand,
each to where it ends soonest with the load of its model: first those whose model lies somewhere, so that its place is
not given to others, and the longest. Then a local search takes from the places that are to end last, and gives a task
elsewhere, or all that they have of a model, as long as that lowers the sum of a high power of the places' ends: near
enough their maximum, but a load that only just pays is none. What was shared out before is where it begins the next
time; now and then it also begins from other deals, model by model with places filled up to some end, and the best of
all counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.execution.at_hand import Models
from harness.execution.order_places import Site
from harness.execution.order_tasks import Places, Task

_MOST_STEPS = 60
_LAST = 3
"""How many of the places that end last are tried before it is left at that."""
_FILLED = (0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
"""Up to which shares of the end so far places are filled, in other deals."""
_SEVERAL = 2


@dataclass(slots=True)
class _Own:
    """A task on its way to a place.

    Attributes:
        task: The task.
        seconds: What it is thought to take.
        model: Number of what it loads.
        sites: Numbers of those that can take it.
    """

    task: Task
    seconds: float
    model: int
    sites: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Change:
    """What a place that ends late gives away.

    Attributes:
        gain: What it lowers the sum by, as a share of what the place adds to it.
        given: The tasks.
        to: Number of the place that gets them.
    """

    gain: float
    given: Sequence[_Own] = ()
    to: int = 0


NO_CHANGE = _Change(1e-6)
"""What a change has to be better than."""


class Shares:
    """The waiting tasks, each at a place.

    Args:
        sites: All places.
        tasks: All that wait.
        now: Seconds.
        pace: What a second that was thought really takes.
        before: Places by task, as they were shared out before.
        anew: Begin from other deals, too.
    """

    def __init__(
        self,
        sites: Sequence[Site],
        tasks: Iterable[Task],
        now: float,
        pace: float,
        before: Mapping[str, str],
        *,
        anew: bool,
    ) -> None:
        self._sites = sites
        self._numbers = {site.place.id: number for number, site in enumerate(sites)}
        self._parts = [1 / site.place.slots for site in sites]
        self._running = [
            sum([run.left_s(now, pace) for run in site.runs.values()]) * part
            for site, part in zip(sites, self._parts, strict=True)
        ]
        self._models: dict[Models, int] = {}
        self._sites_of: dict[Places, tuple[int, ...]] = {}
        self._loads: list[list[float]] = [[] for _ in sites]
        self._lies: list[bool] = []
        owns = [own for own in (self._own(task, pace) for task in tasks) if own.sites]
        self._collect()
        self._deal(owns, before)
        self._improve()
        if anew:
            self._try_others(owns)

    def at(self) -> dict[str, str]:
        """Places by task."""
        return {own.task.id: site.place.id for site, owns in zip(self._sites, self._lists, strict=True) for own in owns}

    def next(self, free: Iterable[Site]) -> tuple[Site, Task] | None:
        """What a free place begins: what needs no load, else of the model with most work there; of it the longest.

        Args:
            free: Places with a slot; those that need no load choose first.
        """
        best: tuple[bool, Site, Task] | None = None
        for site in free:
            number = self._numbers[site.place.id]
            owns = self._lists[number]
            if not owns:
                continue
            work: dict[int, float] = {}
            for own in owns:
                work[own.model] = work.get(own.model, 0.0) + own.seconds
            loads = {own.model: site.load_s(own.task.models) > 0 for own in owns}
            first = min(owns, key=lambda own: (loads[own.model], -work[own.model], own.model, -own.seconds))
            if best is None or loads[first.model] < best[0]:
                best = loads[first.model], site, first.task
        return None if best is None else best[1:]

    def take(self, task: Task) -> None:
        """Have a task that is begun be nobody's any more."""
        for owns in self._lists:
            owns[:] = [own for own in owns if own.task.id != task.id]

    # ---- dealing -----------------------------------------------------------------------------------------------------

    def _own(self, task: Task, pace: float) -> _Own:
        model = self._models.get(task.models)
        if model is None:
            model = self._models[task.models] = len(self._models)
            for number, site in enumerate(self._sites):
                self._loads[number].append(site.load_s(task.models) * self._parts[number])
            self._lies.append(any(not loads[model] for loads in self._loads))
        numbers = self._sites_of.get(task.places)
        if numbers is None:
            numbers = tuple(number for name, number in self._numbers.items() if name in task.places)
            self._sites_of[task.places] = numbers
        return _Own(task, pace * task.seconds, model, numbers)

    def _collect(self) -> None:
        """Have nobody have anything."""
        self._ends = list(self._running)
        self._having = [[0] * len(self._models) for _ in self._sites]
        self._lists: list[list[_Own]] = [[] for _ in self._sites]

    def _try_others(self, owns: Sequence[_Own]) -> None:
        """Begin from other deals; what is best stays."""
        latest = max(self._ends)
        best = self._cost, (self._ends, self._having, self._lists)
        for share in _FILLED:
            self._collect()
            self._deal_by_model(owns, share * latest)
            self._improve()
            if self._cost < best[0]:
                best = self._cost, (self._ends, self._having, self._lists)
        self._ends, self._having, self._lists = best[1]

    @property
    def _cost(self) -> float:
        return sum(map(_power, self._ends))

    def _deal_by_model(self, owns: Iterable[_Own], until: float) -> None:
        """Model by model, those that lie somewhere or have most work first: to who has it, unless he is full."""
        groups: dict[int, list[_Own]] = {}
        for own in owns:
            groups.setdefault(own.model, []).append(own)
        work = {model: sum([own.seconds for own in group]) for model, group in groups.items()}
        for model, group in sorted(groups.items(), key=lambda item: (not self._lies[item[0]], -work[item[0]])):
            for own in sorted(group, key=lambda own: (len(own.sites), -own.seconds)):
                ends = {number: self._with(number, own) for number in own.sites}
                having = [number for number in own.sites if self._having[number][model] and ends[number] <= until]
                if having:
                    self._put(own, max(having, key=self._ends.__getitem__))
                else:
                    self._put(own, min(ends, key=ends.__getitem__))

    def _deal(self, owns: Sequence[_Own], before: Mapping[str, str]) -> None:
        new = []
        for own in owns:
            number = self._numbers.get(before.get(own.task.id, ""))
            if number is not None and number in own.sites:
                self._put(own, number)
            else:
                new.append(own)
        for own in sorted(new, key=lambda own: (not self._lies[own.model], len(own.sites), -own.seconds)):
            self._put(own, min(own.sites, key=lambda number: self._with(number, own)))

    def _with(self, number: int, own: _Own) -> float:
        """When a place ends with a task more."""
        load_s = 0.0 if self._having[number][own.model] else self._loads[number][own.model]
        return self._ends[number] + own.seconds * self._parts[number] + load_s

    def _put(self, own: _Own, number: int) -> None:
        self._ends[number] = self._with(number, own)
        self._having[number][own.model] += 1
        self._lists[number].append(own)

    def _drop(self, own: _Own, number: int) -> None:
        self._lists[number].remove(own)
        self._having[number][own.model] -= 1
        self._ends[number] -= self._with(number, own) - self._ends[number]

    # ---- the local search --------------------------------------------------------------------------------------------

    def _improve(self) -> None:
        for _ in range(_MOST_STEPS):
            last = sorted(range(len(self._ends)), key=lambda number: -self._ends[number])[:_LAST]
            if not any(self._relieve(number) for number in last):
                return

    def _relieve(self, number: int) -> bool:
        """Make the best change that takes from a place; false: there is none."""
        if self._ends[number] <= 0:
            return False
        change = max(self._best_task(number), self._best_model(number), key=lambda found: found.gain)
        if not change.given:
            return False
        for own in change.given:
            self._drop(own, number)
            self._put(own, change.to)
        return True

    def _best_task(self, number: int) -> _Change:
        """One task given away."""
        best = NO_CHANGE
        end, part, loads, having = self._ends[number], self._parts[number], self._loads[number], self._having[number]
        for own in self._lists[number]:
            model = own.model
            out = _power((end - own.seconds * part - (loads[model] if having[model] == 1 else 0.0)) / end)
            for other in own.sites:
                before = self._ends[other]
                if other != number and before < end:
                    gain = 1 + _power(before / end) - out - _power(self._with(other, own) / end)
                    if gain > best.gain:
                        best = _Change(gain, (own,), other)
        return best

    def _best_model(self, number: int) -> _Change:
        """All that a place has of a model given away: a single one of several takes no load with it."""
        best = NO_CHANGE
        end, part = self._ends[number], self._parts[number]
        for model, count in enumerate(self._having[number]):
            if count < _SEVERAL:
                continue
            owns = [own for own in self._lists[number] if own.model == model]
            seconds = sum([own.seconds for own in owns])
            out = _power((end - seconds * part - self._loads[number][model]) / end)
            for other in owns[0].sites:
                before = self._ends[other]
                if other == number or before >= end or any(other not in own.sites for own in owns):
                    continue
                load_s = 0.0 if self._having[other][model] else self._loads[other][model]
                into = before + seconds * self._parts[other] + load_s
                gain = 1 + _power(before / end) - out - _power(into / end)
                if gain > best.gain:
                    best = _Change(gain, owns, other)
        return best


def _power(share: float) -> float:
    """The power of an end, as a share of the latest one."""
    square = share * share
    return square * square * square
