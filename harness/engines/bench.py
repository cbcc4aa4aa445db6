"""The engine of a build's own ``llama-bench``, for both forks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.domain.build import Build, Fork
from harness.domain.errors import BadInput
from harness.domain.workload import OutputProfile, Timed
from harness.engines.abilities import beyond
from harness.engines.bench_argv import Tests, flags_argv, tests_of, threads_of
from harness.engines.bench_help import help_flags, identify_fork
from harness.engines.diagnosis import keeps_silent
from harness.engines.engine import Command, Exit, Order, Report
from harness.engines.flags import specs
from harness.engines.parse import OutputFormat, read_bench

_NAME = "llama-bench"
_INSIDE = (_NAME, f"bin/{_NAME}", f"build/bin/{_NAME}")
_LIBRARY_FOLDERS = (".", "../lib", "../lib/*", "../lib64", "../src", "../ggml/src", "../ggml/src/*")
"""Where builds of either fork put their shared libraries, seen from the executable."""
_LIBRARY_NAMES = ("libllama*.so*", "libggml*.so*", "libllama*.dylib", "libggml*.dylib")
_SEARCHED = "LD_LIBRARY_PATH"
_EVERY_BENCH_HAS = frozenset({"--n-prompt", "-pg"})
"""Options that no other program of the two forks has; any of them will do."""
_NEEDED = re.compile(rb"(?<=\0)lib(?:llama|ggml)[\w.+-]*\.so(?:\.\d+)*(?=\0)")
_ELF = b"\x7fELF"
_SCRIPT = b"#!"


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
        return Command((str(executable), "--help"), _with_libraries(executable, environment or {}))

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
        return (executable, *_libraries(executable))

    def opaque(self) -> str:
        """A script around the program, or a program that takes libraries from elsewhere: they are not hashed."""
        executable = self._executable()
        if _first_bytes(executable).startswith(_SCRIPT):
            return f"{executable.name} is a script: what it starts is not hashed"
        elsewhere = sorted(_needed(executable) - _names_beside(executable))
        return f"{', '.join(elsewhere)} of {executable.name} lies elsewhere: not hashed" if elsewhere else ""

    def refusal(self, order: Order) -> str:
        """Why ``llama-bench`` cannot do it: outputs, a workload it cannot time, an option the build does not know."""
        asked: tuple[Timed | OutputProfile, ...] = (*order.workloads, *([order.outputs] if order.outputs else []))
        if not asked:
            return "there is no workload to time"
        if order.of_profiles:
            return "llama-bench answers no prompts: llama-server does"
        if "," in str(order.model):
            return f"llama-bench splits model paths at commas: {order.model}"
        problems = (beyond(self._build, each, self._options) for each in asked)
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
        )
        return Command(argv, _with_libraries(executable, dict(order.arm.environment)))

    def read(self, order: Order, ended: Exit) -> Report:
        """Rows, self-description and failure of one process; never raises."""
        return read_bench(order, ended, self._tests(order).printed, self._format())

    def asking_why(self, order: Order, ended: Exit) -> Command | None:
        """The same once more with its logs. They are off while something is timed, for they take time."""
        if not keeps_silent(ended):
            return None
        command = self.command(replace(order, repetitions=1))
        return replace(command, argv=(*command.argv, "-v"))

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
        if not os.access(found, os.X_OK):
            raise BadInput("E-build-not-executable", f"{found} is not executable", hint="chmod +x", where=where)
        if not _first_bytes(found).startswith((_ELF, _SCRIPT)):
            hint = "give the program itself or a script that starts it"
            message = f"{found} is neither a Linux program (ELF) nor a script (#!)"
            raise BadInput("E-build-not-a-program", message, hint=hint, where=where)
        return found.resolve()


def _candidates(path: Path) -> list[Path]:
    return [path / inside for inside in _INSIDE] if path.is_dir() else [path]


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(_ELF))


def _libraries(executable: Path) -> tuple[Path, ...]:
    """Each library file once: the names that are links to it do not count."""
    return tuple(sorted({path.resolve() for path in _beside(executable)}))


def _names_beside(executable: Path) -> set[str]:
    """All names of the libraries, links included: a program asks for one of them."""
    return {path.name for path in _beside(executable)}


def _beside(executable: Path) -> Iterator[Path]:
    for folder in _LIBRARY_FOLDERS:
        for name in _LIBRARY_NAMES:
            yield from filter(Path.is_file, executable.parent.glob(f"{folder}/{name}" if folder != "." else name))


def _needed(executable: Path) -> set[str]:
    """Libraries of the two forks that a program names: a table of strings inside it holds each by itself."""
    return {name.decode() for name in _NEEDED.findall(executable.read_bytes())}


def _with_libraries(executable: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables, with the build's own libraries before whatever else is to be searched."""
    folders = [*dict.fromkeys(str(path.parent) for path in _libraries(executable)), environment.get(_SEARCHED, "")]
    searched = os.pathsep.join(filter(None, folders))
    return {**environment, **({_SEARCHED: searched} if searched else {})}
