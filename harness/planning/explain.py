"""What the schema found wrong, in words: the file, the key path, what was expected and what was found."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from harness.builds.entry import BuildEntry, PatchEntry, SourceEntry, VariantEntry
from harness.domain.suggest import did_you_mean
from harness.engines.flags import known_flags
from harness.planning import schema
from harness.planning.problems import INVALID, Problem
from harness.planning.source import Source
from harness.planning.values import LISTED, NAME_RULE, NAMED, AtKey

_SECTIONS: Mapping[str, type[BaseModel]] = {
    "builds": BuildEntry,
    "models": schema.ModelEntry,
    "node_classes": schema.NodeClassEntry,
    "axes": schema.BundleEntry,
    "when": schema.WhenEntry,
    "include": schema.IncludeEntry,
    "exclude": schema.ExcludeEntry,
    "contrasts": schema.ContrastEntry,
    "workloads": schema.WorkloadEntry,
    "prompts": schema.PromptEntry,
    "policy": schema.Policy,
}
_CHECKS: Mapping[str, type[BaseModel]] = {
    "floor": schema.FloorEntry,
    "outputs": schema.OutputsEntry,
    "memory": schema.MemoryEntry,
}
_IN_BUILDS: Mapping[str | int, type[BaseModel]] = {
    "variants": VariantEntry,
    "source": SourceEntry,
    "patches": PatchEntry,
}
_FLAGS = "flags"
_WORDS = {"a valid dictionary": "a table", "a valid list": "a list", "a valid string": "a text"}
"""The validator speaks of Python, users write TOML."""
_PREFIX = "Input should be "
_LONGEST = 60
_NAME_OF_TABLE = "[key]"
"""The validator's last path part where it complains about a table's name and not about its content."""


def schema_problems(invalid: ValidationError, source: Source) -> list[Problem]:
    """Turn the validator's errors into problems, in the file's order of sections."""
    errors: list[dict[str, Any]] = [dict(error) for error in invalid.errors(include_url=False)]
    stray = {error["loc"][:-1] for error in errors if _is_stray_flag(error)}
    return [_problem(error, source) for error in errors if not _follows(error, stray)]


def _is_stray_flag(error: dict[str, Any]) -> bool:
    """Whether a flag stands beside the table of flags that it belongs into."""
    location = error["loc"]
    if error["type"] != "extra_forbidden" or location[-1] not in known_flags():
        return False
    return _FLAGS in _known_keys(location[:-1])


def _follows(error: dict[str, Any], stray: Collection[tuple[str | int, ...]]) -> bool:
    """Whether the table of flags is missing where a flag stands beside it: one fault, not two."""
    *table, key = error["loc"] or ("",)
    return error["type"] == "missing" and key == _FLAGS and tuple(table) in stray


def _problem(error: dict[str, Any], source: Source) -> Problem:
    location: tuple[str | int, ...] = error["loc"]
    where = source.at(*_without_tag(location)) if location else source.file
    if error["type"] == "extra_forbidden":
        return Problem(INVALID, where, f"unknown key {_shown(location[-1])}", _key_hint(error))
    if error["type"] == "missing":
        return Problem(INVALID, where, "the key is missing")
    if error["type"] == "value_error":
        wrong = error["ctx"]["error"]
        inside = wrong.path if isinstance(wrong, AtKey) else ()
        return Problem(INVALID, source.at(*_without_tag((*location, *inside))) if location else where, str(wrong))
    if error["type"] == "union_tag_not_found":
        return Problem(INVALID, f"{where}.kind", "the key is missing", did_you_mean("", _CHECKS))
    if error["type"] == "union_tag_invalid":
        found = str(error["ctx"]["tag"])
        return Problem(INVALID, f"{where}.kind", f"unknown kind '{found}'", did_you_mean(found, _CHECKS))
    return Problem(INVALID, where, _type_message(error), _choice_hint(error))


def _key_hint(error: dict[str, Any]) -> str:
    *table, name = error["loc"]
    if _is_stray_flag(error):
        return f"a flag: put it into {_FLAGS} = {{ {name} = ... }}"
    return did_you_mean(str(name), _known_keys(tuple(table)))


def _type_message(error: dict[str, Any]) -> str:
    if error["loc"] and error["loc"][-1] == _NAME_OF_TABLE:
        return f"a name is made of {NAME_RULE}"
    if error["type"] == "string_pattern_mismatch":
        return f"expected {NAME_RULE}, found {_shown(error['input'])}"
    message: str = error["msg"]
    if message.startswith(_PREFIX):
        wanted = message.removeprefix(_PREFIX).split(" or instance of ")[0]
        return f"expected {_WORDS.get(wanted, wanted)}, found {_shown(error['input'])}"
    if error["type"] in ("too_short", "string_too_short"):
        return "is empty"
    return message


def _choice_hint(error: dict[str, Any]) -> str:
    if error["type"] == "list_type" and error["loc"][0] == "axes":
        return f"an axis lists its values: [{{ name = ..., {_FLAGS} = {{ ... }} }}, ...]"
    if error["type"] != "literal_error" or not isinstance(error["input"], str):
        return ""
    return did_you_mean(error["input"], re.findall(r"'([^']+)'", error["ctx"]["expected"]))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def _without_tag(location: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Leave out what the validator adds to a path: the kind of a check, and which type of a union it tried."""
    depth = 2
    if location[0] == "checks" and len(location) > depth and location[depth] in _CHECKS:
        location = (*location[:depth], *location[depth + 1 :])
    return tuple(part for part in location if part not in (_NAME_OF_TABLE, LISTED, NAMED))


def _known_keys(location: tuple[str | int, ...]) -> tuple[str, ...]:
    """The keys of the table at a place."""
    table: type[BaseModel] = schema.Matrix
    if location:
        table = _SECTIONS.get(str(location[0]), schema.Matrix)
        table = next((_CHECKS[part] for part in location if isinstance(part, str) and part in _CHECKS), table)
        table = schema.FactorEntry if "factors" in location else table
        if location[0] == "builds":
            table = next((_IN_BUILDS[part] for part in reversed(location) if part in _IN_BUILDS), table)
        table = schema.Where if location[-1] in ("where", "reference_arm") else table
    return tuple(table.model_fields)
