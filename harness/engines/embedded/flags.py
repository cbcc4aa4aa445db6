"""The flags the embedded engines know, by fork: names, kinds, ranges and the value an absent flag gets.

An absent flag gets the value of *this* table, never the library's default: defaults moved in both forks, and two arms
that both leave a flag out must run alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from .errors import EmbeddedError

MAINLINE = "llama.cpp"
IK = "ik_llama.cpp"
FORKS = (MAINLINE, IK)

FlagValue: TypeAlias = int | str
Flags: TypeAlias = Mapping[str, FlagValue]

_SWITCH_WORDS = {"0": 0, "1": 1, "off": 0, "on": 1}
_SHARED_KV_TYPES = {
    "f32": 0,
    "f16": 1,
    "q4_0": 2,
    "q4_1": 3,
    "q5_0": 6,
    "q5_1": 7,
    "q8_0": 8,
    "iq4_nl": 20,
}
KV_TYPES: Mapping[str, Mapping[str, int]] = {
    MAINLINE: {**_SHARED_KV_TYPES, "bf16": 30},
    # No bf16: the wheel's AVX2 build makes such a cache and aborts in the first decode.
    IK: {**_SHARED_KV_TYPES, "q6_0": 133, "q8_KV": 151},
}
"""Number of each cache type in ``enum ggml_type``, by fork."""
LAZY_MODES: Mapping[str, int] = {"off": 0, "auto": 1, "on": 2}
"""Number of each word in mainline's ``enum llama_lazy_mode``."""


@dataclass(frozen=True, slots=True)
class FlagRule:
    """One flag of one fork.

    Attributes:
        default: Value where the request is silent.
        check: Turns a JSON scalar into the flag's value; raises ``ValueError`` saying what was expected.
    """

    default: FlagValue
    check: Callable[[object], FlagValue]


def _switch(value: object) -> int:
    """A boolean, 0 or 1, or llama.cpp's words ``on`` and ``off``."""
    if isinstance(value, int) and value in (0, 1):
        return int(value)
    if isinstance(value, str) and value.lower() in _SWITCH_WORDS:
        return _SWITCH_WORDS[value.lower()]
    raise ValueError("0 or 1")


def _integer(low: int, high: int) -> Callable[[object], int]:
    def check(value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        raise ValueError(f"a whole number from {low} to {high}")

    return check


def _text(value: object) -> str:
    if isinstance(value, str) and "\0" not in value:
        return value
    raise ValueError("a text")


def _word(words: Mapping[str, int]) -> Callable[[object], str]:
    def check(value: object) -> str:
        if isinstance(value, str) and value in words:
            return value
        raise ValueError("one of " + ", ".join(words))

    return check


def _overrides(value: object) -> str:
    """``pattern=BUFFER`` pieces joined by ``;``."""
    text = _text(value)
    parse_overrides(text)
    return text


def _expert_reduction(value: object) -> str:
    """Empty, or ik's ``min experts,threshold``."""
    text = _text(value)
    if not 0 <= parse_expert_reduction(text)[1] <= 1:
        raise ValueError("a threshold from 0 to 1 after the experts, e.g. '6,0.5'")
    return text


def parse_overrides(text: str) -> list[tuple[str, str]]:
    """Pieces of an ``ot`` flag as (pattern, buffer type).

    Raises:
        ValueError: A piece is not ``pattern=BUFFER``.
    """
    pairs = []
    for piece in filter(None, text.split(";")):
        # The last "=": a pattern may hold one, a buffer type's name does not.
        pattern, equals, buffer = piece.rpartition("=")
        if not (pattern and equals and buffer):
            raise ValueError("'pattern=BUFFER' pieces joined by ';'")
        pairs.append((pattern, buffer))
    return pairs


def parse_expert_reduction(text: str) -> tuple[int, float]:
    """Least number of experts and threshold of a ``ser`` flag; (-1, 0) switches it off.

    Raises:
        ValueError: The text is neither empty nor a whole number, a comma and a number.
    """
    if not text:
        return -1, 0.0
    least, comma, threshold = text.partition(",")
    try:
        return int(least), float(threshold) if comma else 0.0
    except ValueError:
        raise ValueError("empty or 'experts,threshold', e.g. '6,0.5'") from None


_LARGE = 1 << 24

_COMMON: Mapping[str, FlagRule] = {
    "fa": FlagRule(1, _switch),
    "b": FlagRule(2048, _integer(1, _LARGE)),
    "ub": FlagRule(512, _integer(1, _LARGE)),
    "ngl": FlagRule(0, _integer(-1, _LARGE)),
    "mmap": FlagRule(1, _switch),
    "ot": FlagRule("", _overrides),
    "nkvo": FlagRule(0, _switch),
}
RULES: Mapping[str, Mapping[str, FlagRule]] = {
    MAINLINE: {
        **_COMMON,
        "ctk": FlagRule("f16", _word(KV_TYPES[MAINLINE])),
        "ctv": FlagRule("f16", _word(KV_TYPES[MAINLINE])),
        "repack": FlagRule(1, _switch),
        "nopo": FlagRule(0, _switch),
        "no_host": FlagRule(0, _switch),
        "lzm": FlagRule("auto", _word(LAZY_MODES)),
    },
    IK: {
        **_COMMON,
        "ctk": FlagRule("f16", _word(KV_TYPES[IK])),
        "ctv": FlagRule("f16", _word(KV_TYPES[IK])),
        "rtr": FlagRule(0, _switch),
        "fmoe": FlagRule(1, _switch),
        "ger": FlagRule(0, _switch),
        "mqkv": FlagRule(0, _switch),
        "muge": FlagRule(0, _switch),
        "amb": FlagRule(0, _integer(0, _LARGE)),
        "mla": FlagRule(3, _integer(0, 3)),
        "ser": FlagRule("", _expert_reduction),
        "thp": FlagRule(0, _switch),
        "rcache": FlagRule(0, _switch),
        "gr": FlagRule(1, _switch),
        "no_fug": FlagRule(0, _switch),
        "no_ooae": FlagRule(0, _switch),
    },
}
"""Every flag of each embedded engine, by fork and name. The names are llama-bench's."""


def complete_flags(fork: str, given: Mapping[str, object]) -> Flags:
    """All flags of a fork, each with an explicit and valid value.

    Args:
        fork: One of ``FORKS``.
        given: What the request says, by flag name.

    Raises:
        EmbeddedError: ``E-flag-unknown`` for a flag that the fork's embedded engine does not have, ``E-flag-value``
            for a value outside its kind.
    """
    rules = RULES[fork]
    unknown = sorted(given.keys() - rules.keys())
    if unknown:
        known = ", ".join(sorted(rules))
        raise EmbeddedError(
            "E-flag-unknown",
            f"flags: {', '.join(unknown)}: the embedded engine of {fork} has no such flag; it has {known}",
        )
    return {name: _checked(name, rule, given.get(name, rule.default)) for name, rule in rules.items()}


def _checked(name: str, rule: FlagRule, value: object) -> FlagValue:
    try:
        return rule.check(value)
    except ValueError as problem:
        raise EmbeddedError("E-flag-value", f"flags.{name}: got {value!r}, expected {problem}") from None


def number(flags: Flags, name: str) -> int:
    """The value of a numeric flag."""
    return int(flags[name])


def text(flags: Flags, name: str) -> str:
    """The value of a flag of words."""
    return str(flags[name])
