"""A line of ``llama-bench`` arguments as flags and workloads: what a command takes after ``--``, or pastes there.

Every spelling of either fork is understood, and the matrix's own words too (``fa=1``). What a flag means, and whether a
build has it, is decided later, by the tables of the engines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product

from harness.domain.build import Fork, Tool
from harness.domain.errors import BadInput
from harness.domain.flags import FlagValue
from harness.domain.suggest import did_you_mean
from harness.domain.workload import Workload
from harness.engines.flag_spec import FlagKind, FlagSpec, Spelling
from harness.engines.flags import known_flags, specs

_MAX_TOKENS = 1 << 24
_NUMBER = re.compile(r"-\d")
_INTEGER = re.compile(r"-?\d{1,9}")
_WORD = re.compile(r"([A-Za-z_][\w-]*)=(.*)", re.DOTALL)
_ONE_VALUE = frozenset({FlagKind.SWITCH, FlagKind.INTEGER, FlagKind.CHOICE})
"""Kinds whose values hold no comma: there a comma makes a list of tests."""

_LISTS = {"-p": "-p", "--n-prompt": "-p", "-n": "-n", "--n-gen": "-n", "-d": "-d", "--n-depth": "-d"}
_PAIRS = ("-pg", "-gp")
_MODEL = ("-m", "--model")
_REPETITIONS = ("-r", "--repetitions")
_OURS = {
    "-o": 1,
    "--output": 1,
    "-oe": 1,
    "--output-err": 1,
    "-w": 1,
    "--warmup": 1,
    "--prio": 1,
    "--delay": 1,
    "-v": 0,
    "--verbose": 0,
    "--progress": 0,
    "--no-warmup": 0,
    "--list-devices": 0,
}
"""Options by which ``llama-bench`` is told how to measure and print, with the number of their values: we say those."""


@dataclass(frozen=True, slots=True)
class BenchLine:
    """What the line says. What it does not say is ``None`` or empty.

    Attributes:
        flags: Values by canonical name, as written.
        prompts: Tokens of ``-p``.
        generations: Tokens of ``-n``.
        depths: Tokens of ``-d``.
        both: Pairs of ``-pg``.
        after_depth: Pairs of ``-gp``: depth, then tokens generated.
        model: Of ``-m``.
        repetitions: Of ``-r``.
        left_out: Options that the harness sets itself.
    """

    flags: Mapping[str, FlagValue] = field(default_factory=dict)
    prompts: tuple[int, ...] | None = None
    generations: tuple[int, ...] | None = None
    depths: tuple[int, ...] | None = None
    both: tuple[tuple[int, int], ...] = ()
    after_depth: tuple[tuple[int, int], ...] = ()
    model: str = ""
    repetitions: int | None = None
    left_out: tuple[str, ...] = ()

    def workloads(self, prompt: int, generation: int) -> tuple[Workload, ...]:
        """The workloads, by ``llama-bench``'s rule: each list that is not said has its default, 0 takes one away.

        Args:
            prompt: Tokens of prompt processing where ``-p`` is not said.
            generation: Tokens generated where ``-n`` is not said.

        Raises:
            BadInput: ``E-no-workload`` if nothing is left.
        """
        prompts = (prompt,) if self.prompts is None else self.prompts
        generations = (generation,) if self.generations is None else self.generations
        flat = [(tokens, 0) for tokens in prompts] + [(0, tokens) for tokens in generations] + list(self.both)
        asked = [Workload(pp, tg, depth) for depth, (pp, tg) in product(self.depths or (0,), flat) if pp or tg]
        asked += [Workload(0, tokens, depth) for depth, tokens in self.after_depth if tokens]
        if not asked:
            raise BadInput("E-no-workload", "nothing is left to time", hint="say -p or -n with a number above 0")
        return tuple(dict.fromkeys(asked))


def read_bench_line(words: Sequence[str]) -> BenchLine:
    """Read arguments of ``llama-bench``.

    Args:
        words: As the shell gives them.

    Raises:
        BadInput: ``E-unknown-flag``, ``E-stray-word``, ``E-several-values``, ``E-bad-flag-value``, ``E-bad-workload``.
    """
    return _Reader(words).read()


def flag_word(word: str) -> tuple[str, FlagValue]:
    """One flag as a matrix says it: ``fa=1``; a long option's name will do.

    Args:
        word: Name and value.

    Raises:
        BadInput: ``E-unknown-flag``, ``E-several-values``, ``E-stray-word``.
    """
    found = _WORD.fullmatch(word)
    if found is None:
        hint = "flags are written -fa 1 or fa=1"
        raise BadInput("E-stray-word", f"'{word}' is neither a flag nor the value of one", hint=hint)
    spelled, text = found.groups()
    name = flag_named(spelled)
    if name is None:
        raise BadInput("E-unknown-flag", f"no fork has a flag '{spelled}'", hint=did_you_mean(spelled, known_flags()))
    return name, _one_value(name, text, spelled)


def flag_named(word: str) -> str | None:
    """The canonical name of a flag that is written without dashes; ``None`` if no fork has it."""
    if word in known_flags():
        return word
    dashed = word.replace("_", "-")
    return next((_spellings()[option][0] for option in (f"--{dashed}", f"-{dashed}") if option in _spellings()), None)


class _Reader:
    """Goes through the words of one line."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = list(words)
        self._flags: dict[str, FlagValue] = {}
        self._lists: dict[str, tuple[int, ...]] = {}
        self._pairs: dict[str, tuple[tuple[int, int], ...]] = {}
        self._model = ""
        self._repetitions: int | None = None
        self._left_out: list[str] = []

    def read(self) -> BenchLine:
        while self._words:
            word = self._words.pop(0)
            if _is_option(word):
                self._option(word)
            else:
                self._set(word, *flag_word(word))
        return BenchLine(
            flags=self._flags,
            prompts=self._lists.get("-p"),
            generations=self._lists.get("-n"),
            depths=self._lists.get("-d"),
            both=self._pairs.get("-pg", ()),
            after_depth=self._pairs.get("-gp", ()),
            model=self._model,
            repetitions=self._repetitions,
            left_out=tuple(self._left_out),
        )

    def _option(self, word: str) -> None:
        option, joined, text = word.partition("=")
        if joined:
            self._words.insert(0, text)
        if option in _LISTS:
            name = _LISTS[option]
            self._lists[name] = (*self._lists.get(name, ()), *_numbers(option, self._value(option)))
        elif option in _PAIRS:
            self._pairs[option] = (*self._pairs.get(option, ()), _pair(option, self._value(option)))
        elif option in _MODEL:
            self._model = self._value(option)
        elif option in _REPETITIONS:
            self._repetitions = _one_number(option, self._value(option))
        elif option in _OURS:
            del self._words[: _OURS[option]]
            self._left_out.append(option)
        else:
            self._flag(option)

    def _flag(self, option: str) -> None:
        if option not in _spellings():
            hint = did_you_mean(option, {*_spellings(), *_LISTS, *_PAIRS})
            raise BadInput("E-unknown-flag", f"no llama-bench has an option '{option}'", hint=hint)
        name, spelling, spec = _spellings()[option]
        if spec.kind is FlagKind.SWITCH and not self._has_value():
            self._set(option, name, 1)  # as the other programs of both forks write a switch
            return
        text = self._value(option)
        said = {said: value for value, said in spelling.words.items()}
        self._set(option, name, said[text] if text in said else _one_value(name, text, option))

    def _has_value(self) -> bool:
        return bool(self._words) and not _is_option(self._words[0]) and not _WORD.fullmatch(self._words[0])

    def _value(self, option: str) -> str:
        if not self._words or _is_option(self._words[0]):
            raise BadInput("E-bad-flag-value", f"'{option}' has no value")
        return self._words.pop(0)

    def _set(self, written: str, name: str, value: FlagValue) -> None:
        before = self._flags.setdefault(name, value)
        if before != value:
            raise _several_values(name, [str(before), str(value)], written)


def _is_option(word: str) -> bool:
    return word.startswith("-") and not _NUMBER.match(word)


def _numbers(option: str, text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and int(part) <= _MAX_TOKENS for part in parts):
        message = f"'{option} {text}': expected whole numbers joined by commas, none above {_MAX_TOKENS}"
        raise BadInput("E-bad-workload", message)
    return tuple(map(int, parts))


def _pair(option: str, text: str) -> tuple[int, int]:
    numbers = _numbers(option, text)
    if len(numbers) != len(("pp", "tg")):
        raise BadInput("E-bad-workload", f"'{option} {text}': expected two numbers joined by a comma")
    return numbers[0], numbers[1]


def _one_number(option: str, text: str) -> int:
    numbers = _numbers(option, text)
    if len(numbers) != 1 or not numbers[0]:
        raise BadInput("E-bad-flag-value", f"'{option} {text}': expected one whole number above 0")
    return numbers[0]


def _one_value(name: str, text: str, written: str) -> FlagValue:
    if "," in text and all(spec.kind in _ONE_VALUE for spec in _specs_of(name)):
        raise _several_values(name, text.split(","), written)
    return int(text) if _INTEGER.fullmatch(text) else text


def _several_values(name: str, values: Sequence[str], written: str) -> BadInput:
    return BadInput(
        "E-several-values",
        f"'{written}' has several values: {', '.join(values)}",
        hint=f"an arm has one; compare them by BUILD+{name}={values[0]} BUILD+{name}={values[1]}",
    )


@cache
def _spellings() -> Mapping[str, tuple[str, Spelling, FlagSpec]]:
    """Every option of either fork's ``llama-bench``: canonical name, the spelling it belongs to, what it is."""
    return {
        option: (spec.name, spelling, spec)
        for fork in Fork
        for spec in specs(fork, Tool.LLAMA_BENCH).values()
        for spelling in spec.spellings
        for option in spelling.options
    }


def _specs_of(name: str) -> list[FlagSpec]:
    tables = [specs(fork, Tool.LLAMA_BENCH) for fork in Fork]
    return [table[name] for table in tables if name in table]
