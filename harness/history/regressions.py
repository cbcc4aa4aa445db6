"""Which cells are worse on a night than before, and since when that is known. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date

from harness.domain.words import Status, Throughput
from harness.history.series import (
    BuildRange,
    BuildRef,
    CellTrend,
    Change,
    ChangeKind,
    Evidence,
    NightVerdict,
    Regression,
    lower_is_better,
)

_DECIDED = frozenset({Throughput.IMPROVED, Throughput.EQUIVALENT})
_HALF = 0.5


def is_regressed(verdict: NightVerdict) -> bool:
    """Whether the night's own verdict says that the cell got slower, and that this is not as it should be."""
    return verdict.status is Status.FAIL and verdict.word == Throughput.REGRESSED


def open_changes(changes: Sequence[Change]) -> Iterator[Change]:
    """Changes for the worse of which at least half still holds.

    Args:
        changes: All changes of a series, in order of time.
    """
    if not changes:
        return
    now = changes[-1].after
    for change in changes:
        if change.worse and math.log(now / change.before) / math.log(change.ratio) >= _HALF:
            yield change


def regressions(
    night: date, trends: Iterable[CellTrend], verdicts: Mapping[str, Sequence[NightVerdict]]
) -> tuple[Regression, ...]:
    """The regressions of a night, new ones first, then the largest.

    Args:
        night: The night.
        trends: The cells of that night.
        verdicts: All verdicts of the cells that its own verdict calls regressed, up to that night, in order of time.
    """
    found: list[Regression] = []
    for trend in trends:
        if is_regressed(trend.last):
            found.append(_of_verdicts(night, trend.last, verdicts[trend.last.cell]))
        if trend.last.value is not None:
            found += (_of_change(night, trend.last, change) for change in open_changes(trend.changes))
    return tuple(sorted(found, key=lambda each: (not each.new, -abs(math.log(each.ratio)), each.cell)))


def _of_verdicts(night: date, last: NightVerdict, nights: Sequence[NightVerdict]) -> Regression:
    """A cell that is slower than the baseline beside it: since the first night of this row of such nights.

    Nights that decided nothing do not end the row: they say neither that it is there nor that it is gone.
    """
    good: NightVerdict | None = None
    row: list[NightVerdict] = []
    for each in nights:
        if is_regressed(each):
            row.append(each)
        elif each.status is Status.PASS and each.word in _DECIDED:
            good, row = each, []
    first = row[0]
    return Regression(
        cell=last.cell,
        evidence=Evidence.VERDICT,
        unit=last.unit,
        node=last.node,
        first_seen=first.night,
        since=first.night,
        new=first.night == night,
        ratio=last.value or 1.0,
        low=last.low or 1.0,
        high=last.high or 1.0,
        assumed=last.assumed,
        reason=last.reason,
        builds=_between(good.builds, first.builds) if good else (),
    )


def _between(good: Sequence[BuildRef], bad: Sequence[BuildRef]) -> tuple[BuildRange, ...]:
    roles = ("baseline", "candidate") if len(bad) == 2 else tuple(f"arm {at}" for at in range(1, len(bad) + 1))  # noqa: PLR2004
    return tuple(
        BuildRange(role, before, after, before, after)
        for role, before, after in zip(roles, good, bad, strict=False)
        if not before.is_same_source(after)
    )


def _of_change(night: date, last: NightVerdict, change: Change) -> Regression:
    return Regression(
        cell=last.cell,
        evidence=Evidence.CHANGE,
        unit=last.unit,
        node=last.node,
        first_seen=change.first_seen,
        since=change.first_after if change.kind is ChangeKind.STEP else change.last_before,
        new=change.first_seen == night,
        ratio=change.ratio,
        low=change.low,
        high=change.high,
        assumed=None,
        reason=change_words(change, last.unit),
        builds=change.builds,
    )


def change_words(change: Change, unit: str) -> str:
    """A change in one sentence: size with interval, when, between which builds, and how sure that is."""
    grown = lower_is_better(unit)
    low, high = sorted((_percent(change.low), _percent(change.high)), key=abs)
    size = f"{_percent(change.ratio):+.1f} % [{low:+.1f} %, {high:+.1f} %]{' of ' + unit if grown else ''}"
    sure = f"p {'<=' if change.p <= _LEAST_P else '='} {change.p:.3f}"
    if change.kind is ChangeKind.DRIFT:
        return f"drifted by {size} from {change.last_before} to {change.first_after} ({sure}): slowly, no single build"
    when = f"first night {change.first_after}"
    if (change.earliest, change.latest) != (change.first_after, change.first_after):
        when += f", surely from {change.earliest} to {change.latest}"
    return f"changed by {size}, {when}, {_cause(change)} ({sure})"


_LEAST_P = 0.001


def _percent(ratio: float) -> float:
    return 100 * (ratio - 1)


def _cause(change: Change) -> str:
    told = [f"{each.arm} {each.words}" for each in change.builds]
    if change.node_changed:
        told.append("on another machine or driver than before")
    return "; ".join(told) or "with the same builds before and after: look at the machine and the model"
