"""The gate's words."""

from __future__ import annotations

from enum import StrEnum


class Stage(StrEnum):
    """How far a cell's findings go, in this order."""

    SHADOW = "shadow"
    """They are told of."""
    WARN = "warn"
    """They are told of first; the exit code is 0."""
    BLOCK = "block"
    """They block."""

    @property
    def rank(self) -> int:
        """Higher goes further."""
        return list(Stage).index(self)


class Finding(StrEnum):
    """What is to be said of a cell, worst first."""

    BROKEN = "broken"
    DIFFERENT = "different"
    CRASH = "crash"
    REGRESSED = "regressed"
    MEMORY = "memory"
    OUTPUTS = "outputs"
    """They pass their check, and are further apart than the policy wants."""
    FLOOR = "floor"
    UNMET = "unmet"
    """What the check wanted was not seen, e.g. an improvement."""
    ABSENT = "absent"
    ERROR = "error"
    INCONCLUSIVE = "inconclusive"
    NOT_JUDGED = "not_judged"
    UNSUPPORTED = "unsupported"
    NOT_APPLICABLE = "not_applicable"

    @property
    def is_missing(self) -> bool:
        """Whether there is no verdict, rather than a bad one."""
        return self in MISSING


MISSING = (
    Finding.ABSENT,
    Finding.ERROR,
    Finding.INCONCLUSIVE,
    Finding.NOT_JUDGED,
    Finding.UNSUPPORTED,
    Finding.NOT_APPLICABLE,
)


class Effect(StrEnum):
    """What a cell does to the decision, worst first."""

    BLOCK = "block"
    UNDECIDED = "undecided"
    WARN = "warn"
    SHADOW = "shadow"
    WAIVED = "waived"
    NONE = "none"


class Outcome(StrEnum):
    """What the gate says."""

    GO = "go"
    BLOCKED = "blocked"
    UNDECIDED = "undecided"
    NOT_NEEDED = "not_needed"


class Weight(StrEnum):
    """What a problem does to the decision."""

    BLOCK = "block"
    UNDECIDED = "undecided"
    BAD_INPUT = "bad_input"
    TOLD = "told"
