"""Which jobs a merge gate's minutes are spent on. Pure: what jobs take and find is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, slots=True)
class Offer:
    """A job that could be run.

    Attributes:
        job: Its id.
        node_class: Where it runs: each class has the whole budget, for they run side by side.
        rank: How far the findings of its cases can go; higher comes first.
        minutes: What it takes at most; ``None``: not known.
    """

    job: str
    node_class: str
    rank: int
    minutes: float | None


@dataclass(frozen=True, slots=True)
class Spent:
    """What the budget of one node class is spent on.

    Attributes:
        taken: Ids of the jobs that have room.
        limit: Minutes of each taken job of which nobody knows what it takes; ``None`` where there is no limit.
        minutes: What the taken jobs take together; ``None``: not known.
        left: Of the jobs without room, how many minutes there were for them.
    """

    taken: frozenset[str]
    limit: float | None
    minutes: float | None
    left: Mapping[str, float]


def spend(offers: Iterable[Offer], budget: float | None) -> dict[str, Spent]:
    """Spend a budget of minutes, by node class.

    What can go furthest comes first, and of what is alike the shortest, so that most is decided. Jobs of which nobody
    knows what they take share what is left for their rank: they are given a limit.

    Args:
        offers: The jobs.
        budget: Minutes for each node class; ``None``: no limit.
    """
    by_class: dict[str, list[Offer]] = {}
    for offer in offers:
        by_class.setdefault(offer.node_class, []).append(offer)
    return {name: _spend(sorted(each, key=_first), budget) for name, each in by_class.items()}


def _first(offer: Offer) -> tuple[int, float]:
    return (-offer.rank, offer.minutes if offer.minutes is not None else float("inf"))


def _spend(offers: Sequence[Offer], budget: float | None) -> Spent:
    told = [offer.minutes for offer in offers]
    if budget is None:
        known = [each for each in told if each is not None]
        total = sum(known) if len(known) == len(told) else None
        return Spent(frozenset(offer.job for offer in offers), None, total, {})
    room, limit = budget, None
    taken: set[str] = set()
    left: dict[str, float] = {}
    for _, alike in groupby(offers, key=lambda offer: offer.rank):
        unknown = []
        for offer in alike:
            if offer.minutes is None:
                unknown.append(offer.job)
            elif offer.minutes <= room:
                taken.add(offer.job)
                room -= offer.minutes
            else:
                left[offer.job] = room
        if unknown and room > 0 and limit is None:
            limit, room = room / len(unknown), 0.0
            taken.update(unknown)
        else:
            left.update(dict.fromkeys(unknown, room))
    return Spent(frozenset(taken), limit, budget - room, left)
