"""What a build folder tells of its compilation: ``CMakeCache.txt`` and the generated ``build-info.cpp``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

CACHE_FILE = "CMakeCache.txt"
INFO_FILE = "build-info.cpp"
_LEVELS_UP = 4
_ENTRY = re.compile(r"^([A-Za-z][\w.+-]*):(\w+)=(.*)$", re.MULTILINE)
_PREFIXES = ("GGML_", "LLAMA_")
_TOLD_OF = ("BUILD_SHARED_LIBS", "CMAKE_BUILD_TYPE", "CMAKE_CUDA_ARCHITECTURES", "CMAKE_CXX_COMPILER")
_NOT_THE_USERS = ("INTERNAL", "STATIC")
_INFO = {
    "number": re.compile(r"LLAMA_BUILD_NUMBER\s*=\s*(\d+)"),
    "commit": re.compile(r'LLAMA_COMMIT\s*=\s*"(\w+)"'),
    "compiler": re.compile(r'LLAMA_COMPILER\s*=\s*"([^"]+)"'),
    "target": re.compile(r'LLAMA_BUILD_TARGET\s*=\s*"([^"]+)"'),
}
_NOT_TOLD = ("unknown", "0")
_MAX_INFO_PLACES = 4
_TRUE = ("on", "1", "true", "yes", "y")
_FALSE = ("off", "0", "false", "no", "n", "")


@dataclass(frozen=True, slots=True)
class Compilation:
    """What the files tell.

    Attributes:
        options: The forks' own options of CMake, and build type, compiler, CUDA architectures and shared libraries.
        told: Build ``number``, ``commit``, ``compiler`` and ``target`` that were compiled in, where known.
    """

    options: Mapping[str, str]
    told: Mapping[str, str]


def compilation_of(program: Path) -> Compilation:
    """Look for the files in the program's folder and those above it.

    Args:
        program: The program; its folder may have been moved away from its build folder: then nothing is known.
    """
    root = next((each for each in program.parents[:_LEVELS_UP] if (each / CACHE_FILE).is_file()), None)
    if root is None:
        return Compilation({}, {})
    entries = _ENTRY.findall(_text(root / CACHE_FILE))
    said = {name: value for name, kind, value in entries if kind not in _NOT_THE_USERS}
    options = {name: value for name, value in said.items() if name.startswith(_PREFIXES) or name in _TOLD_OF}
    return Compilation(options, compiled_in(root))


def compiled_in(folder: Path) -> dict[str, str]:
    """What the generated source file of a build folder says that was compiled in."""
    found: dict[str, str] = {}
    for file in islice(folder.rglob(INFO_FILE), _MAX_INFO_PLACES):
        text = _text(file)
        for word, pattern in _INFO.items():
            if (match := pattern.search(text)) and match.group(1) not in _NOT_TOLD:
                found.setdefault(word, match.group(1))
    return found


def same_value(said: str, found: str) -> bool:
    """Whether two values of an option mean the same: ``ON`` and ``1`` do."""
    words = [_folded(said), _folded(found)]
    return words[0] == words[1]


def _folded(value: str) -> str:
    word = value.strip().lower()
    return "on" if word in _TRUE else "off" if word in _FALSE else value.strip()


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
