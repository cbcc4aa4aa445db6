"""A command line as the words that a program would get. Nothing is run or expanded.

Split as a POSIX shell splits. Only a line that is clearly of Windows keeps its backslashes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PureWindowsPath

from harness.domain.errors import BadInput
from harness.domain.suggest import did_you_mean

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_CONTINUED = re.compile(r"\\\r?\n")
_OPERATORS = frozenset("();<>|&")
_DESCRIPTOR = re.compile(r"(?<=\s)\d$")
_COMMAND = re.compile(r"[A-Za-z_./][A-Za-z_./-]*\d?")
"""What can be meant as a program after a pipe: half a pattern has dots, digits and equal signs."""
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\[^\w\s]""")
"""What keeps its backslashes, or has them for the shell: escaped letters are neither."""
_EATEN = re.compile(r"\S*\\\w\S*")
_DRIVE = re.compile(r"(?:^|[\s=])[A-Za-z]:\\\w")
_EXE = re.compile(r"\.exe(?:\s|$)")
_PLAIN = re.compile(r"[\w./:=,+@%-]+")
_CONTAINERS = ("docker", "podman", "nerdctl", "kubectl", "apptainer", "singularity")
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
        of_windows: Whether words are to be quoted so that shells of Windows read them too.
    """

    before: tuple[str, ...]
    program: str
    kind: Program
    arguments: tuple[str, ...]
    after: str = ""
    of_windows: bool = False

    def line(self, arguments: Sequence[str]) -> str:
        """The whole command with other arguments, quoted for a shell."""
        before = " ".join(_assignment(word) for word in self.before)
        quote = _quoted_for_windows if self.of_windows else shlex.quote
        program = self.program if self.of_windows and " " not in self.program else quote(self.program)
        return " ".join(filter(None, (before, program, *map(quote, arguments), self.after)))


def split_command(line: str) -> CommandWords:
    """Split a line as a shell would; backslashes stay where drives or programs of Windows stand in it.

    Raises:
        BadInput: ``E-shell-quoting``: an open quote, or a character that the shell takes for itself, a backslash
            too; ``E-no-command``, ``E-unknown-program``.
    """
    whole = _CONTINUED.sub(" ", line)
    of_windows = _is_of_windows(whole)
    escape = "" if of_windows else "\\"
    end = _end_of_command(whole, escape)
    splitting = shlex.shlex(whole[:end], posix=True, punctuation_chars=False)
    splitting.whitespace_split, splitting.commenters, splitting.escape = True, "", escape
    try:
        words = list(splitting)
    except ValueError as wrong:
        message = f"the quotes do not match: {wrong}"
        raise BadInput("E-shell-quoting", message, hint="quote the whole command once more, or use '--'") from wrong
    return read_words(words, whole[end:].strip(), of_windows=of_windows)


def _is_of_windows(line: str) -> bool:
    """Whether backslashes are parts of paths: there is a drive, or a program of Windows.

    Raises:
        BadInput: ``E-shell-quoting`` where a shell would eat one of another line.
    """
    bare = _QUOTED.sub("''", line)
    eaten = _EATEN.search(bare)
    if eaten is None:
        return False
    if _DRIVE.search(bare) or _EXE.search(bare):
        return True
    hint = "put the path or the pattern into single quotes, or give the words after '--'"
    raise BadInput("E-shell-quoting", f"a shell eats the backslash in '{eaten[0]}'", hint=hint)


def _quoted_for_windows(word: str) -> str:
    """In double quotes, which cmd, PowerShell and POSIX shells read alike; in single ones where it has double ones."""
    if _PLAIN.fullmatch(word):
        return word
    return shlex.quote(word) if '"' in word else f'"{word}"'


def _end_of_command(line: str, escape: str) -> int:
    """Where the shell takes over: at a redirection, a pipe, the next command.

    Raises:
        BadInput: ``E-shell-quoting`` where that can't be meant.
    """
    quote, skipped = "", False
    for index, character in enumerate(line):
        if skipped:
            skipped = False
        elif character == escape and quote != "'":
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


def read_words(words: Sequence[str], after: str = "", *, of_windows: bool | None = None) -> CommandWords:
    """Tell variables, program and arguments apart.

    Args:
        words: The words, as a program gets them.
        after: What the shell takes.
        of_windows: Whether the line is of Windows; ``None``: the program's name tells.

    Raises:
        BadInput: ``E-no-command``, ``E-unknown-program``.
    """
    at = next((index for index, word in enumerate(words) if _kind(word)), None)
    if at is None:
        first = next((word for word in words if not _VARIABLE.fullmatch(word)), "")
        if not first or first.startswith("-"):
            raise BadInput("E-no-command", "there is no command", hint='e.g. moe-harness lint "llama-server -m ..."')
        hint = did_you_mean(_base(first), list(Program))
        if _base(first) in _CONTAINERS:
            hint = "begin with the program that runs in the container: llama-server and what stands after the image"
        raise BadInput("E-unknown-program", f"'{first}' is none of the programs that are known", hint=hint)
    kind = _kind(words[at])
    assert kind is not None  # noqa: S101 - it was found by it
    strangers = [word for word in words[:at] if not _VARIABLE.fullmatch(word)]
    if strangers and _base(strangers[0]) not in _RUNNERS:
        hint = "begin with the program, or with variables"
        raise BadInput("E-unknown-program", f"'{strangers[0]}' is none of the programs that are known", hint=hint)
    told = words[at].endswith(".exe") or "\\" in words[at] if of_windows is None else of_windows
    return CommandWords(tuple(words[:at]), words[at], kind, tuple(words[at + 1 :]), after, told)


def _base(word: str) -> str:
    """The name in a path of either kind."""
    return PureWindowsPath(word).name


def _kind(word: str) -> Program | None:
    name = _base(word).removesuffix(".exe")
    return Program(name) if name in list(Program) else None


def _assignment(word: str) -> str:
    name, equals, value = word.partition("=")
    return f"{name}={shlex.quote(value)}" if equals and _VARIABLE.fullmatch(word) else shlex.quote(word)
