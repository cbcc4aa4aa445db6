"""What is known of a build's source without running anything: what is said, and what its folder tells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from harness.builds.cmake_cache import compilation_of
from harness.builds.provenance import provenance_of
from harness.domain.build import Build
from harness.domain.errors import BadInput
from harness.engines.bench import BenchEngine


@dataclass(frozen=True, slots=True)
class KnownSource:
    """Commit and number of a build, as far as they are known.

    Attributes:
        commit: The commit or its beginning; empty where it is not known.
        number: The build number; ``None`` where it is not known.
    """

    commit: str = ""
    number: int | None = None


@lru_cache(maxsize=256)
def known_source(build: Build) -> KnownSource:
    """Look at what the matrix says, then at the build folder of a build by path."""
    said = KnownSource(build.source.commit, build.source.number) if build.source else KnownSource()
    if not build.path or (said.commit and said.number is not None):
        return said
    told = _told(build)
    return KnownSource(said.commit or told.commit, told.number if said.number is None else said.number)


def _told(build: Build) -> KnownSource:
    try:
        program = Path(BenchEngine(build).locate()[0])
    except BadInput:
        return KnownSource()
    made, told = provenance_of(program.parent), compilation_of(program).told
    number = (made.number if made else "") or told.get("number", "")
    return KnownSource((made.commit if made else "") or told.get("commit", ""), int(number) if number else None)
