"""What a build's files are on this machine, as digests: a name, a path and even a folder stay while these change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.builds.entry import BuildEntry
from harness.domain.build import Build, Fork
from harness.domain.canonical import digest
from harness.domain.errors import BadInput
from harness.engines.registry import engine_for
from harness.models.hashing import file_sha256


def contents_of(entry: BuildEntry) -> dict[str, str]:
    """The digest of what lies at each path and in each wheel of an entry, by path or name of the wheel.

    What is not on this machine is left out, and so are archives: their digests are in the entry.
    """
    found = {}
    for build in _local(entry):
        try:
            files = sorted(str(path) for path in engine_for(build).locate())
            found[build.path or build.wheel] = digest([[file, file_sha256(Path(file))] for file in files])
        except BadInput:
            continue
    return found


def changed_since(known: Mapping[str, str], entry: BuildEntry) -> tuple[str, ...]:
    """Paths and wheels of an entry that are something else than they were.

    Args:
        known: What `contents_of` gave then.
        entry: The entry.
    """
    now = contents_of(entry)
    return tuple(place for place, content in known.items() if now.get(place, content) != content)


def _local(entry: BuildEntry) -> Iterator[Build]:
    fork = Fork(entry.fork or Fork.LLAMA_CPP)
    places = [(entry.path, entry.wheel), *((variant.path, variant.wheel) for variant in entry.variants)]
    for path, wheel in places:
        if path or wheel:
            yield Build("content", fork, path=path, wheel=wheel)
