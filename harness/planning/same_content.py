"""Two names for one thing: a contrast of them would be refused once it has run, so it is refused before.

Only what is known without running, fetching or reading a whole model: the same wheel, recipe or archive, one file by
two paths, programs with equal bytes, equal digests of models.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.domain.build import Build
from harness.domain.errors import BadInput
from harness.domain.model import Model
from harness.engines.registry import engine_for
from harness.models.hashing import file_sha256


def same_build(first: Build, second: Build) -> str:
    """What two builds both are, in words; empty where they are not known to be one."""
    if first.wheel and first.wheel == second.wheel:
        return f"the wheel {first.wheel}"
    if first.recipe and second.recipe and _made_of(first) == _made_of(second):
        return f"made of {first.recipe.repository} by one recipe"
    if first.variants and _variants(first) == _variants(second):
        return "the same files"
    return _same_files(_files(first), _files(second)) if first.path and second.path else ""


def same_model(first: Model, second: Model) -> str:
    """What two models both are, in words; empty where they are not known to be one."""
    if first.sha256 and first.sha256 == second.sha256:
        return f"the file with the digest {first.sha256[0]}"
    if first.path and second.path and Path(first.path).resolve() == Path(second.path).resolve():
        return f"{Path(first.path).resolve()}"
    if first.card and (first.card, first.quant) == (second.card, second.quant):
        return f"{first.quant} of the card {first.card}"
    return ""


def _made_of(build: Build) -> tuple[object, ...]:
    recipe = build.recipe
    return (recipe.identity, recipe.repository, recipe.revision, recipe.merge_base) if recipe else ()


def _variants(build: Build) -> list[tuple[object, ...]]:
    return [(each.platform, each.wheel, each.sha256 or Path(each.path).resolve()) for each in build.variants]


def _files(build: Build) -> tuple[Path, ...]:
    """The program and its libraries; nothing where they are not here."""
    try:
        return tuple(sorted(Path(file).resolve() for file in engine_for(build).locate()))
    except BadInput:
        return ()


def _same_files(first: Sequence[Path], second: Sequence[Path]) -> str:
    if not first or _outline(first) != _outline(second):
        return ""
    if first == second:
        return f"{first[0]}"
    alike = all(file_sha256(mine) == file_sha256(theirs) for mine, theirs in zip(first, second, strict=True))
    return f"the same bytes, at {first[0]} and {second[0]}" if alike else ""


def _outline(files: Sequence[Path]) -> list[tuple[str, int]]:
    """Names and sizes: where these differ nothing has to be read."""
    return [(file.name, file.stat().st_size) for file in files]
