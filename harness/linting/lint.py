"""A command line judged: for the fork that it is of, or for both where nothing tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from harness.domain.build import Fork
from harness.linting.command_words import CommandWords
from harness.linting.effects import contradictions, ignored
from harness.linting.finding import Edit, Finding, edited
from harness.linting.option_table import removed_options
from harness.linting.parsed_line import ParsedLine, parse
from harness.linting.spelling import misspelt, said_twice
from harness.linting.traps import Surroundings, gone, traps

_ROUNDS = 3
"""What mending may bring up, e.g. the same option twice where two others stood, is mended too: so often at most."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found for one fork.

    Attributes:
        line: The command line as it reads it.
        findings: What is wrong with it.
        notes: What would be in other builds.
        replacement: The line with everything mended that is sure and can be; empty where nothing is, or where that
            would bring up a warning that the line did not have.
    """

    line: ParsedLine
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    replacement: str

    def line_without(self, finding: Finding) -> str:
        """The line with one finding mended; empty where no line is offered."""
        return _written(edited(self.line, finding.edits)) if finding.edits else ""


def forks_of(command: CommandWords, said: Fork | None = None) -> tuple[Fork, ...]:
    """The forks that a line can be of: what was said, or else those that know most of its options.

    Args:
        command: The words.
        said: The fork, where somebody said it.
    """
    if said is not None:
        return (said,)
    unknown = {fork: _strangers(parse(command, fork)) for fork in Fork}
    least = min(unknown.values())
    return tuple(fork for fork in Fork if unknown[fork] == least)


def _strangers(line: ParsedLine) -> int:
    """Words that a fork's program does not know, those apart that it once knew."""
    once = removed_options(line.fork, line.program)
    return sum(part.name not in once if part.option is None else bool(part.stray) for part in line.parts)


def lint(command: CommandWords, forks: Sequence[Fork], surroundings: Surroundings) -> tuple[Judged, ...]:
    """Judge a command line; nothing is run and no file is read.

    Args:
        command: The words.
        forks: Whose programs.
        surroundings: What is known of build and model.
    """
    return tuple(_judged(parse(command, fork), surroundings) for fork in forks)


def _judged(line: ParsedLine, surroundings: Surroundings) -> Judged:
    found = _found(line, surroundings)
    had = Counter(finding.id for finding in found)
    offered = tuple(
        replace(finding, edits=()) if _brings_more(_after(line, finding.edits), had, surroundings) else finding
        for finding in found
    )
    return Judged(line, offered, tuple(gone(line, surroundings)), _mended(line, offered, had, surroundings))


def _found(line: ParsedLine, surroundings: Surroundings) -> list[Finding]:
    spelling = [*misspelt(line, surroundings.number_for(line.fork)), *said_twice(line)]
    about = {finding.where for finding in spelling}
    rest = [*ignored(line), *contradictions(line), *traps(line, surroundings)]
    return [*spelling, *(finding for finding in rest if finding.where not in about or finding.pitfall)]


def _mended(line: ParsedLine, found: Iterable[Finding], had: Counter[str], surroundings: Surroundings) -> str:
    """The line with everything mended that is sure; empty where no such line is without new warnings."""
    for _ in range(_ROUNDS):
        edits = [edit for finding in found if not finding.unknown for edit in finding.edits]
        if not edits:
            return ""
        line = _after(line, edits)
        found = _found(line, surroundings)
        if not _new(found, had):
            return _written(line.command)
    return ""


def _after(line: ParsedLine, edits: Iterable[Edit]) -> ParsedLine:
    return parse(edited(line, edits), line.fork)


def _brings_more(line: ParsedLine, had: Counter[str], surroundings: Surroundings) -> bool:
    """Whether a mended line has warnings that the line itself did not have: then the mend is a trap."""
    return bool(_new(_found(line, surroundings), had))


def _new(found: Iterable[Finding], had: Counter[str]) -> Counter[str]:
    return Counter(finding.id for finding in found) - had


def _written(command: CommandWords) -> str:
    return command.line(command.arguments)
