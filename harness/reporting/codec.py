"""Domain values to plain JSON and back, without loss.

pydantic reads the dataclasses. Three things are ours: unions are tagged with their type's name (their members share
fields, so a guess would come back as a neighbour), numbers that JSON does not have are written as the words that
pydantic reads back, and lone surrogates (bytes of an engine that were no text) become the replacement character.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import TypeAdapter

from harness.domain.arm import Arm
from harness.domain.case import (
    AttributionCheck,
    Case,
    Check,
    ContrastCheck,
    FloorCheck,
    MemoryCheck,
    OutputCheck,
    PitfallCheck,
)
from harness.domain.job import Job
from harness.domain.node import NodeClass
from harness.domain.words import Kind
from harness.domain.workload import OutputProfile, ProfileWorkload, Workload

T = TypeVar("T")

_TAG = "type"
_SURROGATE = "\\ud"
"""An escape that may be half a character."""
_ENCODER = json.JSONEncoder(allow_nan=False)
_PLAIN_TYPES = frozenset({int, bool, type(None)})
_PATCH_TEXTS = {"build": {"recipe": {"patches": {"__all__": {"text"}}}}}
_LEFT_OUT: dict[type, Any] = {Arm: _PATCH_TEXTS, Job: {"arms": {"__all__": _PATCH_TEXTS}}}
"""The texts of a recipe's patches, with every case: their digests are what a journal has to know."""
_CHECKS: dict[str, type[Check]] = {
    each.__name__: each
    for each in (FloorCheck, ContrastCheck, PitfallCheck, AttributionCheck, OutputCheck, MemoryCheck)
}
_ARMS: dict[type[Check], tuple[int, ...]] = {
    FloorCheck: (1,), ContrastCheck: (2,), PitfallCheck: (2,), AttributionCheck: (4,), OutputCheck: (1, 2),
    MemoryCheck: (1,),
}  # fmt: skip
"""How many arms a case with such a check has."""
_WORKLOADS: dict[str, type[Workload | ProfileWorkload | OutputProfile]] = {
    each.__name__: each for each in (Workload, ProfileWorkload, OutputProfile)
}


def encode(value: object) -> Any:
    """Turn a dataclass of the domain into plain JSON values."""
    return plain(as_json(value))


def as_json(value: object) -> Any:
    """As `encode`, for `json_text`: with numbers and half characters that JSON does not have as they are."""
    left_out = _LEFT_OUT.get(type(value))
    return _adapter(type(value)).dump_python(value, mode="json", warnings=False, exclude=left_out)


def json_text(value: Any) -> str:
    """The JSON text of a value; `plain` looks at every part of it, so only what JSON may not have goes through that."""
    try:
        text = _ENCODER.encode(value)
    except ValueError:  # NaN or an infinity
        return _ENCODER.encode(plain(value))
    return _ENCODER.encode(plain(value)) if _SURROGATE in text else text


def decode(kind: type[T], data: Any) -> T:
    """Read back what ``encode`` wrote.

    Args:
        kind: The dataclass.
        data: Plain JSON values; unknown keys are ignored.

    Raises:
        ValueError: If the data do not describe one.
    """
    value: T = _adapter(kind).validate_python(data)
    return value


def encode_case(case: Case) -> Any:
    """Turn a case into plain JSON values, its unions tagged."""
    return plain(case_as_json(case))


def case_as_json(case: Case) -> dict[str, Any]:
    """As `encode_case`, for `json_text`."""
    return {
        "kind": str(case.kind),
        "arms": [as_json(arm) for arm in case.arms],
        "workload": _tagged(case.workload) if case.workload else None,
        "node_class": as_json(case.node_class),
        "check": _tagged(case.check),
    }


def decode_case(data: Mapping[str, Any]) -> Case:
    """Read back what ``encode_case`` wrote.

    Raises:
        ValueError: If the data do not describe a case.
        KeyError: If a part is missing.
        TypeError: If a part is of another JSON type.
    """
    workload, check = data["workload"], _untagged(_CHECKS, data["check"])
    arms = tuple(decode(Arm, arm) for arm in data["arms"])
    if len(arms) not in _ARMS[type(check)]:
        raise ValueError(f"{len(arms)} arms under a {type(check).__name__}")
    return Case(
        kind=Kind(data["kind"]),
        arms=arms,
        workload=_untagged(_WORKLOADS, workload) if workload else None,
        node_class=decode(NodeClass, data["node_class"]),
        check=check,
    )


_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """The adapter of a type, made once: making one costs a millisecond."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def _tagged(value: object) -> dict[str, Any]:
    return {_TAG: type(value).__name__, **as_json(value)}


def _untagged(kinds: Mapping[str, type[T]], data: Mapping[str, Any]) -> T:
    return decode(kinds[data[_TAG]], {name: value for name, value in data.items() if name != _TAG})


def plain(value: Any) -> Any:
    """Values that JSON and UTF-8 have: other numbers as words, half characters as the replacement character."""
    if type(value) in _PLAIN_TYPES:  # most values are, and a match asks each question in turn
        return value
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
        case str():
            return value if value.isascii() else value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        case dict():
            return {plain(name): plain(entry) for name, entry in value.items()}
        case list() | tuple():
            return [plain(entry) for entry in value]
        case _:
            return value
