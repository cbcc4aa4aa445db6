"""A command line as the words that a program would get. Split as a POSIX shell splits; nothing is run or expanded."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath

from harness.domain.errors import BadInput
from harness.domain.suggest import did_you_mean

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_CONTINUED = re.compile(r"\\\r?\n")
_OPERATORS = frozenset("();<>|&")
_DESCRIPTOR = re.compile(r"(?<=\s)\d$")
_COMMAND = re.compile(r"[A-Za-z_./][A-Za-z_./-]*\d?")
"""What can be meant as a program after a pipe: half a pattern has dots, digits and equal signs."""
_RUNNERS = ("env", "nice", "nohup", "taskset", "numactl", "time", "sudo")


class Program(StrEnum):
    """The programs whose options are known."""

    BENCH = "llama-bench"
    SERVER = "llama-server"
    CLI = "llama-cli"
    PERPLEXITY = "llama-perplexity"
    SWEEP = "llama-sweep-bench"
    BATCHED = "llama-batched-bench"


@dataclass(frozen=True, slots=True)
class CommandWords:
    """The parts of a command.

    Attributes:
        before: Assignments of variables, and programs that start others, as they stood.
        program: As it stood, with its path.
        kind: Which program it is.
        arguments: Its arguments.
        after: What the shell takes: redirections, pipes, the next command; as it stood.
    """

    before: tuple[str, ...]
    program: str
    kind: Program
    arguments: tuple[str, ...]
    after: str = ""

    def line(self, arguments: Sequence[str]) -> str:
        """The whole command with other arguments, quoted for a shell."""
        before = " ".join(_assignment(word) for word in self.before)
        return " ".join(filter(None, (before, shlex.join([self.program, *arguments]), self.after)))


def split_command(line: str) -> CommandWords:
    """Split a line as a shell would.

    Raises:
        BadInput: ``E-shell-quoting``: an open quote, or a character that the shell takes for itself; ``E-no-command``,
            ``E-unknown-program``.
    """
    whole = _CONTINUED.sub(" ", line)
    end = _end_of_command(whole)
    try:
        words = shlex.split(whole[:end])
    except ValueError as wrong:
        message = f"the quotes do not match: {wrong}"
        raise BadInput("E-shell-quoting", message, hint="quote the whole command once more, or use '--'") from wrong
    return read_words(words, whole[end:].strip())


def _end_of_command(line: str) -> int:
    """Where the shell takes over: at a redirection, a pipe, the next command.

    Raises:
        BadInput: ``E-shell-quoting`` where that can't be meant.
    """
    quote, skipped = "", False
    for index, character in enumerate(line):
        if skipped:
            skipped = False
        elif character == "\\" and quote != "'":
            skipped = True
        elif quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in _OPERATORS:
            _refuse_unquoted(line, index)
            number = _DESCRIPTOR.search(line[:index])
            return number.start() if number and character in "<>" else index
    return len(line)


def _refuse_unquoted(line: str, index: int) -> None:
    """A parenthesis, or half a pattern after a pipe, is something that nobody quoted."""
    follows = line[index + 1 :].lstrip("&|; ").split(" ", maxsplit=1)[0]
    if line[index] in "()" or (line[index] in "|;&" and follows and not _COMMAND.fullmatch(follows)):
        message = f"the shell takes '{line[index]}' in '{_around(line, index)}' for its own"
        raise BadInput("E-shell-quoting", message, hint="put the pattern into single quotes: -ot 'blk.(1|2).*=CPU'")


def _around(line: str, index: int) -> str:
    """The word that a place is in."""
    return line[: index + 1].rsplit(" ", maxsplit=1)[-1] + line[index + 1 :].split(" ", maxsplit=1)[0]


def read_words(words: Sequence[str], after: str = "") -> CommandWords:
    """Tell variables, program and arguments apart.

    Raises:
        BadInput: ``E-no-command``, ``E-unknown-program``.
    """
    at = next((index for index, word in enumerate(words) if _kind(word)), None)
    if at is None:
        first = next((word for word in words if not _VARIABLE.fullmatch(word)), "")
        if not first or first.startswith("-"):
            raise BadInput("E-no-command", "there is no command", hint='e.g. moe-harness lint "llama-server -m ..."')
        hint = did_you_mean(PurePath(first).name, list(Program))
        raise BadInput("E-unknown-program", f"'{first}' is none of the programs that are known", hint=hint)
    kind = _kind(words[at])
    assert kind is not None  # noqa: S101 - it was found by it
    strangers = [word for word in words[:at] if not _VARIABLE.fullmatch(word)]
    if strangers and PurePath(strangers[0]).name not in _RUNNERS:
        hint = "begin with the program, or with variables"
        raise BadInput("E-unknown-program", f"'{strangers[0]}' is none of the programs that are known", hint=hint)
    return CommandWords(tuple(words[:at]), words[at], kind, tuple(words[at + 1 :]), after)


def _kind(word: str) -> Program | None:
    name = PurePath(word).name.removesuffix(".exe")
    return Program(name) if name in list(Program) else None


def _assignment(word: str) -> str:
    name, equals, value = word.partition("=")
    return f"{name}={shlex.quote(value)}" if equals and _VARIABLE.fullmatch(word) else shlex.quote(word)
