"""What a build's tool cannot be asked for, known before anything runs: a workload, or outputs."""

from __future__ import annotations

from harness.domain.build import Build, Tool
from harness.domain.workload import OutputProfile, ProfileWorkload, Timed, Workload
from harness.engines.bench_argv import tests_of, untimeable

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
        return "llama-bench gives no logits and no text: outputs need an engine of a wheel"
    return untimeable(build.fork, asked) or _unsayable(build, asked, options)


def _unsayable(build: Build, workload: Workload, options: frozenset[str] | None) -> str:
    """Which option the build does not know although the workload cannot be said without it."""
    if options is None:
        return ""
    needed = (part for part in tests_of(build.fork, [workload]).argv if part in _TEST_OPTIONS)
    unknown = [option for option in needed if option not in options]
    return f"build '{build.name}' does not know {', '.join(unknown)}, which {workload.name} needs" if unknown else ""
