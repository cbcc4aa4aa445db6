"""What the engines of a build's own programs share: where the program lies, and whether it is the right one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from harness.domain.build import Build
from harness.domain.errors import BadInput
from harness.engines.engine import Command
from harness.engines.programs import beside_bench, checked_program, libraries_of, opaque_reason, with_libraries
from harness.engines.server_flags import server_help_options


@dataclass(frozen=True, slots=True)
class Program:
    """A program that lies beside ``llama-bench``.

    Attributes:
        name: The file's name.
        listed: Options of which every such program lists one at least.
        missing: Slug where there is none.
        hint: What to do then.
        wrong: Slug where a program of that name is another one.
    """

    name: str
    listed: frozenset[str]
    missing: str
    hint: str
    wrong: str


class OwnProgram:
    """One program of a build given by path.

    Args:
        build: The build.
        help_text: What the program's ``--help`` printed, where that was read.
    """

    program: Program

    def __init__(self, build: Build, help_text: str = "") -> None:
        self._build = build
        self._options = server_help_options(help_text) or None

    def informed(self, help_text: str) -> Self:
        """This engine, knowing what the program's ``--help`` printed."""
        return type(self)(self._build, help_text)

    def help_command(self, environment: Mapping[str, str] | None = None) -> Command:
        """The command that makes the program list its options.

        Raises:
            BadInput: If it is not there or not executable.
        """
        executable = self._executable()
        return Command((str(executable), "--help"), with_libraries(executable, environment or {}))

    def locate(self) -> Sequence[Path]:
        """The program, then the libraries of llama.cpp and ggml that lie beside it or in its library folders.

        Raises:
            BadInput: `Program.missing`, `Program.wrong`, ``E-build-not-executable``, ``E-build-not-a-program``.
        """
        executable, asked = self._executable(), self.program
        if self._options and not self._options & asked.listed:
            message = f"{executable} is no {asked.name}: its --help lists no {' or '.join(sorted(asked.listed))}"
            raise BadInput(asked.wrong, message, where=f"builds.{self._build.name}")
        return (executable, *libraries_of(executable))

    def opaque(self) -> str:
        """Why the located files do not tell what runs, if they do not."""
        return opaque_reason(self._executable())

    def _executable(self) -> Path:
        """The program beside the ``llama-bench`` that the build's path names, or in its folder.

        Raises:
            BadInput: `Program.missing`, ``E-build-not-executable``, ``E-build-not-a-program``.
        """
        found = beside_bench(self._build, self.program.name)
        if found is None:
            message = f"no {self.program.name} at {Path(self._build.path).expanduser()}"
            raise BadInput(self.program.missing, message, hint=self.program.hint, where=f"builds.{self._build.name}")
        return checked_program(self._build, found)
