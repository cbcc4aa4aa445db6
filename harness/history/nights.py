"""Runs of a series to nights that are looked at for changes: one value for each build of each night."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from statistics import fmean

from harness.history.changes import Analysis, Found, analyse
from harness.history.series import BuildRange, BuildRef, Change, lower_is_better

_ROLES = {1: ("arm",), 2: ("baseline", "candidate"), 4: ("both old", "second new", "first new", "both new")}


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """One run's figure, with what is needed to say where a change came from.

    Attributes:
        night: The night.
        value: The figure, above 0.
        node: Id of the machine's row.
        builds: The arms' builds; ``None`` where nothing told.
    """

    night: date
    value: float
    node: int | None
    builds: tuple[BuildRef | None, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """A series, looked at.

    Attributes:
        changes: What changed.
        outliers: For each point whether its night lies far off.
    """

    changes: tuple[Change, ...]
    outliers: tuple[bool, ...]


def look(points: Sequence[SeriesPoint], unit: str) -> Look:
    """Look for changes in a series.

    Runs of the same builds on one night are one value, the mean of their logarithms; other builds on that night are
    another one. Nights without a figure are not filled in.

    Args:
        points: All its figures in order of time.
        unit: Their unit.
    """
    groups = [tuple(group) for _, group in groupby(points, key=lambda each: (each.night, each.builds))]
    found = analyse([fmean(math.log(point.value) for point in group) for group in groups])
    changes = tuple(_change(each, groups, unit) for each in found.changes)
    return Look(changes, _of_points(found, groups))


def _of_points(found: Analysis, groups: Sequence[tuple[SeriesPoint, ...]]) -> tuple[bool, ...]:
    return tuple(far for far, group in zip(found.outliers, groups, strict=True) for _ in group)


def _change(found: Found, groups: Sequence[tuple[SeriesPoint, ...]], unit: str) -> Change:
    before, after = groups[found.before][-1], groups[found.after][0]
    low, high = found.size - found.error, found.size + found.error
    return Change(
        kind=found.kind,
        last_before=before.night,
        first_after=after.night,
        earliest=groups[found.earliest][0].night,
        latest=groups[found.latest][0].night,
        before=math.exp(found.level),
        after=math.exp(found.level + found.size),
        ratio=math.exp(found.size),
        low=math.exp(low),
        high=math.exp(high),
        p=found.p,
        first_seen=groups[-1][-1].night,
        builds=_ranges(found, groups),
        node_changed=before.node != after.node,
        worse=(found.size > 0) == lower_is_better(unit),
    )


def _ranges(found: Found, groups: Sequence[tuple[SeriesPoint, ...]]) -> tuple[BuildRange, ...]:
    """Of each arm whose build is not the same around the change: between which builds it came in."""
    places = (found.before, found.after, max(0, found.earliest - 1), found.latest)
    arms = list(zip(*(groups[place][-1].builds for place in places), strict=False))
    roles = _ROLES.get(len(arms), tuple(f"arm {number}" for number in range(1, len(arms) + 1)))
    return tuple(
        BuildRange(role, last_good, first_bad, surely_good, surely_bad)
        for role, (last_good, first_bad, surely_good, surely_bad) in zip(roles, arms, strict=True)
        if last_good and first_bad and surely_good and surely_bad and not surely_good.is_same_source(surely_bad)
    )
