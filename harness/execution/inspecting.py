"""Ask builds what they know: their ``--help``, read once as long as the program is the same file."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from harness.domain.build import Build
from harness.domain.errors import BadInput
from harness.engines.bench import BenchEngine
from harness.engines.engine import Command, Engine
from harness.engines.registry import engine_for
from harness.execution.process import ProcessSpec, clean_environment, run_once

_HELP_TIMEOUT_S = 60.0


def informed_engine(build: Build) -> Engine:
    """The engine of a build; one that is given by path knows what the program's ``--help`` lists.

    Raises:
        BadInput: If the build is not there, or cannot be started.
    """
    engine = engine_for(build)
    if not isinstance(engine, BenchEngine):
        return engine
    (program, *_) = engine.locate()
    state = program.stat()
    return engine.informed(_help_text(engine.help_command(), state.st_mtime_ns, state.st_size))


def known_options(builds: Iterable[Build]) -> dict[str, frozenset[str]]:
    """Options that builds list, by build; those that are not on this machine are left out: nothing is known of them."""
    found = {}
    for build in builds:
        try:
            engine = informed_engine(build)
        except BadInput:
            continue
        if isinstance(engine, BenchEngine) and engine.options:
            found[build.name] = engine.options
    return found


@lru_cache(maxsize=64)
def _help_text(command: Command, mtime_ns: int, size: int) -> str:
    """What a program prints for ``--help``; its file's time and size make a new build another question."""
    del mtime_ns, size
    result = run_once(
        ProcessSpec(argv=command.argv, env=clean_environment(dict(command.environment)), timeout_s=_HELP_TIMEOUT_S)
    )
    return result.stdout + result.stderr
