"""From a build as it is written down to the domain's: recipes are read, names looked up in the catalogue."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.builds.baselines import entry_of_word
from harness.builds.entry import BuildEntry, SourceEntry
from harness.builds.recipe_file import read_recipe
from harness.domain.build import Build, BuildSource
from harness.domain.errors import BadInput


def declared_build(name: str, entry: BuildEntry) -> Build:
    """The domain's build.

    Args:
        name: What it is called from now on.
        entry: How it is written down.

    Raises:
        BadInput: ``E-unknown-build``, ``E-no-baseline``, ``E-wrong-fork``, ``E-untrusted-recipe``, faults of a recipe
            or of the catalogue.
    """
    build = _declared(name, entry)
    if build.recipe and not build.trusted:
        message = "an untrusted build can't have a recipe: its commands would run here with your rights"
        hint = "make it on a machine where nothing is at stake, and give its files as path or variants"
        raise BadInput("E-untrusted-recipe", message, hint=hint)
    return build


def _declared(name: str, entry: BuildEntry) -> Build:
    if entry.catalogue:
        build = catalogued_build(entry.catalogue, name)
        build = replace(build, trusted=build.trusted and entry.trusted)
        return replace(build, source=_beside(build.source, entry.source)) if entry.source else build
    build = entry.build(name)
    if not entry.recipe:
        return build
    fork, recipe = read_recipe(Path(entry.recipe))
    if entry.fork is not None and entry.fork != fork:
        message = f"the recipe {entry.recipe} makes {fork}, the build is declared as {entry.fork}"
        raise BadInput("E-wrong-fork", message, hint=f'write fork = "{fork}", or leave it out')
    return replace(build, fork=fork, recipe=recipe)


def catalogued_build(word: str, name: str = "") -> Build:
    """A build of the catalogue.

    Args:
        word: Its name there, or ``@main`` for the baseline of the branch main.
        name: What it is called from now on; without it, its name in the catalogue.

    Raises:
        BadInput: As `entry_of_word`; faults of a recipe or of the catalogue.
    """
    found, entry = entry_of_word(word)
    return declared_build(name or found, entry.build)


def _beside(catalogued: BuildSource | None, said: SourceEntry) -> BuildSource:
    """What the catalogue says of a source, with what is said beside it in its place."""
    source = said.source
    return replace(catalogued or BuildSource(), **{key: getattr(source, key) for key in said.model_fields_set})
