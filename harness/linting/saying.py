"""How a program says a flag: for what should be written instead."""

from __future__ import annotations

from harness.domain.build import Fork, Tool
from harness.domain.flags import FlagValue
from harness.engines.flags import specs
from harness.engines.server_flags import server_flags
from harness.linting.command_words import Program
from harness.linting.finding import Edit
from harness.linting.parsed_line import ParsedLine


def said_by(fork: Fork, program: Program, flag: str, value: FlagValue) -> tuple[str, ...] | None:
    """The arguments that say a flag; empty: by leaving it out; ``None``: the program can't say it."""
    if program is Program.BENCH:
        spec = specs(fork, Tool.LLAMA_BENCH).get(flag)
        return spec.spellings[0].argv(spec.normalised(value)) if spec else None
    ways = server_flags(fork).get(flag)
    return ways[0].argv(value) if ways else None


def edits_saying(line: ParsedLine, flag: str, value: FlagValue) -> tuple[Edit, ...]:
    """What to change in a line so that it says a flag; nothing where its program can't."""
    words = said_by(line.fork, line.program, flag, value)
    if words is None:
        return ()
    found = [part for part in line.parts if part.option is not None and part.option.flag == flag]
    if not found:
        return (Edit(None, words),) if words else ()
    first, *others = found
    return (Edit(first, words), *(Edit(part, ()) for part in others))


def edits_without(line: ParsedLine, name: str) -> tuple[Edit, ...]:
    """What to change so that a line does without a flag, or an option of some spelling."""
    found = [part for part in line.parts if part.option and name in (part.option.flag, *part.option.names)]
    return tuple(Edit(part, ()) for part in found)
