"""Conditions on facts of builds become conditions on their names: nothing that comes later has to know the facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias, TypeVar

from harness.builds.known import KnownSource, KnownSources
from harness.builds.provenance import commit_differs
from harness.domain.build import Build
from harness.planning.schema import (
    Condition,
    ContrastEntry,
    FloorEntry,
    Matrix,
    MemoryEntry,
    OutputsEntry,
    WorkloadEntry,
)

SomeCondition = TypeVar("SomeCondition", bound=Condition)
Conditioned: TypeAlias = ContrastEntry | WorkloadEntry | FloorEntry | OutputsEntry | MemoryEntry


def asked_builds(condition: Condition, builds: Mapping[str, Build]) -> list[Build]:
    """The builds that a condition leaves by name and fork: their facts have to be known."""
    return [
        build
        for name, build in builds.items()
        if (condition.build is None or name in condition.build)
        and (condition.fork is None or build.fork in condition.fork)
    ]


def with_builds_named(matrix: Matrix, builds: Mapping[str, Build], sources: KnownSources) -> Matrix:
    """The matrix with the names of the builds that are meant in place of every ``build_number`` and ``commit``.

    Args:
        matrix: The matrix.
        builds: Its builds, by name.
        sources: What is known of them. What is not known does not meet a condition; `load_matrix` refuses it.
    """

    def known(build: Build) -> KnownSource:
        return sources.of(build, matrix.builds[build.name], matrix.environment)

    def named(condition: SomeCondition) -> SomeCondition:
        if condition.build_number is None and condition.commit is None:
            return condition
        names = tuple(build.name for build in asked_builds(condition, builds) if _meets(condition, known(build)))
        return condition.model_copy(update={"build": names, "build_number": None, "commit": None})

    def placed(entries: Iterable[Conditioned]) -> list[Conditioned]:
        return [entry.model_copy(update={"where": named(entry.where)}) for entry in entries]

    return matrix.model_copy(
        update={
            "when": [named(entry) for entry in matrix.when],
            "exclude": [named(entry) for entry in matrix.exclude],
            "contrasts": placed(matrix.contrasts),
            "workloads": placed(matrix.workloads),
            "checks": placed(matrix.checks),
        }
    )


def _meets(condition: Condition, known: KnownSource) -> bool:
    if condition.build_number is not None and (known.number is None or known.number not in condition.build_number):
        return False
    return condition.commit is None or any(
        known.commit and not commit_differs(commit, known.commit) for commit in condition.commit
    )
