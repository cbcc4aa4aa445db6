"""Which engine measures with a build."""

from __future__ import annotations

import re

from harness.domain.build import Build, Fork
from harness.domain.errors import BadInput
from harness.domain.suggest import did_you_mean
from harness.engines.bench import BenchEngine
from harness.engines.embedded_engine import EmbeddedEngine, wheels
from harness.engines.engine import Engine

_SEPARATORS = re.compile(r"[-_.]+")


def engine_for(build: Build, *, help_text: str = "") -> Engine:
    """The engine of a build.

    Args:
        build: By wheel or by path.
        help_text: What ``--help`` of a build by path printed, where it was read.

    Raises:
        BadInput: ``E-unknown-wheel``; ``E-wrong-fork`` for a wheel of the other fork; ``E-build-ambiguous`` where not
            exactly one of wheel and path is given.
    """
    if bool(build.wheel) == bool(build.path):
        said = "both wheel and path" if build.wheel else "neither wheel nor path"
        raise BadInput("E-build-ambiguous", f"got {said}, expected exactly one", where=f"builds.{build.name}")
    if build.path:
        return BenchEngine(build, help_text)
    _require_wheel_of_fork(build)
    return EmbeddedEngine(build)


def _require_wheel_of_fork(build: Build) -> None:
    where = f"builds.{build.name}.wheel"
    fork = wheels().get(_SEPARATORS.sub("-", build.wheel).lower())
    if fork is None:
        hint = did_you_mean(build.wheel, wheels())
        raise BadInput("E-unknown-wheel", f"no engine is known for the wheel '{build.wheel}'", hint=hint, where=where)
    if Fork(fork) is not build.fork:
        message = f"the wheel '{build.wheel}' is of {fork}, the build is declared as {build.fork}"
        raise BadInput("E-wrong-fork", message, hint=f'write fork = "{fork}"', where=where)
