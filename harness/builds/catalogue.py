"""The user's catalogue: builds under names of their own, for matrices and commands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, StringConstraints

from harness.builds.entry import BuildEntry
from harness.builds.state_file import StateFile, config_folder
from harness.domain.errors import BadInput
from harness.domain.suggest import did_you_mean

_NAME = r"^[A-Za-z0-9]([._-]?[A-Za-z0-9]+)*$"
_MAX_NAME = 100
BuildName = Annotated[str, StringConstraints(pattern=_NAME, max_length=_MAX_NAME)]


class CatalogueEntry(BaseModel):
    """One build of the catalogue.

    Attributes:
        build: As a matrix would say it.
        added: When.
        told: What was found out about it when it was added, for people.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    build: BuildEntry
    added: AwareDatetime
    told: dict[str, str] = {}


class CatalogueFile(BaseModel):
    """The whole file."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    builds: dict[BuildName, CatalogueEntry] = {}


def catalogue_file() -> StateFile[CatalogueFile]:
    """Where the catalogue is kept."""
    return StateFile(config_folder() / "builds.json", CatalogueFile, "catalogue")


def catalogued(name: str) -> CatalogueEntry:
    """The entry of a name.

    Raises:
        BadInput: ``E-unknown-build`` with the nearest name; ``E-catalogue-unreadable``.
    """
    file = catalogue_file()
    entries = file.read().builds
    if name not in entries:
        hint = did_you_mean(name, entries) or "moe-harness builds add NAME"
        raise BadInput("E-unknown-build", f"the catalogue has no build '{name}'", hint=hint, where=f"{file.path}")
    return entries[name]


def add_build(name: str, build: BuildEntry, told: Mapping[str, str], *, replace: bool = False) -> CatalogueEntry:
    """Put a build into the catalogue.

    Args:
        name: Its name there.
        build: The build.
        told: What was found out about it.
        replace: Whether one of that name may be replaced.

    Raises:
        BadInput: ``E-bad-name``; ``E-duplicate-name`` where the name is taken; ``E-catalogue-unreadable``.
        Infrastructure: ``E-catalogue-busy``; faults of the disk.
    """
    require_name(name)
    entry = CatalogueEntry(build=build, added=datetime.now(UTC), told=dict(told))

    def with_entry(known: CatalogueFile) -> CatalogueFile:
        if name in known.builds and not replace and known.builds[name].build != build:
            raise _taken(name, known.builds[name])
        return known.model_copy(update={"builds": {**known.builds, name: entry}})

    catalogue_file().change(with_entry)
    return entry


def require_name(name: str) -> None:
    """Refuse what can't be a build's name.

    Raises:
        BadInput: ``E-bad-name``.
    """
    if not re.fullmatch(_NAME, name) or len(name) > _MAX_NAME:
        message = f"'{name}' can't be a build's name"
        raise BadInput("E-bad-name", message, hint="letters and digits, with single '.', '_' or '-' between them")


def require_free(name: str, path: str) -> None:
    """Refuse a name that means another build already, before work is done for it.

    Args:
        name: The name.
        path: Where the build will lie.

    Raises:
        BadInput: ``E-duplicate-name`` with what it means; ``E-catalogue-unreadable``.
    """
    known = catalogue_file().read().builds.get(name)
    if known is not None and known.build.path != path:
        raise _taken(name, known)


def _taken(name: str, known: CatalogueEntry) -> BadInput:
    commit = known.told.get("commit", "")
    facts = [str(known.build.fork or ""), f"commit {commit}" if commit else "", f"added {known.added:%Y-%m-%d %H:%M}"]
    message = f"the catalogue has another build '{name}' ({', '.join(filter(None, facts))})"
    hint = "choose another name, or say --replace to take its place; `moe-harness builds list` has all names"
    return BadInput("E-duplicate-name", message, hint=hint)
