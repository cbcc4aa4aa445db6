"""The contract's words for outcomes: statuses, throughput, equivalence and pitfall verdicts, kinds of case."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What a case asks; also its pytest marker and the first part of its id."""

    THROUGHPUT = "throughput"
    EQUIVALENCE = "equivalence"
    PITFALL = "pitfall"
    MEMORY = "memory"
    ATTRIBUTION = "attribution"


class Status(StrEnum):
    """How a case ended. Every planned case ends in exactly one."""

    PASS = "pass"  # noqa: S105 - a word of the contract, not a password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    ERROR = "error"
    UNSUPPORTED = "unsupported"
    NOT_APPLICABLE = "not_applicable"
    NOT_JUDGED = "not_judged"

    @property
    def outcome(self) -> str:
        """The pytest outcome it becomes: ``passed``, ``failed``, ``error`` or ``skipped``."""
        return _OUTCOMES.get(self, "skipped")


_OUTCOMES = {Status.PASS: "passed", Status.FAIL: "failed", Status.ERROR: "error"}


class Throughput(StrEnum):
    """The verdict on a contrast's speed."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"
    NOT_COMPARABLE = "not_comparable"


class Equivalence(StrEnum):
    """The verdict on a contrast's outputs, best first."""

    BITWISE = "bitwise"
    GREEDY = "greedy"
    NEAR_TIE = "near_tie"
    DISTRIBUTION = "distribution"
    LOSSY_DECLARED = "lossy_declared"
    DIFFERENT = "different"
    BROKEN = "broken"

    @property
    def speed_may_be_judged(self) -> bool:
        """Speed is not judged on wrong output."""
        return self not in (Equivalence.DIFFERENT, Equivalence.BROKEN)


class Pitfall(StrEnum):
    """Whether a documented trap shows on this build and node."""

    PRESENT = "present"
    GONE = "gone"
    NOT_APPLICABLE = "not_applicable"
    INCONCLUSIVE = "inconclusive"
