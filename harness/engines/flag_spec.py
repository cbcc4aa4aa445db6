"""What a flag is: its meaning, its values, how ``llama-bench`` spells it and which field of a result row echoes it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from harness.domain.errors import BadInput
from harness.domain.flags import FlagValue

NONE = "none"
"""Value of a flag of texts that is switched off, e.g. ``ot = "none"``."""

_SWITCH_WORDS = {"0": 0, "1": 1, "off": 0, "on": 1, "false": 0, "true": 1}
_OVERRIDE = re.compile(r"[^=]+=[^=]+")
_SPLIT = re.compile(r"\d+(\.\d+)?(/\d+(\.\d+)?)*")
_EXPERTS = re.compile(r"-?\d+,-?\d+(\.\d+)?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class FlagKind(StrEnum):
    """What values a flag takes."""

    SWITCH = "switch"
    INTEGER = "integer"
    CHOICE = "choice"
    TEXT = "text"
    OVERRIDES = "overrides"
    SPLIT = "split"
    EXPERTS = "experts"


class Numbers(StrEnum):
    """Whether another value of a flag gives other logits, on a machine where nothing is broken."""

    SAME = "same"
    """It is about where things lie or who waits for whom: the arithmetic is the same."""
    MAY = "may change"
    """It depends on the fork, the build, the model, its quantization or the device."""
    CHANGE = "change"
    """Other arithmetic or other values: logits that stay the same to the bit show that the flag does nothing."""


class Compare(StrEnum):
    """How an echoed field is compared with what was asked for."""

    NUMBER = "number"
    """As numbers; JSON's ``true`` is 1."""
    TRUTH = "truth"
    """Only zero or not zero: the field is printed as a boolean although it counts."""
    TEXT = "text"
    OVERRIDES = "overrides"
    """Tensor overrides: the joiner, and the word for none, differ by fork."""
    SPLIT = "split"
    """Shares by device, printed with two decimals."""
    EXPERTS = "experts"
    """Least number of experts and threshold: two numbers."""


@dataclass(frozen=True, slots=True)
class Echo:
    """The field of a result row that repeats a flag.

    Attributes:
        field: Name in the JSON row.
        compare: How to compare.
        words: Echoed value of those values that are echoed as another word.
    """

    field: str
    compare: Compare
    words: Mapping[FlagValue, FlagValue] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spelling:
    """One way to say a flag to ``llama-bench``.

    Attributes:
        options: Option and its longer names as ``--help`` prints them; the first is used.
        words: Argument of those values that are spelled as another word.
        bare: The option stands alone and means 1; 0 is said by leaving it out.
        omitted: The value that can only be said by leaving the option out.
        joiner: Between the tensor overrides of one test.
    """

    options: tuple[str, ...]
    words: Mapping[FlagValue, str] = dataclasses.field(default_factory=dict)
    bare: bool = False
    omitted: FlagValue | None = None
    joiner: str = ";"

    def argv(self, value: FlagValue) -> tuple[str, ...]:
        """The arguments that say a value."""
        if value == self.omitted or (self.bare and value == 0):
            return ()
        if self.bare:
            return (self.options[0],)
        return (self.options[0], self.words.get(value, str(value).replace(";", self.joiner)))


@dataclass(frozen=True, slots=True)
class FlagSpec:
    """One flag of one fork.

    Attributes:
        name: Canonical name, the same in both forks where the meaning is.
        meaning: What it does, in one line.
        kind: What values it takes.
        default: Value of an arm that does not declare it; always passed explicitly.
        absent: How a build behaves that does not know the flag yet.
        choices: Values of a choice; extra words of a switch.
        low: Least integer.
        high: Largest integer.
        embedded: Whether the embedded engine takes it.
        spellings: Ways to say it to ``llama-bench``, newest first; empty where ``llama-bench`` has no such option.
        echoes: Fields that repeat it, newest first; the first one that a row has is compared.
        numbers: Whether another value gives other logits.
    """

    name: str
    meaning: str
    kind: FlagKind
    default: FlagValue
    absent: FlagValue
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = 1 << 24
    embedded: bool = False
    spellings: tuple[Spelling, ...] = ()
    echoes: tuple[Echo, ...] = ()
    numbers: Numbers = Numbers.MAY

    @property
    def expected(self) -> str:
        """What values the flag takes, as error messages say it."""
        return _EXPECTED[self.kind](self)

    def spelling(self, options: frozenset[str] | None) -> Spelling | None:
        """The newest spelling that a build knows.

        Args:
            options: Option spellings of its ``--help``; ``None``: not known, the newest is taken.
        """
        known = (one for one in self.spellings if options is None or options.intersection(one.options))
        return next(known, None)

    def normalised(self, value: FlagValue | bool) -> FlagValue:
        """The one spelling of a value, so that ``on``, ``true`` and ``1`` are one arm.

        Raises:
            BadInput: ``E-bad-flag-value``, naming the flag, what was given and what was expected.
        """
        try:
            return _NORMALISERS[self.kind](self, value)
        except ValueError:
            raise BadInput("E-bad-flag-value", f"flag '{self.name}': got {value!r}, expected {self.expected}") from None


def overrides_of(value: FlagValue) -> tuple[str, ...]:
    """The ``pattern=BUFFER`` pieces of a normalised ``ot`` value."""
    return () if value == NONE else tuple(str(value).split(";"))


def _switch(spec: FlagSpec, value: FlagValue) -> FlagValue:
    word = str(value).lower()
    return word if word in spec.choices else _SWITCH_WORDS[word] if word in _SWITCH_WORDS else _refuse()


def _integer(spec: FlagSpec, value: FlagValue) -> FlagValue:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        return _refuse()
    number = int(value)
    return number if spec.low <= number <= spec.high else _refuse()


def _choice(spec: FlagSpec, value: FlagValue) -> FlagValue:
    folded = {choice.lower(): choice for choice in spec.choices}
    word = str(value).lower()
    return folded[word] if word in folded else _refuse()


def _text(spec: FlagSpec, value: FlagValue) -> FlagValue:  # noqa: ARG001 - one signature for all kinds
    return value if isinstance(value, str) and not _CONTROL.search(value) else _refuse()


def _overrides(spec: FlagSpec, value: FlagValue) -> FlagValue:
    """Pieces joined by ``;``. Commas join too, ik_llama.cpp's habit, where each part between them is a piece."""
    text = str(_text(spec, value)).strip()
    if text.lower() in ("", NONE):
        return NONE
    by_comma = text.split(",")
    parts = by_comma if ";" not in text and all(map(_OVERRIDE.fullmatch, by_comma)) else text.split(";")
    pieces = [part.strip() for part in parts if part.strip()]
    return ";".join(pieces) if pieces and all(map(_OVERRIDE.fullmatch, pieces)) else _refuse()


def _split(spec: FlagSpec, value: FlagValue) -> FlagValue:
    text = str(_text(spec, str(value))).lower()
    if text in ("", "0", NONE):
        return NONE
    return text if _SPLIT.fullmatch(text) else _refuse()


def _experts(spec: FlagSpec, value: FlagValue) -> FlagValue:
    text = str(_text(spec, value)).replace(" ", "")
    if text.lower() in ("", NONE):
        return spec.default
    if not _EXPERTS.fullmatch(text):
        return _refuse()
    # The second number is a share of the largest weight, whatever ik_llama.cpp's documentation makes of `-ser 1,6`.
    return text if 0 <= float(text.partition(",")[2]) <= 1 else _refuse()


def _refuse() -> FlagValue:
    """Not a value of the flag; the caller says it in full."""
    raise ValueError


_NORMALISERS: Mapping[FlagKind, Callable[[FlagSpec, FlagValue], FlagValue]] = MappingProxyType(
    {
        FlagKind.SWITCH: _switch,
        FlagKind.INTEGER: _integer,
        FlagKind.CHOICE: _choice,
        FlagKind.TEXT: _text,
        FlagKind.OVERRIDES: _overrides,
        FlagKind.SPLIT: _split,
        FlagKind.EXPERTS: _experts,
    }
)
_EXPECTED: Mapping[FlagKind, Callable[[FlagSpec], str]] = MappingProxyType(
    {
        FlagKind.SWITCH: lambda spec: " or ".join(["0", "1", *spec.choices]),
        FlagKind.INTEGER: lambda spec: f"a whole number from {spec.low} to {spec.high}",
        FlagKind.CHOICE: lambda spec: "one of " + ", ".join(spec.choices),
        FlagKind.TEXT: lambda _: "a text without control characters",
        FlagKind.OVERRIDES: lambda _: "'pattern=BUFFER' pieces joined by ';', or 'none'",
        FlagKind.SPLIT: lambda _: "shares by device joined by '/', e.g. '3/1', or 'none'",
        FlagKind.EXPERTS: lambda _: "'least experts,threshold from 0 to 1', e.g. '6,0.5', or 'none'",
    }
)
