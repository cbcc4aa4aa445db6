"""Labelled alerts: a TOML file that is reviewed like code, one block an opinion, only ever added to."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from harness import bounded
from harness.domain.canonical import digest
from harness.domain.errors import BadInput, Infrastructure
from harness.gating.cells import Cell
from harness.gating.words import Finding
from harness.reporting.clean import one_line

_HEAD = """\
# Alerts of the gate and what they turned out to be: moe-harness alerts label adds to it, reviews change it.
# Of two blocks with one id the later one counts.
"""
_ID_CHARS = 10
_MOST_BYTES = 16 * 2**20
"""Some ten thousand opinions."""


class Label(BaseModel):
    """``[[alerts]]``: one opinion on one alert.

    Attributes:
        id: The alert.
        case: The cell.
        contrast: The name of its contrast; empty for others.
        finding: What the gate said.
        label: Whether there was something: a true alert.
        by: Who says so.
        date: When.
        why: How it is known.
        figures: What the gate's reason was.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{6,16}$")]
    case: Annotated[str, Field(min_length=1)]
    contrast: str = ""
    finding: str
    label: bool
    by: Annotated[str, Field(min_length=1)]
    date: date
    why: str = ""
    figures: str = ""


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    alerts: list[Label] = []


def alert_id(cell: Cell, finding: Finding) -> str:
    """An alert's id: the same builds, found to do the same again, are the same alert."""
    ran = sorted(cell.contents.items()) or sorted((arm.label, arm.identity) for arm in cell.case.arms)
    return digest([cell.id, finding.value, ran])[:_ID_CHARS]


def read_labels(path: Path) -> tuple[Label, ...]:
    """The opinions that count, oldest first; none where there is no such file yet.

    Raises:
        BadInput: ``E-gate-labels-unreadable``.
    """
    try:
        found = _File.model_validate(bounded.read_toml(path, _MOST_BYTES))
    except FileNotFoundError:
        return ()
    except ValidationError as invalid:
        first = invalid.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise _unreadable(path, f"{key}: {first['msg']}") from invalid
    except (OSError, ValueError) as failure:
        raise _unreadable(path, f"{failure}") from failure
    last: dict[str, Label] = {}
    for label in found.alerts:
        last.pop(label.id, None)
        last[label.id] = label
    return tuple(sorted(last.values(), key=lambda label: label.date))


def add_labels(path: Path, labels: Sequence[Label]) -> None:
    """Add opinions to a file; it is made if it is not there.

    Raises:
        BadInput: ``E-gate-labels-unreadable``: what is there is no such file, and stays as it is.
        Infrastructure: ``E-gate-labels-unwritable``.
    """
    read_labels(path)
    text = "".join(f"\n{_block(label)}" for label in labels)
    try:
        new = not path.exists()
        with path.open("a", encoding="utf-8") as file:
            file.write((_HEAD if new else "") + text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        message = f"the labels can't be written: {error.strerror or error}"
        raise Infrastructure("E-gate-labels-unwritable", message, where=f"{path}") from error


def _block(label: Label) -> str:
    lines = ["[[alerts]]"]
    for name in Label.model_fields:
        value = getattr(label, name)
        if value == "":
            continue
        # A basic string of TOML is one of JSON, but for surrogates, which a cleaned text does not have.
        text = json.dumps(one_line(value), ensure_ascii=False) if isinstance(value, str) else str(value).lower()
        lines.append(f"{name} = {text}")
    return "\n".join(lines) + "\n"


def _unreadable(path: Path, why: str) -> BadInput:
    hint = "mend it by hand, or take it from the last commit that had it whole"
    return BadInput("E-gate-labels-unreadable", f"no file of labelled alerts: {why}", hint=hint, where=f"{path}")
