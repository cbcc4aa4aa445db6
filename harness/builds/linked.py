"""Which libraries a program loads, as the system's own loader finds them. The program itself does not run."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.builds.calls import Call, Run

_LOADERS = {
    "x86_64": "/lib64/ld-linux-x86-64.so.2",
    "aarch64": "/lib/ld-linux-aarch64.so.1",
    "riscv64": "/lib/ld-linux-riscv64-lp64d.so.1",
    "ppc64le": "/lib64/ld64.so.2",
    "s390x": "/lib/ld64.so.1",
}
_LINE = re.compile(r"^\s+(\S+) => (not found|\S+)", re.MULTILINE)
_IS_DYNAMIC = ("", "exit code 2")
"""What ``--verify`` ends with for a program that this loader loads."""
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Linked:
    """What is loaded with a program.

    Attributes:
        found: Files by the names that are asked for.
        missing: Names that nothing answers to: the program cannot start.
        known: Whether the loader could be asked.
    """

    found: Mapping[str, Path]
    missing: tuple[str, ...]
    known: bool


def linked_libraries(program: Path, environment: Mapping[str, str], run: Run) -> Linked:
    """Ask the loader of this machine.

    Args:
        program: A file; of scripts and static programs nothing is known.
        environment: Variables that it will get, ``LD_LIBRARY_PATH`` among them.
        run: Runs the loader.
    """
    loader = _LOADERS.get(platform.machine(), "")
    if not loader or not Path(loader).exists():
        return Linked({}, (), known=False)
    checked = run(Call((loader, "--verify", str(program)), _TIMEOUT_S))
    if checked.how not in _IS_DYNAMIC:
        return Linked({}, (), known=False)
    told = run(Call((loader, str(program)), _TIMEOUT_S, environment={**environment, "LD_TRACE_LOADED_OBJECTS": "1"}))
    lines = _LINE.findall(told.stdout)
    missing = tuple(name for name, place in lines if place == "not found")
    return Linked({name: Path(place) for name, place in lines if place != "not found"}, missing, known=told.ok)
