"""What is wrong with a command line, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from harness.domain.build import Fork
from harness.linting.command_words import CommandWords
from harness.linting.parsed_line import ParsedLine, Part
from harness.pitfalls.entry import Pitfall


class Sort(StrEnum):
    """What kind of thing it is."""

    UNKNOWN = "unknown"
    """The program has no such option, and ends."""
    SPELLING = "spelling"
    """It means something else to this program than it seems to."""
    IGNORED = "ignored"
    """It does nothing."""
    CONTRADICTION = "contradiction"
    TRAP = "trap"
    """A documented pitfall."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of the line.

    Attributes:
        part: Which option is replaced; ``None``: words are added at the end.
        words: What stands there then; empty: nothing.
    """

    part: Part | None
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One warning.

    Attributes:
        id: A rule's word, or a pitfall's id.
        sort: What kind of thing it is.
        fork: Whose program reads it so.
        where: The words it is about.
        why: What happens.
        applies: Builds and conditions that it is about.
        instead: What to use.
        edits: What to change in the line; empty where no line can be offered.
        unknown: What would decide whether it applies, and is not known.
        pitfall: The pitfall.
    """

    id: str
    sort: Sort
    fork: Fork
    where: str
    why: str
    applies: str
    instead: str
    edits: tuple[Edit, ...] = ()
    unknown: tuple[str, ...] = ()
    pitfall: Pitfall | None = None


def edited(line: ParsedLine, edits: Iterable[Edit]) -> CommandWords:
    """The command with edits made; the first edit of an option counts.

    Args:
        line: The command line.
        edits: The edits.
    """
    listed = list(edits)
    by_part: dict[int, Edit] = {}
    for edit in listed:
        if edit.part is not None:
            by_part.setdefault(id(edit.part), edit)
    words = [word for part in line.parts for word in _words(part, by_part)]
    words += [word for edit in _once(listed) for word in edit.words]
    return replace(line.command, arguments=tuple(words))


def _words(part: Part, edits: dict[int, Edit]) -> Sequence[str]:
    return edits[id(part)].words if id(part) in edits else part.words


def _once(edits: Iterable[Edit]) -> list[Edit]:
    """What is added, each option once."""
    added: dict[str, Edit] = {}
    for edit in edits:
        if edit.part is None and edit.words:
            added.setdefault(edit.words[0], edit)
    return list(added.values())
