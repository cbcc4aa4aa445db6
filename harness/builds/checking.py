"""A build against what the matrix says it is made of: one message that names both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.builds.cmake_cache import compilation_of, same_value
from harness.builds.provenance import commit_differs, provenance_of
from harness.builds.recognising import Recognised
from harness.domain.build import Build, BuildSource
from harness.domain.errors import BadInput
from harness.engines.bench import BenchEngine


def require_as_said(build: Build, found: Recognised) -> None:
    """Refuse a build that is something else than the matrix says. What it does not tell is not held against it.

    Args:
        build: The build, as declared.
        found: What was found out about it.

    Raises:
        BadInput: ``E-build-mismatch`` with what was said and what was found.
    """
    if build.source is None:
        return
    differences = list(_differences(build.source, found))
    if differences:
        raise BadInput(
            "E-build-mismatch",
            f"build '{build.name}' ({found.program}) is not what is said: {'; '.join(differences)}",
            hint="give the build that was meant, or correct [builds.X.source]; `moe-harness builds show` tells more",
            where=f"builds.{build.name}.source",
        )


def told_otherwise(build: Build) -> str:
    """What a build's folder tells against what is said of it; empty if nothing. Nothing is run: a run asks for more.

    Args:
        build: The build, as declared; of one that is not here as files nothing is known.
    """
    if build.source is None or not build.path:
        return ""
    try:
        program = Path(BenchEngine(build).locate()[0])
    except BadInput:
        return ""
    compiled, made = compilation_of(program), provenance_of(program.parent)
    reported = made.reported if made else compiled.told.get("commit", "")
    found = Recognised(
        program=program,
        programs={},
        commit=made.commit if made else reported,
        reported=reported,
        number=made.number if made else compiled.told.get("number", ""),
        compiler=made.compiler if made else compiled.told.get("compiler", ""),
        options=compiled.options,
        provenance=made,
    )
    return "; ".join(_differences(build.source, found))


def _differences(said: BuildSource, found: Recognised) -> Iterator[str]:
    yield from _revision(said, found)
    if said.backends and found.backends is not None and said.backends != found.backends:
        yield f"backends {', '.join(said.backends)} were said, it has {', '.join(found.backends)}"
    if said.blas and found.blas and said.blas.lower() != found.blas:
        yield f"BLAS {said.blas} was said, it has {found.blas}"
    if said.compiler and found.compiler and said.compiler.lower() not in found.compiler.lower():
        yield f"compiler {said.compiler} was said, it was compiled with {found.compiler}"
    yield from _compilation(said, found)
    yield from _patches(said, found)


def _compilation(said: BuildSource, found: Recognised) -> Iterator[str]:
    for name, value in said.cmake:
        if found.options and name not in found.options:
            yield f"{name}={value} was said, its CMakeCache.txt does not have it"
        elif found.options and not same_value(value, found.options[name]):
            yield f"{name}={value} was said, it was compiled with {name}={found.options[name]}"
    for library in said.libraries:
        if found.libraries and not any(name.startswith(library) for name in found.libraries):
            yield f"library {library} was said, it loads {', '.join(sorted(found.libraries))}"


def _revision(said: BuildSource, found: Recognised) -> Iterator[str]:
    if commit_differs(said.commit, found.commit):
        yield f"commit {said.commit} was said, it is of {found.commit}"
    elif commit_differs(said.commit, found.reported):
        yield f"commit {said.commit} was said, its programs report {found.reported}"
    if said.number is not None and found.number and str(said.number) != found.number:
        yield f"build number {said.number} was said, it has {found.number}"


def _patches(said: BuildSource, found: Recognised) -> Iterator[str]:
    """Only a build that a recipe of ours made tells its patches."""
    if found.provenance is None or not said.patches:
        return
    wanted = [patch.sha256 for patch in said.patches]
    applied = [patch.sha256 for patch in found.provenance.patches]
    if wanted != applied:
        names = ", ".join(patch.name for patch in found.provenance.patches) or "none"
        yield f"patches {', '.join(patch.name for patch in said.patches)} were said, it was made with {names}"
