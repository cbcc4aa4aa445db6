"""Places at which two arms part, as a person wants to see them: where, after which text, and what both thought."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Positions(StrEnum):
    """A kind of position; the value is its name in reasons."""

    PREFILL = "prompt"
    FORCED = "forced"
    GREEDY = "generated"


@dataclass(frozen=True, slots=True)
class Choice:
    """A token that one arm held most probable.

    Attributes:
        token: Its id.
        text: Its text; empty where the source does not tell.
        reference: Its probability in the reference, in words: ``91.2 %``, ``< 0.3 %`` where it was not kept.
        other: The same in the other arm.
    """

    token: int
    text: str
    reference: str
    other: str


@dataclass(frozen=True, slots=True)
class Place:
    """One position.

    Attributes:
        prompt: The prompt's name.
        kind: What kind of position.
        number: Token of that kind, from 1: the last one that the arms had seen; of generated ones the one chosen.
        total: How many tokens of that kind there are.
        kld: Divergence, nats.
        margin: By how much the reference's most probable token leads, nats; ``None``: not known.
        before: Text up to there; empty where the source does not tell.
        reference: What the reference held most probable.
        other: What the other arm did.
    """

    prompt: str
    kind: Positions
    number: int
    total: int
    kld: float
    margin: float | None
    before: str
    reference: Choice
    other: Choice

    @property
    def where(self) -> str:
        """E.g. ``prompt 'rag-2' at forced token 12 of 32``."""
        return f"prompt '{self.prompt}' at {self.kind} token {self.number} of {self.total}"

    @property
    def flipped(self) -> bool:
        """Whether the two arms hold another token most probable."""
        return self.reference.token != self.other.token


@dataclass(frozen=True, slots=True)
class PromptApart:
    """How far two arms are apart over one prompt.

    Attributes:
        prompt: Its name.
        positions: Positions compared.
        mean: Mean divergence, nats.
        hard_flips: Positions where another token won although the reference was sure.
        place: Where to look first.
    """

    prompt: str
    positions: int
    mean: float
    hard_flips: int
    place: Place
