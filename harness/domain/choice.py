"""What a merge gate's run chose to measure, and what it left to the night."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class WhyLeft(StrEnum):
    """Why a case was left to the night."""

    PATHS = "paths"
    """No changed path asks for it."""
    TIME = "time"
    """The budget in minutes has no room for it."""
    UNDECIDABLE = "undecidable"
    """What its budget could find is not worth the time."""


@dataclass(frozen=True, slots=True)
class LeftToNight:
    """A case that a merge gate's run did not plan.

    Attributes:
        case: Its id.
        contrast: The name of its contrast; empty for output checks and single arms.
        why: In one word.
        reason: In one sentence.
    """

    case: str
    contrast: str
    why: WhyLeft
    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    """By what a run's cases were chosen.

    Attributes:
        policy: Name of the gate's policy.
        digest: Hash of what that policy says.
        needed: Whether any changed path asks for a case.
        changed: Number of changed paths; ``None``: they were not told, all cases were asked for.
        asking: Changed paths that ask for cases.
        unlisted: Changed paths that the policy has no row for.
        budget_minutes: For each node class; ``None``: no limit.
        planned_minutes: What the chosen jobs take at most, of the node class that takes longest; ``None``: not known.
    """

    policy: str
    digest: str
    needed: bool
    changed: int | None
    asking: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    budget_minutes: float | None = None
    planned_minutes: float | None = None
