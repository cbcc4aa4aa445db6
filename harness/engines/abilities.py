"""What a build's tool cannot be asked for, known before anything runs: a workload, or outputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.domain.build import Build, Tool
from harness.domain.workload import OutputProfile, ProfileWorkload, Timed, Workload
from harness.engines import perplexity_engine, served_engine
from harness.engines.bench_argv import tests_of, untimeable
from harness.engines.programs import beside_bench

_TEST_OPTIONS = frozenset({"-d", "-gp", "-pg"})
"""Options that say a workload and that not every ``llama-bench`` ever had."""


def beyond(build: Build, asked: Timed | OutputProfile, options: frozenset[str] | None = None) -> str:
    """Why a build cannot do one thing; empty if it can.

    Args:
        build: The build; its fork and tool decide.
        asked: A workload to time, or outputs to compare.
        options: Option spellings of the build's ``--help`` where it was read.
    """
    if build.tool is Tool.EMBEDDED or isinstance(asked, ProfileWorkload):
        return ""
    if isinstance(asked, OutputProfile):
        return beyond_together([build], asked)
    return untimeable(build.fork, asked) or _unsayable(build, asked, options)


def beyond_together(builds: Sequence[Build], asked: Timed | OutputProfile) -> str:
    """Why builds cannot do one thing in one case, though perhaps each of them alone can; empty if they can.

    Args:
        builds: The builds of all arms.
        asked: What the case asks for.
    """
    if not isinstance(asked, OutputProfile) or not all(map(_is_known, builds)):
        return ""  # elsewhere, or not made yet: the node will tell
    return lacks_answers(builds)


def _is_known(build: Build) -> bool:
    """Whether it can be seen which programs a build has: a wheel needs none."""
    return build.tool is Tool.EMBEDDED or bool(build.path and Path(build.path).expanduser().exists())


def lacks_answers(builds: Iterable[Build]) -> str:
    """Why outputs of builds can't be compared with one another; empty if they can.

    ``llama-bench`` gives none. ``llama-server`` beside it does, and what it gives can be compared with a wheel's;
    ``llama-perplexity`` knows of other positions, so all builds have to use it.

    Args:
        builds: All builds that are compared, as they are on this machine.
    """
    compared = list(builds)
    by_path = [build for build in compared if build.tool is Tool.LLAMA_BENCH]
    without = [build for build in by_path if beside_bench(build, served_engine.NAME) is None]
    evaluating = [build for build in by_path if beside_bench(build, perplexity_engine.NAME)]
    if not without or len(evaluating) == len(compared):
        return ""
    names = " and ".join(dict.fromkeys(f"'{build.name}'" for build in without))
    return (
        f"no llama-server lies beside llama-bench in build {names}, and llama-bench gives no outputs"
        f"{_why_not_evaluated(compared, evaluating)}: compile with the target llama-server"
    )


def _why_not_evaluated(compared: Sequence[Build], evaluating: Sequence[Build]) -> str:
    """Why the ``llama-perplexity`` that some builds have does not help."""
    if not evaluating:
        return ""
    wheels = dict.fromkeys(f"'{build.name}'" for build in compared if build.tool is Tool.EMBEDDED)
    if not wheels:
        return "; not all of them have llama-perplexity"
    return f"; llama-perplexity can be compared with itself only, not with a wheel ({', '.join(wheels)})"


def _unsayable(build: Build, workload: Workload, options: frozenset[str] | None) -> str:
    """Which option the build does not know although the workload cannot be said without it."""
    if options is None:
        return ""
    needed = (part for part in tests_of(build.fork, [workload]).argv if part in _TEST_OPTIONS)
    unknown = [option for option in needed if option not in options]
    return f"build '{build.name}' does not know {', '.join(unknown)}, which {workload.name} needs" if unknown else ""
