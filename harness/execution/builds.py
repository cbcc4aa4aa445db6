"""Builds on this node: the variant that fits, fetched; the recipe, made; and refused where it is something else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

from harness.builds.calls import Call, Ended
from harness.builds.checking import require_as_said
from harness.builds.choosing import as_variant, choose_variant
from harness.builds.fetching import fetched, in_cache, note_use
from harness.builds.making import Bench, known_place, made_build
from harness.builds.provenance import provenance_of
from harness.builds.recognising import Recognised, missing_libraries, recognise
from harness.domain.build import Build
from harness.domain.errors import BadInput
from harness.domain.halting import ShouldStop, Stopped, never
from harness.domain.node import NodeFacts
from harness.engines.bench import BenchEngine
from harness.execution.bubblewrap import Sandbox
from harness.execution.node import probe_node
from harness.execution.process import ProcessResult, ProcessSpec, Supervisor, clean_environment
from harness.execution.sandbox import asking_sandbox

Report = Callable[[str], None]


def run_call(call: Call, should_stop: ShouldStop = never, sandbox: Sandbox | None = None) -> Ended:
    """Run a program for `harness.builds`, under a supervisor of its own and perhaps in a sandbox.

    Raises:
        Stopped: It was told to stop; the program has ended.
    """
    spec = ProcessSpec(
        argv=call.argv,
        env=clean_environment(call.environment),
        timeout_s=call.timeout_s,
        cwd=str(call.folder) if call.folder else None,
        sandbox=sandbox,
    )
    with Supervisor() as supervisor:
        result = supervisor.run(spec, on_stdout_line=call.on_line, should_stop=should_stop)
    if result.stopped:
        raise Stopped
    return Ended(_how(result, call.timeout_s), result.stdout, result.stderr)


def local_build(
    build: Build,
    *,
    report: Report = lambda _: None,
    node: NodeFacts | None = None,
    should_stop: ShouldStop = never,
) -> Build:
    """The build as files of this node: its variant is chosen and fetched, its recipe made.

    Args:
        build: As declared.
        report: Told what is going on.
        node: Facts of this node; probed where they are needed and not given.
        should_stop: Ends the making or fetching, with nothing half-made.

    Returns:
        A build by wheel or path; the same where it was one already.

    Raises:
        BadInput: ``E-no-variant``, ``E-digest-mismatch``, ``E-build-failed``, and what fetching and making raise.
        Infrastructure: What they raise.
        Stopped: It was told to stop.
    """
    if build.is_here:
        note_use(build.path)
        return build
    facts = node or probe_node()
    if build.recipe is not None:
        run = partial(run_call, should_stop=should_stop)
        bench = Bench(run, facts, report=report, progress=report, should_stop=should_stop)
        return _made(build, made_build(build, bench))
    variant = choose_variant(build, facts)
    if not variant.url:
        return as_variant(build, variant)
    return as_variant(build, variant, str(fetched(variant, report=report, should_stop=should_stop)))


def present_build(build: Build, node: NodeFacts | None = None) -> Build | None:
    """As `local_build`, but nothing is fetched or made: ``None`` where that would be needed.

    Raises:
        BadInput: ``E-no-variant``.
    """
    if build.is_here:
        return build
    facts = node or probe_node()
    if build.recipe is not None:
        place = known_place(build.recipe, Bench(run_call, facts))
        return _made(build, place / "build") if place and provenance_of(place) else None
    variant = choose_variant(build, facts)
    if not variant.url:
        return as_variant(build, variant)
    folder = in_cache(variant)
    return as_variant(build, variant, str(folder)) if folder else None


def recognised(build: Build, environment: Mapping[str, str] | None = None) -> Recognised:
    """What a build by path is; asked once as long as its files are the same.

    Raises:
        BadInput: As `recognise`.
    """
    states = tuple((state.st_mtime_ns, state.st_size) for state in (f.stat() for f in BenchEngine(build).locate()))
    return _recognised(replace(build, source=None), tuple(sorted((environment or {}).items())), states)


def missing_by_program(build: Build) -> dict[str, tuple[str, ...]]:
    """Libraries that programs of a build miss on this machine, by program; nothing is known of one without a path.

    Args:
        build: A build of this machine.

    Raises:
        BadInput: It is not there; ``E-no-sandbox``.
    """
    if not build.path:
        return {}
    files = BenchEngine(build).locate()
    return missing_libraries(Path(files[0]), partial(run_call, sandbox=asking_sandbox(build, files)))


def check_build(build: Build, environment: Mapping[str, str] | None = None) -> None:
    """Refuse a build that is something else than the matrix says.

    Args:
        build: A build of this node.
        environment: Variables that its processes get.

    Raises:
        BadInput: ``E-build-mismatch``; ``E-build-missing`` and the like.
    """
    if build.source is not None and build.path:
        require_as_said(build, recognised(build, environment))


@lru_cache(maxsize=64)
def _recognised(
    build: Build, environment: tuple[tuple[str, str], ...], states: tuple[tuple[int, int], ...]
) -> Recognised:
    """Times and sizes of its files make a new build another question."""
    del states
    run = partial(run_call, sandbox=asking_sandbox(build, BenchEngine(build).locate(), dict(environment)))
    return recognise(build, run, dict(environment))


def _made(build: Build, folder: Path) -> Build:
    return replace(build, recipe=None, path=str(folder))


def _how(result: ProcessResult, timeout_s: float) -> str:
    if result.timed_out:
        return f"no end within {timeout_s:.0f} s"
    if result.output_limited:
        return "more output than allowed"
    if result.signal is not None:
        return f"signal {result.signal}"
    return "" if result.ok else f"exit code {result.exit_code}"


def missing_here(build: Build) -> str:
    """Why a build can't be started here without being fetched or made first, or at all; empty if it can."""
    try:
        here = present_build(build)
    except BadInput as bad:
        return bad.message
    if here is not None:
        return ""
    return f"its {'recipe is made' if build.recipe else 'archive is fetched'} by the first job that needs it"
