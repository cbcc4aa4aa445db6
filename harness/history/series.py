"""Nights of one cell as plain data: what a table, a plot, an export and a gate read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

from harness.domain.words import Status

_SHOWN = 12
_LOWER_IS_BETTER = frozenset({"ms", "MiB"})


def lower_is_better(unit: str) -> bool:
    """Whether a figure in this unit is a cost: a time or memory. Speeds and ratios of speeds are not."""
    return unit in _LOWER_IS_BETTER


@dataclass(frozen=True, slots=True)
class BuildRef:
    """Which build an arm ran; what is not known is empty.

    Attributes:
        name: The matrix's name for it.
        commit: Commit of its source, as the build told or the matrix says.
        number: Build number; 0 where unknown.
        content: Hash of what really ran: model bytes, executable, libraries, flags.
        version: Of a wheel: distribution and version.
    """

    name: str
    commit: str = ""
    number: int = 0
    content: str = ""
    version: str = ""

    @property
    def word(self) -> str:
        """The most telling of these in a few characters: commit, build number, version, content key."""
        if self.commit:
            return self.commit[:_SHOWN]
        if self.number:
            return f"b{self.number}"
        return self.version or self.content[:_SHOWN] or "unknown"

    def is_same_source(self, other: BuildRef) -> bool:
        """Whether both are of one source, as far as is known: by commit, number and version, else by content."""
        ours, theirs = (self.commit, self.number, self.version), (other.commit, other.number, other.version)
        if any(ours) or any(theirs):
            return ours == theirs
        return self.content == other.content


@dataclass(frozen=True, slots=True)
class NightPoint:
    """One run's figure.

    Attributes:
        night: The night that it belongs to.
        time: When the run began, UTC.
        value: Ratio, tokens per second, ms or MiB; above 0.
        low: Lower bound of its interval.
        high: Upper bound.
        assumed: How far quads are taken to scatter where nobody knows: the interval holds if they do. ``None``: that is
            measured, or the unit is no ratio.
        n: What it rests on: quads of a contrast, process starts of a single arm.
        status: The verdict's status.
        word: Its finer word (``regressed``, ``equivalent``, ``present``, ...); empty where it has none.
        node: The machine in words.
        builds: The arms' builds: the baseline's first.
        outlier: It lies far from the nights around it, alone or with one neighbour: no change is made of it.
    """

    night: date
    time: datetime
    value: float
    low: float
    high: float
    assumed: float | None
    n: int
    status: Status
    word: str
    node: str
    builds: tuple[BuildRef, ...]
    outlier: bool


@dataclass(frozen=True, slots=True)
class MissingNight:
    """A night of the same matrix on which a cell has no figure. Nothing is put in its place.

    Attributes:
        night: The night.
        why: ``lost`` (no shard left a word about it), ``error`` or another status, ``measured elsewhere`` (another
            machine or setup), or ``not run``.
    """

    night: date
    why: str


class ChangeKind(StrEnum):
    """How a figure changed."""

    STEP = "step"
    """From one night to the next."""
    DRIFT = "drift"
    """Slowly, over many nights: no build is to blame alone."""


@dataclass(frozen=True, slots=True)
class BuildRange:
    """Between which builds of one arm a change came in.

    Attributes:
        arm: ``baseline``, ``candidate``, or ``arm`` where there is one.
        last_good: The build of the last night before the change.
        first_bad: The build of the first night after it.
        surely_good: The build before the earliest night at which it may have come in.
        surely_bad: The build of the latest such night.
    """

    arm: str
    last_good: BuildRef
    first_bad: BuildRef
    surely_good: BuildRef
    surely_bad: BuildRef

    @property
    def words(self) -> str:
        """``6bd1f2a..91c07de``, with the wider range where that is another one."""
        told = f"{self.last_good.word}..{self.first_bad.word}"
        if (self.surely_good, self.surely_bad) == (self.last_good, self.first_bad):
            return told
        return f"{told} (surely within {self.surely_good.word}..{self.surely_bad.word})"


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a series that is not noise.

    Attributes:
        kind: Step or drift.
        last_before: The last night before it; of a drift the night at which it begins.
        first_after: The first night after it; of a drift the night at which it ends.
        earliest: The earliest night that may be the first after it (95 %).
        latest: The latest such night (95 %).
        before: Level before, in the series' unit.
        after: Level after.
        ratio: After over before.
        low: Lower bound of the 95 % interval of the ratio.
        high: Upper bound.
        p: Probability of a change at least as clear anywhere in nights that scatter alike and do not change.
        first_seen: The night on which it was first told.
        builds: The arms whose build is not the same before and after; empty where none changed, and of a drift.
        node_changed: The machines before and after are not the same: the change may be theirs.
        worse: Whether it is for the worse.
    """

    kind: ChangeKind
    last_before: date
    first_after: date
    earliest: date
    latest: date
    before: float
    after: float
    ratio: float
    low: float
    high: float
    p: float
    first_seen: date
    builds: tuple[BuildRange, ...]
    node_changed: bool
    worse: bool


@dataclass(frozen=True, slots=True)
class Series:
    """The nights of one cell that may be compared: one setup, and for a single arm one machine.

    Attributes:
        cell: The case's id.
        unit: ``ratio``, ``t/s``, ``ms`` or ``MiB``.
        node: The machine in words.
        began: Why it does not go on an earlier series of the cell: another machine, driver, flags, model; empty for
            the first.
        points: Its figures in order of time; several a night where there were several runs.
        missing: Nights without a figure between its first and its last.
        changes: What changed, in order of time.
    """

    cell: str
    unit: str
    node: str
    began: str
    points: tuple[NightPoint, ...]
    missing: tuple[MissingNight, ...]
    changes: tuple[Change, ...]

    @property
    def lower_is_better(self) -> bool:
        """Whether a smaller figure is the better one."""
        return lower_is_better(self.unit)


class Evidence(StrEnum):
    """What says that a cell got worse."""

    VERDICT = "verdict"
    """The night's own verdict: slower than the baseline that was measured beside it."""
    CHANGE = "change"
    """The nights before: the level changed for the worse and has not come back."""


@dataclass(frozen=True, slots=True)
class Regression:
    """A cell that is worse on a night than it was before.

    Attributes:
        cell: The case's id.
        evidence: What says so.
        unit: Of the figures.
        node: The machine in words.
        first_seen: The night on which it was first told.
        since: The first bad night.
        new: Whether the asked night is the first that tells it.
        ratio: How much is left: candidate over baseline, or the level after over the level before. Of ``ms`` and
            ``MiB`` above 1.
        low: Lower bound of its interval.
        high: Upper bound.
        assumed: As of `NightPoint`; ``None`` of a change.
        reason: One sentence.
        builds: Between which builds it came in; empty where that is not known.
    """

    cell: str
    evidence: Evidence
    unit: str
    node: str
    first_seen: date
    since: date
    new: bool
    ratio: float
    low: float
    high: float
    assumed: float | None
    reason: str
    builds: tuple[BuildRange, ...]


@dataclass(frozen=True, slots=True)
class NightVerdict:
    """What one run found of one cell, whether there is a figure or not.

    Attributes:
        cell: The case's id.
        night: The night.
        time: When the run began, UTC.
        matrix: The matrix's name.
        status: The verdict's status.
        word: Its finer word; empty where it has none.
        unit: Of the figure; empty where there is none.
        value: The figure; ``None`` where there is none.
        low: Lower bound of its interval.
        high: Upper bound.
        assumed: As of `NightPoint`.
        n: What it rests on.
        speeds: The arms' tokens per second, the baseline's first; ``None`` where one has none.
        builds: The arms' builds.
        node: The machine in words.
        slug: Of an error or refusal.
        reason: The verdict's sentence. From engines: clean it where it is shown.
    """

    cell: str
    night: date
    time: datetime
    matrix: str
    status: Status
    word: str
    unit: str
    value: float | None
    low: float | None
    high: float | None
    assumed: float | None
    n: int
    speeds: tuple[float | None, ...]
    builds: tuple[BuildRef, ...]
    node: str
    slug: str
    reason: str


@dataclass(frozen=True, slots=True)
class CellTrend:
    """A cell as it stands: its last verdict, its last nights, and the changes that still hold.

    Attributes:
        last: Its last verdict.
        trend: Its last figures in order of time, of the series that it is in now.
        changes: Changes of that series.
    """

    last: NightVerdict
    trend: tuple[float, ...]
    changes: tuple[Change, ...]
