"""Failures: what went wrong in an engine or under it, whom it blames, and whether it may be tried again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FailureKind(StrEnum):
    """The kinds of failure; ``Failure.blames_candidate`` says whom each blames."""

    OUT_OF_MEMORY = "out_of_memory"
    CRASH = "crash"
    REFUSED = "refused"
    IMPLAUSIBLE = "implausible"
    TIMEOUT = "timeout"
    UNPARSABLE = "unparsable"
    ECHO_MISMATCH = "echo_mismatch"
    NODE_LOST = "node_lost"
    INPUT_MISSING = "input_missing"
    INTERRUPTED = "interrupted"
    HARNESS = "harness"
    INFRASTRUCTURE = "infrastructure"
    UNSUPPORTED = "unsupported"


_BLAMES_CANDIDATE = frozenset({FailureKind.OUT_OF_MEMORY, FailureKind.CRASH, FailureKind.IMPLAUSIBLE})
_RETRYABLE = frozenset({FailureKind.NODE_LOST, FailureKind.INFRASTRUCTURE})


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure.

    Attributes:
        kind: What happened.
        message: What happened, in words with the figures and the place.
        slug: Stable word, ``E-...``.
        detail: The end of what the engine wrote, for a person to read.
    """

    kind: FailureKind
    message: str
    slug: str
    detail: str = ""

    @property
    def blames_candidate(self) -> bool:
        """True: the case fails. False: the case errs, nothing is said about the candidate."""
        return self.kind in _BLAMES_CANDIDATE

    @property
    def may_be_retried(self) -> bool:
        """Only infrastructure is retried; a crash repeated is confirmation and another thing."""
        return self.kind in _RETRYABLE

    @property
    def stays_with_place(self) -> bool:
        """Whether it would only happen again where it happened: a full disk, a lock that nobody gives back."""
        return self.kind is FailureKind.INFRASTRUCTURE
