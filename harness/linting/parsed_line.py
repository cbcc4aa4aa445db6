"""Arguments as options with their values: what a program of one fork would make of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from harness.domain.build import Fork
from harness.domain.errors import BadInput
from harness.domain.flags import FlagValue
from harness.engines.flag_spec import FlagKind
from harness.linting.command_words import CommandWords, Program
from harness.linting.option_table import Option, options_of

_NUMBER = re.compile(r"-[\d.]")
OFF_WORDS = frozenset({"0", "off", "false", "disabled", "no"})
"""How people write that a switch is off, where a program takes no word for it."""
_LISTED = frozenset({FlagKind.SWITCH, FlagKind.INTEGER, FlagKind.CHOICE})
"""Kinds whose values hold no comma: in llama-bench a comma makes a list of tests."""


@dataclass(frozen=True, slots=True)
class Part:
    """One option with what belongs to it, or words that belong to none.

    Attributes:
        words: As they stand in the line.
        option: The option; ``None`` where the program has none of this name.
        value: Text of its value; ``None`` where it has none.
        stray: Words after it that nothing takes.
    """

    words: tuple[str, ...]
    option: Option | None = None
    value: str | None = None
    stray: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The option as it stands."""
        return self.words[0]

    @property
    def text(self) -> str:
        """All its words."""
        return " ".join(self.words)


@dataclass(frozen=True)
class ParsedLine:
    """A command line as one fork's program reads it.

    Attributes:
        command: The words.
        fork: The fork.
        parts: Its options in their order.
    """

    command: CommandWords
    fork: Fork
    parts: tuple[Part, ...] = field(default_factory=tuple)

    @property
    def program(self) -> Program:
        """Which program it is."""
        return self.command.kind

    @property
    def is_bench(self) -> bool:
        """Whether values can be lists of tests."""
        return self.program is Program.BENCH

    @cached_property
    def said(self) -> Mapping[str, tuple[FlagValue, ...]]:
        """Values of flags by canonical name: all tests of llama-bench's, the last one that is said of the others."""
        found: dict[str, tuple[FlagValue, ...]] = {}
        for part in self.parts:
            if part.option is None:
                continue
            values = values_of(part, self)
            for name in (part.option.flag,) if part.option.flag else part.option.names:
                if values:
                    found[name] = self._with(name, found.get(name, ()), values)
        return found

    def _with(self, name: str, before: tuple[FlagValue, ...], values: tuple[FlagValue, ...]) -> tuple[FlagValue, ...]:
        """What an option adds: a test, another override of the same test, or what counts from then on."""
        adds = self.is_bench and self.fork is Fork.LLAMA_CPP
        if name == "ot" and before and not adds:
            return (";".join(map(str, (*before, *values))),)
        return (*before, *values) if self.is_bench else values

    @property
    def model(self) -> str:
        """The file of ``-m``; empty where none is said."""
        return self._value_of("-m")

    @property
    def repository(self) -> str:
        """The repository of ``--hf-repo``, with the quantization behind a colon; empty where none is said."""
        return self._value_of("--hf-repo").replace(":", "-")

    def _value_of(self, name: str) -> str:
        values = (part.value for part in self.parts if part.option and name in part.option.names)
        return next(filter(None, values), "")


def parse(command: CommandWords, fork: Fork) -> ParsedLine:
    """Read the arguments with the options of a fork's program; nothing is refused."""
    known = options_of(fork, command.kind)
    parts: list[Part] = []
    words = list(command.arguments)
    while words:
        word = words.pop(0)
        option = known.get(_canonical(word))
        value = None
        if option is not None and option.valued and words and not _is_option(words[0], known):
            value = words.pop(0)
        stray: list[str] = []
        while words and not _is_option(words[0], known):
            stray.append(words.pop(0))
        said = (word,) if value is None else (word, value)
        parts.append(Part((*said, *stray), option, value, tuple(stray)))
    return ParsedLine(command, fork, tuple(parts))


def values_of(part: Part, line: ParsedLine) -> tuple[FlagValue, ...]:
    """The flag's values that an option says, as far as they can be read; texts where no flag stands for it.

    A switch without the value that it needs is taken as it is meant, and as older builds read it: on.
    """
    option = part.option
    if option is None:
        return ()
    if not option.valued:
        meant_off = bool(part.stray) and part.stray[0] in OFF_WORDS
        return (0,) if meant_off else (option.values.get("", 1),)
    if part.value is None:
        return (1,) if option.spec is not None and option.spec.kind is FlagKind.SWITCH else ()
    texts = tests_of(part, line)
    return tuple(value for text in texts if (value := value_of(option, text, line)) is not None)


def tests_of(part: Part, line: ParsedLine) -> tuple[str, ...]:
    """The values of one option: a list of tests where llama-bench makes one of it."""
    if part.value is None:
        return ()
    option = part.option
    if not line.is_bench or option is None or option.spec is None:
        return (part.value,)
    comma_splits = option.spec.kind in _LISTED or (option.spec.kind is FlagKind.OVERRIDES and option.joiner != ",")
    return tuple(part.value.split(",")) if comma_splits or option.flag == "ts" else (part.value,)


def value_of(option: Option, text: str, line: ParsedLine) -> FlagValue | None:
    """One value in the flag's own spelling; ``None`` where it can't be one."""
    if text in option.values:
        return option.values[text]
    if option.spec is None:
        return text
    if option.spec.kind is FlagKind.SWITCH and line.is_bench and line.fork is Fork.IK_LLAMA_CPP:
        return int(text == "1")  # whatever the word is: the program reads a number, and 0 where there is none
    if option.spec.kind is FlagKind.SPLIT and not line.is_bench:
        text = text.replace(",", "/")
    if option.spec.kind is FlagKind.OVERRIDES and option.joiner == ",":
        text = text.replace(",", ";")
    try:
        return option.spec.normalised(text)
    except BadInput:
        return None


def _canonical(word: str) -> str:
    """Both forks read ``--n_gpu_layers`` as ``--n-gpu-layers``."""
    return word.replace("_", "-") if word.startswith("--") else word


def _is_option(word: str, known: Mapping[str, Option]) -> bool:
    if _canonical(word) in known:
        return True
    return word.startswith("-") and len(word) > 1 and not _NUMBER.match(word)
