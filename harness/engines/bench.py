"""The engine of a build's own ``llama-bench``, for both forks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.domain.build import Build, Fork
from harness.domain.errors import BadInput
from harness.engines.abilities import beyond
from harness.engines.bench_argv import Tests, flags_argv, tests_of, threads_of
from harness.engines.bench_help import help_flags, identify_fork
from harness.engines.diagnosis import keeps_silent
from harness.engines.engine import Command, Exit, Order, Report
from harness.engines.flags import specs
from harness.engines.parse import OutputFormat, read_bench
from harness.engines.programs import FOLDERS, checked_program, libraries_of, opaque_reason, with_libraries

_NAME = "llama-bench"
_EVERY_BENCH_HAS = frozenset({"--n-prompt", "-pg"})
"""Options that no other program of the two forks has; any of them will do."""


class BenchEngine:
    """Measures with ``llama-bench``.

    Args:
        build: A build given by path.
        help_text: What its ``--help`` printed, where that was read (``help_command``): then flags that this very build
            does not know are told before anything runs, and a binary of the other fork is refused.
    """

    def __init__(self, build: Build, help_text: str = "") -> None:
        self._build = build
        self._help = help_text
        self._options = help_flags(help_text) if help_text else None

    @property
    def options(self) -> frozenset[str] | None:
        """Option spellings that the build knows; ``None`` where its ``--help`` was not read."""
        return self._options

    def informed(self, help_text: str) -> BenchEngine:
        """This engine, knowing what the build's ``--help`` printed."""
        return BenchEngine(self._build, help_text)

    def help_command(self, environment: Mapping[str, str] | None = None) -> Command:
        """The command that makes the build list its options. It prints devices too, and loads no model.

        Args:
            environment: Variables that its processes get: a GPU build may need them to be started at all.

        Raises:
            BadInput: If the build is not there or not executable.
        """
        executable = self._executable()
        return Command((str(executable), "--help"), with_libraries(executable, environment or {}))

    def locate(self) -> Sequence[Path]:
        """The executable, then the libraries of llama.cpp and ggml that lie beside it or in its library folders.

        Raises:
            BadInput: ``E-build-missing``, ``E-build-not-executable``, ``E-build-not-a-program``, ``E-wrong-fork``,
                ``E-not-llama-bench``.
        """
        executable = self._executable()
        if self._options and not self._options & _EVERY_BENCH_HAS:
            raise BadInput(
                "E-not-llama-bench",
                f"{executable} is no {_NAME}: its --help lists no {' or '.join(sorted(_EVERY_BENCH_HAS))}",
                hint=f"give {_NAME} or the folder that holds it",
                where=f"builds.{self._build.name}",
            )
        fork = identify_fork(self._help)
        if fork not in (None, self._build.fork):
            raise BadInput(
                "E-wrong-fork",
                f"{executable} is a llama-bench of {fork}, the build is declared as {self._build.fork}",
                hint=f'write fork = "{fork}", or give the other binary',
                where=f"builds.{self._build.name}",
            )
        return (executable, *libraries_of(executable))

    def opaque(self) -> str:
        """Why the located files do not tell what runs, if they do not."""
        return opaque_reason(self._executable())

    def refusal(self, order: Order) -> str:
        """Why ``llama-bench`` cannot do it: outputs, a workload it cannot time, an option the build does not know."""
        if order.outputs:
            return "llama-bench gives no logits and no text"
        if not order.workloads:
            return "there is no workload to time"
        if order.of_profiles:
            return "llama-bench answers no prompts: llama-server does"
        if "," in str(order.model):
            return f"llama-bench splits model paths at commas: {order.model}"
        problems = (beyond(self._build, each, self._options) for each in order.workloads)
        return next(filter(None, problems), "") or self._unknown_option(order)

    def command(self, order: Order) -> Command:
        """One process for all workloads, every flag spelled out, never through a shell.

        The libraries that ``locate`` found are put in front of the loader's search path, so that what is hashed is what
        runs.

        Args:
            order: One that ``refusal`` has nothing against.

        Raises:
            BadInput: If the build is not there or not executable.
        """
        executable = self._executable()
        fork = self._build.fork
        argv = (
            *(str(executable), "-o", self._format().value, "-m", str(order.model), "-r", str(order.repetitions)),
            *(("-w", "1") if fork is Fork.IK_LLAMA_CPP else ()),
            *("-t", str(threads_of(order))),
            *self._tests(order).argv,
            *flags_argv(fork, order.arm.flags, self._options),
            *(("-v",) if order.logs else ()),
        )
        return Command(argv, with_libraries(executable, dict(order.arm.environment)))

    def read(self, order: Order, ended: Exit) -> Report:
        """Rows, self-description and failure of one process; never raises."""
        return read_bench(order, ended, self._tests(order).printed, self._format())

    def asking_why(self, order: Order, ended: Exit) -> Command | None:
        """The same once more with its logs. They are off while something is timed, for they take time."""
        if order.logs or not keeps_silent(ended):
            return None
        return self.command(replace(order, repetitions=1, logs=True))

    def _tests(self, order: Order) -> Tests:
        return tests_of(self._build.fork, order.plain)

    def _format(self) -> OutputFormat:
        """Lines survive a crash, but ik_llama.cpp never had them, and older llama.cpp neither."""
        lines = self._build.fork is Fork.LLAMA_CPP and (not self._help or "jsonl" in self._help)
        return OutputFormat.JSONL if lines else OutputFormat.JSON

    def _unknown_option(self, order: Order) -> str:
        """Which option the build's ``--help`` does not list although a flag's value needs it."""
        unknown = [] if self._options is None else self._undisposed_flags(order)
        return f"build '{self._build.name}' does not know {', '.join(dict.fromkeys(unknown))}" if unknown else ""

    def _undisposed_flags(self, order: Order) -> list[str]:
        """Options of flags that differ from what their absence amounts to and that the build has no spelling for."""
        table = specs(self._build.fork, self._build.tool)
        return [
            table[name].spellings[0].options[0]
            for name, value in order.arm.flags
            if name in table and value != table[name].absent and table[name].spelling(self._options) is None
        ]

    def _executable(self) -> Path:
        """The ``llama-bench`` that the build's path names.

        Raises:
            BadInput: ``E-build-missing``, ``E-build-not-executable``, ``E-build-not-a-program``.
        """
        where = f"builds.{self._build.name}"
        path = Path(self._build.path).expanduser()
        found = next((file for file in _candidates(path) if file.is_file()), None)
        if found is None:
            hint = "give llama-bench or the folder that holds it, e.g. build/bin; compile with the target llama-bench"
            raise BadInput("E-build-missing", f"no {_NAME} at {path}", hint=hint, where=where)
        return checked_program(self._build, found)


def _candidates(path: Path) -> list[Path]:
    return [path / folder / _NAME for folder in FOLDERS] if path.is_dir() else [path]
