"""Ask builds what they know: their ``--help``, read once as long as its files are the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from pathlib import Path

from harness.builds.known import KnownSource, source_of_folder
from harness.builds.version import Version, told_version
from harness.domain.build import Build, Fork
from harness.domain.errors import BadInput
from harness.engines.bench import BenchEngine
from harness.engines.bench_help import help_flags, identify_fork
from harness.engines.engine import Command, Engine
from harness.engines.own_program import OwnProgram
from harness.engines.perplexity_engine import PerplexityEngine
from harness.engines.programs import with_libraries
from harness.engines.registry import engine_for
from harness.engines.served_engine import ServedEngine
from harness.execution.bubblewrap import Sandbox
from harness.execution.builds import present_build, run_call
from harness.execution.process import ProcessSpec, clean_environment, run_once
from harness.execution.sandbox import asking_sandbox

_HELP_TIMEOUT_S = 60.0


def informed_engine(build: Build, environment: Mapping[str, str] | None = None) -> Engine:
    """The engine of a build; one that is given by path knows what the program's ``--help`` lists.

    A program that lists nothing (a library is missing, it crashes, it hangs) stays unasked: the first process that is
    to measure tells why, in full.

    Args:
        build: The build.
        environment: Variables that its processes get.

    Raises:
        BadInput: If the build is not there, or cannot be started.
    """
    engine = engine_for(build)
    if not isinstance(engine, BenchEngine):
        return engine
    text = _told_help(engine, build, environment)
    return engine.informed(text) if help_flags(text) else engine


def answering_engine(build: Build, environment: Mapping[str, str] | None = None) -> Engine:
    """The engine of a build that answers requests; one that is given by path knows what its server's ``--help`` lists.

    Args:
        build: The build.
        environment: Variables that its processes get.

    Raises:
        BadInput: If the build or its server is not there, or cannot be started.
    """
    if not build.path:
        return engine_for(build)
    engine = ServedEngine(build)
    return engine.informed(_told_help(engine, build, environment))


def evaluating_engine(build: Build, environment: Mapping[str, str] | None = None) -> PerplexityEngine:
    """The engine of a build by path that evaluates prompts and generates nothing; it knows its program's ``--help``.

    Args:
        build: A build given by path.
        environment: Variables that its processes get.

    Raises:
        BadInput: If the build or its program is not there, or cannot be started.
    """
    engine = PerplexityEngine(build)
    return engine.informed(_told_help(engine, build, environment))


def told_fork(build: Build, environment: Mapping[str, str] | None = None) -> tuple[Fork | None, str]:
    """The fork that the ``--help`` of a ``llama-bench`` tells, whatever the build is declared as.

    Args:
        build: A build given by path.
        environment: Variables that its processes get.

    Returns:
        The fork, ``None`` where none can be told; and all that the program printed.

    Raises:
        BadInput: If the build is not there, cannot be started, or is another program.
    """
    engine = BenchEngine(build)
    text = _told_help(engine, build, environment)
    fork = identify_fork(text)
    if fork is None:
        engine.informed(text).locate()
    return fork, text


def known_options(builds: Iterable[Build], environment: Mapping[str, str] | None = None) -> dict[str, frozenset[str]]:
    """Options that builds list, by build.

    Those that are not on this machine, or not what they are declared as, are left out: nothing is known of them.
    Nothing is fetched or made to know more.

    Args:
        builds: The builds.
        environment: Variables that their processes get.
    """
    found = {}
    for build in builds:
        try:
            here = present_build(build)
            if here is None:
                continue
            engine = informed_engine(here, environment)
            engine.locate()
        except BadInput:
            continue
        if isinstance(engine, BenchEngine) and engine.options:
            found[build.name] = engine.options
    return found


def told_source(build: Build, environment: Mapping[str, str] | None = None) -> KnownSource:
    """Commit and number of a build as its files on this machine tell them: its folder, and ``--version``.

    Nothing is fetched or made to know more; nothing is known of a build that is not here.

    Args:
        build: The build.
        environment: Variables that its programs get.
    """
    try:
        here = present_build(build)
        if here is None or not here.path:
            return KnownSource()
        engine = BenchEngine(here)
        sandbox = asking_sandbox(here, engine.locate(), environment)
        told = _version(engine.locate()[0], tuple(sorted((environment or {}).items())), _states(engine), sandbox)
    except BadInput:
        return KnownSource()
    number = int(told.number) if told.number else None
    return source_of_folder(here).filled(KnownSource(told.commit, number))


@lru_cache(maxsize=64)
def _version(
    program: Path,
    environment: tuple[tuple[str, str], ...],
    states: tuple[tuple[int, int], ...],
    sandbox: Sandbox | None,
) -> Version:
    """Times and sizes of its files make a new build another question."""
    del states
    return told_version(program, with_libraries(program, dict(environment)), partial(run_call, sandbox=sandbox))


def _states(engine: Engine | OwnProgram) -> tuple[tuple[int, int], ...]:
    return tuple((state.st_mtime_ns, state.st_size) for state in (file.stat() for file in engine.locate()))


def _told_help(engine: BenchEngine | OwnProgram, build: Build, environment: Mapping[str, str] | None) -> str:
    sandbox = asking_sandbox(build, engine.locate(), environment)
    return _help_text(engine.help_command(environment), _states(engine), sandbox)


@lru_cache(maxsize=64)
def _help_text(command: Command, states: tuple[tuple[int, int], ...], sandbox: Sandbox | None) -> str:
    """What a program prints for ``--help``; times and sizes of its files make a new build another question."""
    del states
    environment = clean_environment(dict(command.environment))
    result = run_once(ProcessSpec(command.argv, environment, _HELP_TIMEOUT_S, sandbox=sandbox))
    return result.stdout + result.stderr
