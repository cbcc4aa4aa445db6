"""Read a policy file: what is wrong with it is said with the key, all at once."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from harness import bounded
from harness.domain.errors import BadInput
from harness.domain.suggest import did_you_mean
from harness.gating import policy
from harness.gating.policy import Policy
from harness.planning.problems import Problem, report
from harness.planning.source import Source

_INVALID = "E-gate-policy-invalid"
_TABLES: Mapping[str, type[BaseModel]] = {
    "missing": policy.MissingEntry,
    "cells": policy.CellsEntry,
    "promotion": policy.PromotionEntry,
    "limits": policy.LimitsEntry,
    "trades": policy.TradeEntry,
    "waivers": policy.WaiverEntry,
    "paths": policy.PathsEntry,
}
_STEPS = ("warn", "block")
_WORDS = {"a valid dictionary": "a table", "a valid list": "a list", "a valid string": "a text"}
_PREFIX = "Input should be "
_LONGEST = 60


def read_policy(path: Path) -> Policy:
    """Read a policy.

    Raises:
        BadInput: ``E-gate-policy-missing``, ``E-gate-policy-unreadable``, ``E-gate-policy-syntax`` (with the line), or
            ``E-gate-policy-invalid`` with every fault.
    """
    try:
        data = bounded.read_toml(path)
    except FileNotFoundError:
        hint = "the reference has a complete one; without --policy the default holds"
        raise BadInput("E-gate-policy-missing", "there is no such file", hint=hint, where=f"{path}") from None
    except (OSError, UnicodeDecodeError) as failure:
        message = f"the policy can't be read: {failure}"
        raise BadInput("E-gate-policy-unreadable", message, where=f"{path}") from failure
    except tomllib.TOMLDecodeError as failure:
        hint = "TOML texts need quotes; booleans are true and false"
        raise BadInput("E-gate-policy-syntax", f"not TOML: {failure}", hint=hint, where=f"{path}") from failure
    try:
        return Policy.model_validate(data)
    except ValidationError as invalid:
        source = Source(f"{path}")
        problems = [_problem(dict(error), source) for error in invalid.errors(include_url=False)]
        raise _as_invalid(report(f"{path}", problems)) from invalid


def _as_invalid(found: BadInput) -> BadInput:
    return BadInput(_INVALID, found.message, hint=found.hint, where=found.where)


def _problem(error: dict[str, Any], source: Source) -> Problem:
    location: tuple[str | int, ...] = error["loc"]
    where = source.at(*location)
    if error["type"] == "extra_forbidden":
        *table, name = location
        return Problem(
            _INVALID, where, f"unknown key '{name}'", did_you_mean(str(name), _keys(tuple(table)).model_fields)
        )
    if error["type"] == "missing":
        return Problem(_INVALID, where, "the key is missing")
    if error["type"] == "value_error":
        return Problem(_INVALID, where, str(error["ctx"]["error"]), _nearest(error))
    if error["type"] in ("too_short", "string_too_short"):
        return Problem(_INVALID, where, "is empty")
    return Problem(_INVALID, where, _message(error), _nearest(error))


def _message(error: dict[str, Any]) -> str:
    message: str = error["msg"]
    if not message.startswith(_PREFIX):
        return message
    wanted = message.removeprefix(_PREFIX).split(" or instance of ")[0]
    shown = repr(error["input"])
    shown = shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "..."
    return f"expected {_WORDS.get(wanted, wanted)}, found {shown}{_unquoted(error)}"


def _unquoted(error: dict[str, Any]) -> str:
    """How a day is written that stands in quotes."""
    if error["type"] != "date_type" or not isinstance(error["input"], str):
        return ""
    try:
        day = date.fromisoformat(error["input"].strip())
    except ValueError:
        return ": a day is written without quotes, e.g. 2030-01-31"
    return f": write it without quotes: {error['loc'][-1]} = {day.isoformat()}"


def _nearest(error: dict[str, Any]) -> str:
    """Where one of some words was expected, the nearest."""
    said = str(error.get("ctx", {}).get("expected", ""))
    choices = re.findall(r"'([^']+)'", said)
    if not choices and error["type"] == "value_error":
        listed = re.search(r"one of ([a-z_, ]+)", str(error["ctx"]["error"]))
        choices = listed[1].split(", ") if listed else []
    return did_you_mean(error["input"], choices) if choices and isinstance(error["input"], str) else ""


def _keys(table: tuple[str | int, ...]) -> type[BaseModel]:
    """The table at a place."""
    if not table:
        return Policy
    if table[0] == "promotion" and table[-1] in _STEPS:
        return policy.StepEntry
    return _TABLES.get(str(table[0]), Policy)
