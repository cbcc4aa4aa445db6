"""What two sets of answers say, before it becomes the verdict on a case."""

from __future__ import annotations

from dataclasses import dataclass

from harness.domain.words import Equivalence, Status


@dataclass(frozen=True, slots=True)
class OutputsVerdict:
    """What two sets of answers say.

    Attributes:
        status: Pass, fail, inconclusive; error where they cannot be compared.
        equivalence: The word; ``None`` where undecided or without a reference.
        why: The finding with its figures, tolerances and the worst place.
        detail: Figures and diverging texts, for a person to read.
        scope: What was compared, and what that does not show.
        slug: Of an error.
        advisory: Why a difference is advice; empty where it is a finding.
        inert: The factor should change numbers and changed none.
        repeated: False where fresh processes did not show it again.
    """

    status: Status
    equivalence: Equivalence | None
    why: str
    detail: str = ""
    scope: str = ""
    slug: str = ""
    advisory: str = ""
    inert: bool = False
    repeated: bool = True

    @property
    def wrong(self) -> bool:
        """Whether it is a finding against the candidate, advice included."""
        return self.equivalence in (Equivalence.DIFFERENT, Equivalence.BROKEN)

    @property
    def speed_may_be_judged(self) -> bool:
        """The speed of wrong output is not judged; that of advice is."""
        if self.status is Status.ERROR or not self.repeated:
            return False
        return not self.wrong or bool(self.advisory)
