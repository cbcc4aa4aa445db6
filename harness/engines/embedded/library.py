"""Finding, opening and identifying the library of a wheel."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import importlib.util
from pathlib import Path

from .errors import EmbeddedError
from .layouts import DISTRIBUTIONS, Layout, check_layout, find_layout, install_command

_OF_INTEREST = ("libllama", "libggml", "xllamacpp", "libgomp")
"""What the name of a mapped library contains if it can change a speed."""


_LIBGOMP_HINT = "install the OpenMP runtime: apt-get install libgomp1 (Debian, Ubuntu) or dnf install libgomp (Fedora)"


def open_verified(fork: str) -> tuple[ctypes.CDLL, Layout]:
    """Open the library of a fork's installed wheel, if its layout is known and found true.

    Raises:
        EmbeddedError: ``E-wheel-missing``, ``E-wheel-unverified``, ``E-wheel-library`` or ``E-wheel-layout``.
    """
    distribution = DISTRIBUTIONS[fork]
    try:
        version = importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        raise EmbeddedError("E-wheel-missing", f"{distribution} is not installed; {install_command(fork)}") from None
    layout = find_layout(fork, version)
    library = _open(_library_path(layout))
    check_layout(library, layout)
    return library, layout


def _library_path(layout: Layout) -> Path:
    # find_spec does not run the package: its own loader honours environment variables that point elsewhere.
    spec = importlib.util.find_spec(layout.module)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    for folder in folders:
        path = Path(folder) / layout.library
        if path.is_file():
            return path
    raise EmbeddedError(
        "E-wheel-library",
        f"{layout.distribution} {layout.version}: {layout.library} is not in the package ({folders}); "
        f"reinstall it: {install_command(layout.fork)}",
    )


def _open(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as problem:
        hint = f"; {_LIBGOMP_HINT}" if "libgomp" in str(problem) else ""
        raise EmbeddedError("E-wheel-library", f"{path} cannot be loaded: {problem}{hint}") from None


def mapped_libraries(maps: Path = Path("/proc/self/maps")) -> list[dict[str, str]]:
    """Path and SHA-256 of each library of interest that this process really has mapped, sorted by path."""
    paths = set()
    for line in maps.read_text(encoding="utf-8", errors="replace").splitlines():
        path = line[line.find("/") :] if "/" in line else ""
        name = path.rpartition("/")[2]
        if ".so" in name and any(part in name for part in _OF_INTEREST):
            paths.add(path)
    return [{"path": path, "sha256": _sha256(Path(path))} for path in sorted(paths)]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
