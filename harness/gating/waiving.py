"""Waivers: who answers for which findings until when; which are used, unused or over, and what they did not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from harness.gating.cells import Cell, named_by, naming_none
from harness.gating.policy import WaiverEntry
from harness.gating.words import Finding
from harness.planning.select import nearest


class State(StrEnum):
    """What became of a waiver."""

    APPLIED = "applied"
    UNUSED = "unused"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Missed:
    """A cell that a waiver names and could not be applied to, though nobody else answers for it.

    Attributes:
        case: The cell.
        why: What the waiver says that does not hold for it.
    """

    case: str
    why: str


@dataclass(frozen=True, slots=True)
class Waiver:
    """A waiver, after the cells were held against it.

    Attributes:
        entry: What the policy says.
        state: What became of it.
        cases: Cells that it was applied to; of an expired one, those that it would have been.
        missed: Cells that it names and was not applied to; of an expired one, none.
        unknown: Its patterns that name no cell of the journals, each with a hint.
    """

    entry: WaiverEntry
    state: State
    cases: tuple[str, ...]
    missed: tuple[Missed, ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _Held:
    entry: WaiverEntry
    named: Callable[[str, str], bool]
    cases: list[str] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)


class Waivers:
    """Holds cells against waivers.

    Args:
        entries: Of the policy.
        names: Ids and names of contrasts of all cells.
        today: A waiver holds on its last day.
    """

    def __init__(self, entries: Sequence[WaiverEntry], names: Sequence[tuple[str, str]], today: date) -> None:
        self._held = [_Held(entry, named_by(entry.cells)) for entry in entries]
        self._names = names
        self._today = today

    def waived_by(self, cell: Cell, finding: Finding) -> WaiverEntry | None:
        """The first waiver that holds for a finding; what the others lack for it is remembered, too."""
        holding: WaiverEntry | None = None
        missing: list[tuple[_Held, str]] = []
        for held in self._held:
            if not held.named(cell.id, cell.case.contrast):
                continue
            misfit = _misfit(held.entry, cell, finding)
            if held.entry.expires < self._today:
                held.cases.extend([] if misfit else [cell.id])
            elif misfit:
                missing.append((held, misfit))
            elif holding is None:
                held.cases.append(cell.id)
                holding = held.entry
        if holding is None:
            for held, why in missing:
                held.missed.append(Missed(cell.id, why))
        return holding

    def all(self) -> tuple[Waiver, ...]:
        """Every waiver, in the policy's order."""
        return tuple(
            Waiver(held.entry, self._state(held), tuple(held.cases), tuple(held.missed), self._unknown(held.entry))
            for held in self._held
        )

    def _state(self, held: _Held) -> State:
        if held.entry.expires < self._today:
            return State.EXPIRED
        return State.APPLIED if held.cases else State.UNUSED

    def _unknown(self, entry: WaiverEntry) -> tuple[tuple[str, str], ...]:
        return tuple((pattern, nearest(pattern, self._names)) for pattern in naming_none(entry.cells, self._names))


def waiver_text(entry: WaiverEntry) -> str:
    """A waiver in one line."""
    return f"{entry.owner}: {entry.reason} (until {entry.expires.isoformat()})"


def _misfit(entry: WaiverEntry, cell: Cell, finding: Finding) -> str:
    """What keeps a waiver from a finding of a cell that it names; empty: it holds."""
    if entry.findings is not None and finding not in entry.findings:
        return f"it is {finding}, findings are {', '.join(entry.findings)}"
    if entry.at_most is None:
        return ""
    ratio = cell.verdict.estimate
    if finding is not Finding.REGRESSED or ratio is None:
        return f"it is {finding}, at_most is for what regressed"
    if ratio.low >= 1 - entry.at_most:
        return ""
    return f"the loss may be {100 * (1 - ratio.low):.1f} %, more than at_most, which is {100 * entry.at_most:g} %"
