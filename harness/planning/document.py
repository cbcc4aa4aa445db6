"""Reading a matrix file: TOML, the files it extends, and paths made independent of where the command was started.

``extends = "base.toml"`` puts a file on top of another: tables are merged key by key, lists of tables are appended to
the base's but for entries that are the same thing there, anything else replaces what the base says. Nothing that is
read is executed.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

from harness import bounded
from harness.domain.errors import BadInput
from harness.domain.suggest import did_you_mean
from harness.pitfalls.catalogue import is_pitfall
from harness.planning.schema import contrast_name
from harness.planning.source import Place, Source

Places: TypeAlias = dict[tuple[str, str | int], Place]

SUFFIX = ".toml"
CHECKOUT_FOLDER = "matrices"

PITFALLS = "pitfalls/"
"""Before the name of a pitfall that comes with the package, where a matrix is named."""

_BARE_NAME = re.compile(rf"({PITFALLS})?[A-Za-z0-9._-]+")
_MAX_DEPTH = 16
_STAND_INS = "stand-ins"
_PATH_KEYS = {"builds": ("path", "recipe"), "models": ("path", "card")}
_PATH_KEYS_OF_LISTS = {"workloads": "profile", "checks": "prompts", "contrasts": "pitfall"}
_FILES = {"card": (".json",), "profile": (".txt", ".md"), "prompts": (".toml",), "pitfall": (".toml",)}
"""How the name of a file ends where a key may also hold another kind of name."""


@dataclass(frozen=True, slots=True)
class Document:
    """The merged keys, and where each was written."""

    data: dict[str, Any]
    source: Source


def read_document(path: Path) -> Document:
    """Read a file and all that it extends.

    Raises:
        BadInput: ``E-matrix-missing``, ``E-matrix-unreadable``, ``E-matrix-syntax`` (with the line) or
            ``E-matrix-extends``.
    """
    data: dict[str, Any] = {}
    places: Places = {}
    for file in reversed(list(_chain(path))):
        layer = _read(file)
        layer.pop("extends", None)
        _resolve_paths(layer, file.parent)
        _merge(data, layer, shown(file), places)
    return Document(data, Source(shown(path), places))


def shown(path: Path) -> str:
    """A path as a person would name it: relative to the current folder where it lies below that."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _chain(path: Path) -> Iterator[Path]:
    """The file, what it extends, what that extends, ..."""
    seen: list[Path] = []
    file = path
    while True:
        if file.resolve() in seen:
            chain = " -> ".join(shown(each) for each in (*seen[seen.index(file.resolve()) :], file.resolve()))
            where = f"{shown(seen[-1])}: extends"
            hint = "take one of these 'extends' out"
            raise BadInput("E-matrix-extends", f"the file extends itself: {chain}", hint=hint, where=where)
        seen.append(file.resolve())
        yield file
        base = _read(file).get("extends")
        if not base:
            return
        if not isinstance(base, str):
            raise BadInput("E-matrix-extends", f"expected a file name, found {base!r}", where=f"{shown(file)}: extends")
        below = _base(file, base)
        if below is None:
            packaged = {found.stem for folder in packaged_folders() for found in folder.glob(f"*{SUFFIX}")}
            hint = did_you_mean(base, packaged)
            message = f"there is no file {base!r}, and no such matrix comes with the package"
            raise BadInput("E-matrix-extends", message, hint=hint, where=f"{shown(file)}: extends")
        file = below


def _base(file: Path, name: str) -> Path | None:
    """What a file extends: a file, relative to it, or the bare name of a matrix that comes with the package."""
    beside = file.parent / name
    if is_file(beside):
        return beside
    if not _BARE_NAME.fullmatch(name):
        return None
    return next(filter(is_file, (folder / f"{name}{SUFFIX}" for folder in packaged_folders())), None)


def packaged_folders() -> tuple[Path, ...]:
    """Where the package keeps its matrices: inside it, or beside it in a checkout."""
    package = Path(str(resources.files("harness")))
    return (package / "_matrices", package.parent / CHECKOUT_FOLDER)


def is_file(path: Path) -> bool:
    """Whether there is such a file; what can't be a path (too long, a null character) is none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _read(path: Path) -> dict[str, Any]:
    try:
        data = bounded.read_toml(path)
    except FileNotFoundError:
        raise BadInput("E-matrix-missing", "there is no such file", where=shown(path)) from None
    except (OSError, UnicodeDecodeError) as failure:
        raise BadInput("E-matrix-unreadable", f"the file can't be read: {failure}", where=shown(path)) from failure
    except tomllib.TOMLDecodeError as failure:
        hint = "TOML texts need quotes; booleans are true and false"
        raise BadInput("E-matrix-syntax", f"not TOML: {failure}", hint=hint, where=shown(path)) from failure
    if _depth(data) > _MAX_DEPTH:
        raise BadInput("E-matrix-syntax", f"not a matrix: tables in tables, {_MAX_DEPTH} deep", where=shown(path))
    return _asking_for(path) if is_pitfall(data) else data


def _asking_for(file: Path) -> dict[str, Any]:
    """The matrix that asks for one pitfall: of stand-ins, which a file that extends it replaces by its own."""
    return {"name": file.stem, "extends": _STAND_INS, "contrasts": [{"pitfall": str(file.absolute())}]}


def _depth(data: dict[str, Any]) -> int:
    """How deep tables and lists lie in one another, not counted further than it matters."""
    depth = 0
    level: list[Any] = [data]
    while level and depth <= _MAX_DEPTH:
        depth += 1
        inside = [value for held in level for value in (held.values() if isinstance(held, dict) else held)]
        level = [value for value in inside if isinstance(value, dict | list)]
    return depth


def _resolve_paths(layer: dict[str, Any], folder: Path) -> None:
    """Paths of builds, models, card files, profiles and prompts are relative to the file that says them."""
    for section, keys in _PATH_KEYS.items():
        entries = layer.get(section)
        for entry in entries.values() if isinstance(entries, dict) else ():
            for key in keys:
                _resolve(entry, key, folder)
            variants = entry.get("variants") if isinstance(entry, dict) else None
            for variant in variants if isinstance(variants, list) else ():
                _resolve(variant, "path", folder)
    for section, key in _PATH_KEYS_OF_LISTS.items():
        listed = layer.get(section)
        for entry in listed if isinstance(listed, list) else ():
            _resolve(entry, key, folder)


def _resolve(entry: Any, key: str, folder: Path) -> None:
    value = entry.get(key) if isinstance(entry, dict) else None
    if isinstance(value, str) and _is_path(key, value):
        entry[key] = os.path.normpath(folder.absolute() / _home_expanded(value))


def _home_expanded(value: str) -> Path:
    try:
        return Path(value).expanduser()
    except RuntimeError:  # no such user, or no home: then it is a folder that begins with ~
        return Path(value)


def _is_path(key: str, value: str) -> bool:
    """A card, a profile and prompts may also be the name of packaged ones."""
    return bool(value) and (key in ("path", "recipe") or "/" in value or value.endswith(_FILES.get(key, ())))


def _merge(data: dict[str, Any], layer: dict[str, Any], file: str, places: Places) -> None:
    for section, value in layer.items():
        below = data.get(section)
        if isinstance(value, list) and isinstance(below, list | None):
            data[section] = _merged_list(section, below or [], value, file, places)
        elif isinstance(value, dict) and isinstance(below, dict | None):
            data[section] = {**(below or {}), **value}
            places.update({(section, key): Place(file) for key in value})
        else:
            data[section] = value


def _merged_list(section: str, below: list[Any], value: list[Any], file: str, places: Places) -> list[Any]:
    """The base's entries, those that the file says anew in their place, and then the file's others."""
    merged = list(below)
    known = {_same_thing(section, entry): index for index, entry in enumerate(below)}
    known.pop("", None)
    for index, entry in enumerate(value):
        at = known.get(_same_thing(section, entry), len(merged))
        merged[at : at + 1] = [entry]
        places[section, at] = Place(file, index)
    return merged


def _same_thing(section: str, entry: Any) -> str:
    """What an entry is about, so that a file can say it anew; empty for what is only ever added."""
    if not isinstance(entry, dict):
        return ""
    if section == "checks" and entry.get("kind") == "memory":
        return f"memory {entry.get('where', {})}"
    name = contrast_name(entry) if section == "contrasts" else entry.get("name")
    return f"name {name}" if name else ""
