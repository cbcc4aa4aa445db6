"""What is known of a build's source where a matrix is planned: commit and number, for conditions."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from harness.builds.baselines import entry_of_word
from harness.builds.cmake_cache import compilation_of
from harness.builds.entry import BuildEntry
from harness.builds.provenance import provenance_of
from harness.domain.build import Build
from harness.domain.errors import BadInput
from harness.engines.bench import BenchEngine
from harness.engines.embedded.errors import EmbeddedError
from harness.engines.embedded.layouts import find_layout


@dataclass(frozen=True, slots=True)
class KnownSource:
    """Commit and number of a build, as far as they are known.

    Attributes:
        commit: The commit or its beginning; empty where it is not known.
        number: The build number; ``None`` where it is not known.
    """

    commit: str = ""
    number: int | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing is left to find out."""
        return bool(self.commit) and self.number is not None

    def filled(self, other: KnownSource) -> KnownSource:
        """It, and what it lacks from another source."""
        return KnownSource(self.commit or other.commit, other.number if self.number is None else self.number)


Look: TypeAlias = Callable[[Build, Mapping[str, str]], KnownSource]
"""Finds out what the files of a build tell; the variables are what its programs get."""


def source_of_folder(build: Build, environment: Mapping[str, str] | None = None) -> KnownSource:
    """What the build folder of a build by path tells; nothing is run."""
    del environment
    try:
        program = Path(BenchEngine(build).locate()[0]) if build.path else None
    except BadInput:
        program = None
    if program is None:
        return KnownSource()
    made, told = provenance_of(program.parent), compilation_of(program).told
    number = (made.number if made else "") or told.get("number", "")
    return KnownSource((made.commit if made else "") or told.get("commit", ""), int(number) if number else None)


def source_of_wheel(build: Build) -> KnownSource:
    """What the installed version of a build's wheel was made of; nothing is known of versions that nobody verified."""
    try:
        layout = find_layout(build.fork, importlib.metadata.version(build.wheel)) if build.wheel else None
    except (importlib.metadata.PackageNotFoundError, EmbeddedError):
        layout = None
    return KnownSource(layout.commit, layout.number) if layout else KnownSource()


class KnownSources:
    """Commits and numbers of a matrix's builds, each looked for once, and only where somebody asks.

    In this order: what the matrix says, what the build's files tell, what was found out when it was put into the
    catalogue, and, of a wheel, what its verified version was made of.

    Args:
        look: Finds out what the files of a build tell, if it has some on this machine.
    """

    def __init__(self, look: Look = source_of_folder) -> None:
        self._look = look
        self._known: dict[Build, KnownSource] = {}

    def of(self, build: Build, entry: BuildEntry, environment: Mapping[str, str]) -> KnownSource:
        """What is known of a build.

        Args:
            build: The build.
            entry: How the matrix declares it.
            environment: Variables that its programs get, should they be asked.
        """
        if build not in self._known:
            found = KnownSource(build.source.commit, build.source.number) if build.source else KnownSource()
            found = found if found.complete else found.filled(self._look(build, environment))
            found = found if found.complete else found.filled(_told_by_catalogue(entry))
            found = found if found.complete else found.filled(source_of_wheel(build))
            self._known[build] = found
        return self._known[build]


def _told_by_catalogue(entry: BuildEntry) -> KnownSource:
    told = entry_of_word(entry.catalogue)[1].told if entry.catalogue else {}
    number = told.get("build number", "")
    commit = told.get("commit", "").split(" ")[0]  # it may be said to have changes
    return KnownSource(commit, int(number) if number.isdecimal() else None)
