"""The pitfalls that come with the package, and files of one's own."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from harness import bounded
from harness.domain.errors import BadInput
from harness.domain.suggest import did_you_mean
from harness.pitfalls.entry import Pitfall

SUFFIX = ".toml"
_FOLDER = "pitfalls"
_MARKS = frozenset({"id", "effect", "sources"})


@cache
def packaged_pitfalls() -> Mapping[str, Pitfall]:
    """All pitfalls of the package by id, in the order of their names.

    Raises:
        BadInput: As `read_pitfall`.
    """
    found = [read_pitfall(file) for file in sorted(pitfall_folder().glob(f"*{SUFFIX}"))]
    return MappingProxyType({pitfall.id: pitfall for pitfall in found})


def pitfall_folder() -> Path:
    """Where the package keeps them: inside it, or beside it in a checkout."""
    package = Path(str(resources.files("harness")))
    inside = package / "_matrices" / _FOLDER
    return inside if inside.is_dir() else package.parent / "matrices" / _FOLDER


def pitfall_named(word: str) -> Pitfall:
    """A pitfall by its id, or by the path of a file of one's own.

    Raises:
        BadInput: ``E-unknown-pitfall``, or what is wrong with the file.
    """
    if word.endswith(SUFFIX):
        return read_pitfall(Path(word))
    known = packaged_pitfalls()
    if word not in known:
        raise BadInput("E-unknown-pitfall", f"there is no pitfall '{word}'", hint=did_you_mean(word, known))
    return known[word]


def is_pitfall(data: Mapping[str, Any]) -> bool:
    """Whether the keys of a TOML file are those of a pitfall, and not of a matrix."""
    return data.keys() >= _MARKS


def read_pitfall(file: Path) -> Pitfall:
    """Read a pitfall's file.

    Raises:
        BadInput: ``E-pitfall-missing``, ``E-pitfall-syntax``, ``E-pitfall-invalid``, with file and key.
    """
    try:
        data = bounded.read_toml(file)
        pitfall = Pitfall.model_validate(data)
    except FileNotFoundError:
        raise BadInput("E-pitfall-missing", "there is no such file", where=f"{file}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as failure:
        raise BadInput("E-pitfall-syntax", f"not a TOML file: {failure}", where=f"{file}") from failure
    except ValidationError as invalid:
        raise BadInput("E-pitfall-invalid", _faults(invalid), where=f"{file}") from invalid
    if pitfall.id != file.stem:
        message = f"id '{pitfall.id}' is not the name of the file"
        raise BadInput("E-pitfall-invalid", message, hint=f"call it {pitfall.id}{SUFFIX}", where=f"{file}: id")
    return pitfall


def _faults(invalid: ValidationError) -> str:
    """Every fault with its key."""
    return "; ".join(
        f"{'.'.join(map(str, error['loc'])) or 'the file'}: {error['msg'].removeprefix('Value error, ')}"
        for error in invalid.errors(include_url=False, include_context=False, include_input=False)
    )
