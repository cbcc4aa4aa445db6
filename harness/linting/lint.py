"""A command line judged: for the fork that it is of, or for both where nothing tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.domain.build import Fork
from harness.linting.command_words import CommandWords
from harness.linting.effects import contradictions, ignored
from harness.linting.finding import Finding, rewritten
from harness.linting.option_table import removed_options
from harness.linting.parsed_line import ParsedLine, parse
from harness.linting.spelling import misspelt, said_twice
from harness.linting.traps import Surroundings, gone, traps


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found for one fork.

    Attributes:
        line: The command line as it reads it.
        findings: What is wrong with it.
        notes: What would be in other builds.
    """

    line: ParsedLine
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def replacement(self) -> str:
        """The line with everything mended that is sure and can be; empty where nothing is to be mended."""
        return rewritten(
            self.line, [edit for finding in self.findings if not finding.unknown for edit in finding.edits]
        )

    def line_without(self, finding: Finding) -> str:
        """The line with one finding mended; empty where no line is offered."""
        return rewritten(self.line, finding.edits)


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
    spelling = [*misspelt(line, surroundings.number_for(line.fork)), *said_twice(line)]
    about = {finding.where for finding in spelling}
    rest = [*ignored(line), *contradictions(line), *traps(line, surroundings)]
    found = [*spelling, *(finding for finding in rest if finding.where not in about or finding.pitfall)]
    return Judged(line, tuple(found), tuple(gone(line, surroundings)))
