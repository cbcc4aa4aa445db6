"""What the programs of a build tell of themselves with ``--version``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.builds.calls import Call, Run
from harness.domain.errors import BadInput

TIMEOUT_S = 60.0
_TELLING = ("llama-server", "llama-cli", "llama-bench")
_VERSION = re.compile(r"version: (?:(\d+) \((\w+)\)|\S+ \(build (\d+), commit (\w+)\))")
"""``version: 9001 (abc1234)``; mainline with releases: ``version: 0.5.0-dev (build 9001, commit abc1234)``."""
_BUILT_WITH = re.compile(r"built with (.+) for (\S+)")


@dataclass(frozen=True, slots=True)
class Version:
    """What a program says of itself; empty where it does not.

    Attributes:
        number: Its build number.
        commit: Its commit, or the beginning of it.
        compiler: The compiler.
    """

    number: str = ""
    commit: str = ""
    compiler: str = ""


def told_version(program: Path, environment: Mapping[str, str], run: Run) -> Version:
    """Ask the programs of a build, one after the other until one tells.

    Args:
        program: Its ``llama-bench``; the others lie beside it.
        environment: Variables that they get.
        run: Runs them.
    """
    for name in _TELLING:
        if program.with_name(name).is_file():
            try:
                told = run(Call((str(program.with_name(name)), "--version"), TIMEOUT_S, environment=environment))
            except BadInput:
                continue
            text = told.stdout + told.stderr
            if match := _VERSION.search(text):
                built = _BUILT_WITH.search(text)
                number, commit = filter(None, match.groups())
                return Version(
                    "" if number == "0" else number,
                    "" if commit == "unknown" else commit,
                    built.group(1) if built else "",
                )
    return Version()
