"""Programs of a build given by path: where they lie, which libraries they bring, whether their bytes tell what runs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.domain.build import Build
from harness.domain.errors import BadInput

FOLDERS = (".", "bin", "build/bin")
"""Where a build's folder has its programs."""
_LIBRARY_FOLDERS = (".", "../lib", "../lib/*", "../lib64", "../src", "../ggml/src", "../ggml/src/*")
"""Where builds of either fork put their shared libraries, seen from the executable."""
_LIBRARY_NAMES = ("libllama*.so*", "libggml*.so*", "libllama*.dylib", "libggml*.dylib")
_OF_SERVERS = ("libmtmd.so*", "../examples/mtmd/libmtmd.so*", "../tools/mtmd/libmtmd.so*")
"""What only ``llama-server`` and ``llama-cli`` need: searched for, but no part of what is measured."""
_SEARCHED = "LD_LIBRARY_PATH"
_NEEDED = re.compile(rb"(?<=\0)lib(?:llama|ggml)[\w.+-]*\.so(?:\.\d+)*(?=\0)")
_ELF = b"\x7fELF"
_SCRIPT = b"#!"


def beside_bench(build: Build, name: str) -> Path | None:
    """A program that lies beside the ``llama-bench`` that a build's path names, or in its folder; not checked.

    Args:
        build: A build by path.
        name: The program's name.
    """
    path = Path(build.path).expanduser()
    candidates = [path / folder / name for folder in FOLDERS] if path.is_dir() else [path.with_name(name)]
    return next((file for file in candidates if file.is_file()), None)


def checked_program(build: Build, found: Path) -> Path:
    """A file that can be started.

    Args:
        build: Whose it is, for the error.
        found: An existing file.

    Raises:
        BadInput: ``E-build-not-executable``, ``E-build-not-a-program``.
    """
    where = f"builds.{build.name}"
    if not os.access(found, os.X_OK):
        raise BadInput("E-build-not-executable", f"{found} is not executable", hint="chmod +x", where=where)
    if not _first_bytes(found).startswith((_ELF, _SCRIPT)):
        hint = "give the program itself or a script that starts it"
        message = f"{found} is neither a Linux program (ELF) nor a script (#!)"
        raise BadInput("E-build-not-a-program", message, hint=hint, where=where)
    return found.resolve()


def libraries_of(executable: Path) -> tuple[Path, ...]:
    """Each library file of llama.cpp and ggml once: the names that are links to it do not count."""
    return tuple(sorted({path.resolve() for path in _beside(executable)}))


def with_libraries(executable: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables, with the build's own libraries before whatever else is to be searched."""
    more = (path.resolve() for pattern in _OF_SERVERS for path in executable.parent.glob(pattern))
    folders = dict.fromkeys(str(path.parent) for path in (*libraries_of(executable), *more))
    searched = os.pathsep.join(filter(None, [*folders, environment.get(_SEARCHED, "")]))
    return {**environment, **({_SEARCHED: searched} if searched else {})}


def opaque_reason(executable: Path) -> str:
    """Why the program and the libraries beside it do not tell what runs; empty if they do.

    A script around the program, or a program that takes libraries from elsewhere: they are not hashed.
    """
    if _first_bytes(executable).startswith(_SCRIPT):
        return f"{executable.name} is a script: what it starts is not hashed"
    elsewhere = sorted(_needed(executable) - {path.name for path in _beside(executable)})
    return f"{', '.join(elsewhere)} of {executable.name} lies elsewhere: not hashed" if elsewhere else ""


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(_ELF))


def _beside(executable: Path) -> Iterator[Path]:
    """All names of the libraries, links included: a program asks for one of them."""
    for folder in _LIBRARY_FOLDERS:
        for name in _LIBRARY_NAMES:
            yield from filter(Path.is_file, executable.parent.glob(f"{folder}/{name}" if folder != "." else name))


def _needed(executable: Path) -> set[str]:
    """Libraries of the two forks that a program names: a table of strings inside it holds each by itself."""
    return {name.decode() for name in _NEEDED.findall(executable.read_bytes())}
