"""How single values of a matrix file are read: what they may be, what becomes of them, and what is said of wrong ones.

:mod:`harness.planning.schema` has the keys that hold them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Discriminator, Field, PlainValidator, StringConstraints, Tag

from harness.domain.flags import FlagValue
from harness.domain.number_range import NumberRange, read_range
from harness.domain.paths import usable_path
from harness.domain.secrets import is_secret_name
from harness.models.address import DIGEST, address_fault
from harness.planning.configuration import Configuration

LISTED, NAMED = "[listed]", "[named]"
"""Parts that the validator adds to the path of prompts: what it took them for."""
NAME_RULE = "letters and digits, with single '.', '_' or '-' between them"
_NAME = r"^[A-Za-z0-9]([._-]?[A-Za-z0-9]+)*$"
_MAX_NAME = 100
_CAPABILITY = re.compile(r"\d{1,2}\.\d")
_ENVIRONMENT = "environment"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Above what anybody means: a slip of the finger must not fill the memory or run for a year.
_MAX_TOKENS = 1 << 24
_MAX_REPEATS = 10_000
_MAX_TIMEOUT_S = 7 * 86_400.0
_MAX_LOSS = 1.0
_MAX_MINUTES = 7 * 1440.0


class AtKey(ValueError):  # noqa: N818 - reads as what it is at the raise
    """A fault inside a table that is read as one value.

    Args:
        message: What was expected and what was found.
        path: The keys that lead to it.
    """

    def __init__(self, message: str, *path: str) -> None:
        super().__init__(message)
        self.path = path


def _value(found: Any) -> FlagValue:
    """One flag value; TOML's booleans become 0 and 1."""
    if isinstance(found, bool):
        return int(found)
    if isinstance(found, float) and not math.isfinite(found):
        raise ValueError(f"expected a finite number, found {found}")
    if isinstance(found, int | float | str):
        return found
    raise ValueError(f"expected a number, a text or a boolean, found {_kind(found)}")


def _axis(found: Any) -> tuple[FlagValue, ...]:
    """A flag's values: one, or a list of different ones."""
    values = tuple(_value(item) for item in (found if isinstance(found, list) else [found]))
    if not values:
        raise ValueError("expected at least one value, found an empty list")
    repeated = [value for index, value in enumerate(values) if value in values[:index]]
    if repeated:
        raise ValueError(f"value {repeated[0]!r} is listed twice")
    return values


def _names(found: Any) -> tuple[str, ...]:
    """One name or a list of names."""
    listed = found if isinstance(found, list) else [found]
    wrong = [item for item in listed if not isinstance(item, str)]
    if wrong or not listed:
        raise ValueError(f"expected a name or a list of names, found {_kind(wrong[0] if wrong else found)}")
    return tuple(listed)


def _side(found: Any) -> FlagValue | Configuration:
    """One side of a contrast: a name, a flag's value, or a table of settings."""
    return _configuration(found) if isinstance(found, dict) else _value(found)


def _configuration(found: Any) -> Configuration:
    """Flags by name, and variables in a table ``environment`` among them."""
    if not isinstance(found, dict):
        raise ValueError(f"expected a table of flags, found {_kind(found)}")  # noqa: TRY004 - the validator reads it
    variables = found.get(_ENVIRONMENT, {})
    if not isinstance(variables, dict):
        raise AtKey(f"expected a table of variables, found {_kind(variables)}", _ENVIRONMENT)
    flags = {name: _flag(name, value) for name, value in found.items() if name != _ENVIRONMENT}
    return Configuration(flags, variables_of(variables, _ENVIRONMENT))


def _flag(name: str, found: Any) -> FlagValue:
    try:
        return _value(found)
    except ValueError as wrong:
        raise AtKey(str(wrong), name) from wrong


def variables_of(found: Mapping[str, Any], *path: str) -> dict[str, str]:
    """Environment variables.

    Args:
        found: The table.
        path: The keys that lead to it, for errors.

    Raises:
        AtKey: If a name can't be a variable's, or a value is no text.
    """
    for name, value in found.items():
        if not isinstance(value, str):
            raise AtKey(f"a variable must be a text, found {_kind(value)}", *path, name)
        try:
            _variable(name), _variable_text(value)
        except ValueError as wrong:
            raise AtKey(str(wrong), *path, name) from wrong
    return dict(found)


def _threads(found: Any) -> int | Literal["auto"]:
    """Compute threads, or ``auto`` for what the node has reserved."""
    if found == "auto":
        return "auto"
    if isinstance(found, int) and not isinstance(found, bool) and found >= 1:
        return found
    raise ValueError(f'expected "auto" or a whole number above 0, found {_kind(found)}')


def _margin(found: Any) -> float | Literal["auto"]:
    """A relative change, or ``auto`` for what the known spread can decide."""
    if found == "auto":
        return "auto"
    if isinstance(found, int | float) and not isinstance(found, bool) and 0 < found < 1:
        return float(found)
    raise ValueError(f'expected "auto" or a number above 0 and below 1, found {_kind(found)}')


def _even(found: int) -> int:
    """Blocks come in pairs: two of them are a quad."""
    if found % 2:
        raise ValueError(f"expected an even number, because two blocks are one quad, found {found}")
    return found


def _kind(found: Any) -> str:
    words = {dict: "a table", list: "a list", bool: "a boolean", int: "a number", float: "a number", str: "a text"}
    return f"{words.get(type(found), type(found).__name__)} ({found!r})"


def _variable(found: str) -> str:
    """The name of an environment variable."""
    if not _VARIABLE.fullmatch(found):
        raise ValueError("the name of a variable is letters, digits and '_', and does not begin with a digit")
    if is_secret_name(found):
        raise ValueError(f"'{found}' looks like a secret: no engine needs one, and it would stand in every report")
    return found


def _variable_text(found: str) -> str:
    """What an environment variable can be set to."""
    if "\0" in found:
        raise ValueError("a variable can't hold a null character")
    return found


def _digests(found: Any) -> tuple[str, ...]:
    """One SHA-256, or those of all parts of a split model."""
    listed = found if isinstance(found, list) else [found]
    wrong = [item for item in listed if not isinstance(item, str) or not DIGEST.fullmatch(item)]
    if wrong or not listed:
        raise ValueError(
            f"expected 64 hexadecimal digits, or a list of them, found {_kind(wrong[0] if wrong else found)}"
        )
    return tuple(item.lower() for item in listed)


def _address(found: str) -> str:
    """An address that a model may be fetched from."""
    if fault := found and address_fault(found):
        raise ValueError(fault)
    return found


def _capability(found: str) -> str:
    """A compute capability of CUDA."""
    if found and not _CAPABILITY.fullmatch(found):
        raise ValueError(f'expected a compute capability like "8.9", found {found!r}')
    return found


def _reference(found: Any) -> bool | str:
    """Whether there is a reference, or under which name it is kept."""
    if isinstance(found, bool) or (isinstance(found, str) and len(found) <= _MAX_NAME and re.match(_NAME, found)):
        return found
    raise ValueError(f"expected true, or a name of {NAME_RULE}, found {_kind(found)}")


def _how_said(found: Any) -> str:
    """Whether prompts are listed, or a set of them is named."""
    return LISTED if isinstance(found, list) else NAMED


def _loss(found: float) -> float:
    if found > _MAX_LOSS:
        why = "what loses more answers something else, and everything would pass"
        raise ValueError(f"expected at most {_MAX_LOSS:g} nat of mean divergence ({why}), found {found:g}")
    return found


def _prompt(found: str) -> str:
    """What engines can be asked: their texts end at a null character."""
    if "\0" in found:
        raise ValueError("a prompt can't hold a null character")
    return found


_RawValue: TypeAlias = bool | int | float | str
Value = Annotated[FlagValue, PlainValidator(_value, json_schema_input_type=_RawValue)]
Axis = Annotated[tuple[FlagValue, ...], PlainValidator(_axis, json_schema_input_type=_RawValue | list[_RawValue])]
Names = Annotated[tuple[str, ...], PlainValidator(_names, json_schema_input_type=str | list[str])]
Numbers = Annotated[NumberRange, PlainValidator(read_range, json_schema_input_type=str)]
Digests = Annotated[tuple[str, ...], PlainValidator(_digests, json_schema_input_type=str | list[str])]
_RawSettings: TypeAlias = dict[str, _RawValue | dict[str, str]]
Settings = Annotated[Configuration, PlainValidator(_configuration, json_schema_input_type=_RawSettings)]
Side = Annotated[FlagValue | Configuration, PlainValidator(_side, json_schema_input_type=_RawValue | _RawSettings)]
Threads = Annotated[
    int | Literal["auto"],
    PlainValidator(_threads, json_schema_input_type=Literal["auto"] | Annotated[int, Field(ge=1)]),
]
Margin = Annotated[
    float | Literal["auto"],
    PlainValidator(_margin, json_schema_input_type=Literal["auto"] | Annotated[float, Field(gt=0, lt=1)]),
]
Name = Annotated[str, StringConstraints(pattern=_NAME, max_length=_MAX_NAME)]
Text = Annotated[str, StringConstraints(min_length=1)]
PathText = Annotated[str, AfterValidator(usable_path)]
Variables = dict[Annotated[str, AfterValidator(_variable)], Annotated[str, AfterValidator(_variable_text)]]
Count = Annotated[int, Field(ge=0)]
Tokens = Annotated[int, Field(ge=0, le=_MAX_TOKENS)]
Repeats = Annotated[int, Field(ge=0, le=_MAX_REPEATS)]
SomeTokens = Annotated[int, Field(ge=1, le=_MAX_TOKENS)]
SomeRepeats = Annotated[int, Field(ge=1, le=_MAX_REPEATS)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Loss = Annotated[Positive, AfterValidator(_loss)]
Predicted = Annotated[int, Field(ge=2, le=_MAX_TOKENS)]
Blocks = Annotated[SomeRepeats, AfterValidator(_even)]
Minutes = Annotated[float, Field(gt=0, le=_MAX_MINUTES)]
Timeout = Annotated[float, Field(gt=0, le=_MAX_TIMEOUT_S)]
Address = Annotated[str, AfterValidator(_address)]
Capability = Annotated[str, AfterValidator(_capability)]
PromptText = Annotated[str, AfterValidator(_prompt)]
Prompt = Annotated[Text, AfterValidator(_prompt)]
Prompts = Annotated[
    Annotated[Annotated[list[Prompt], Field(min_length=1)], Tag(LISTED)]
    | Annotated[PathText, Field(min_length=1), Tag(NAMED)],
    Discriminator(_how_said),
]
Reference = Annotated[bool | str, PlainValidator(_reference, json_schema_input_type=bool | Name)]
