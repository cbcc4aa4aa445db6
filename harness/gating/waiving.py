"""Waivers: who answers for which findings until when, and which of them are used, unused or over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from harness.gating.cells import Cell, named_by
from harness.gating.policy import WaiverEntry
from harness.gating.words import Finding


class State(StrEnum):
    """What became of a waiver."""

    APPLIED = "applied"
    UNUSED = "unused"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Waiver:
    """A waiver, after the cells were held against it.

    Attributes:
        entry: What the policy says.
        state: What became of it.
        cases: Cells that it was applied to; of an expired one, those that it would have been.
    """

    entry: WaiverEntry
    state: State
    cases: tuple[str, ...]


class Waivers:
    """Holds cells against waivers.

    Args:
        entries: Of the policy.
        today: A waiver holds on its last day.
    """

    def __init__(self, entries: Sequence[WaiverEntry], today: date) -> None:
        self._entries = [(entry, _covers(entry)) for entry in entries]
        self._today = today
        self._cases: list[list[str]] = [[] for _ in entries]

    def waived_by(self, cell: Cell, finding: Finding) -> WaiverEntry | None:
        """The first waiver that holds for a finding; the expired ones are remembered, too."""
        holding: WaiverEntry | None = None
        for (entry, covers), cases in zip(self._entries, self._cases, strict=True):
            if not covers(cell, finding):
                continue
            if entry.expires < self._today:
                cases.append(cell.id)
            elif holding is None:
                cases.append(cell.id)
                holding = entry
        return holding

    def all(self) -> tuple[Waiver, ...]:
        """Every waiver, in the policy's order."""
        return tuple(
            Waiver(entry, self._state(entry, cases), tuple(cases))
            for (entry, _), cases in zip(self._entries, self._cases, strict=True)
        )

    def _state(self, entry: WaiverEntry, cases: Sequence[str]) -> State:
        if entry.expires < self._today:
            return State.EXPIRED
        return State.APPLIED if cases else State.UNUSED


def waiver_text(entry: WaiverEntry) -> str:
    """A waiver in one line."""
    return f"{entry.owner}: {entry.reason} (until {entry.expires.isoformat()})"


def _covers(entry: WaiverEntry) -> Callable[[Cell, Finding], bool]:
    named = named_by(entry.cells)

    def covers(cell: Cell, finding: Finding) -> bool:
        if not named(cell.id, cell.case.contrast) or (entry.findings is not None and finding not in entry.findings):
            return False
        if entry.at_most is None:
            return True
        ratio = cell.verdict.estimate
        return finding is Finding.REGRESSED and ratio is not None and ratio.low >= 1 - entry.at_most

    return covers
