"""Whether this host has a sandbox, and what an engine gets to see in it: the inputs of its process and nothing else."""

from __future__ import annotations

import os
import shutil
import site
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import harness
from harness.builds.state_file import config_folder
from harness.domain.build import Build
from harness.domain.errors import BadInput, HarnessError
from harness.engines.programs import with_libraries
from harness.execution.bubblewrap import Sandbox, Tool
from harness.execution.lock_files import lock_dir
from harness.execution.process import ProcessSpec, Supervisor
from harness.models.storage import cache_root

_NAME = "bwrap"
_TIMEOUT_S = 30.0
_EXTRAS = (("--disable-userns",), ())
"""Namespaces inside the sandbox are of no use to an engine; some versions and containers do not let us forbid them."""
_ROOM_BYTES = 4 * 1024**3
_ROOM_SHARE = 4
_NOTHING = ("/bin/sh", "-c", "exit 0")
_GPU_DEVICES = ("nvidia*", "dri", "kfd", "dxg")
_SYSTEM_FOLDERS = ("/", "/etc", "/var", "/run", "/proc", "/sys", "/dev", "/home", "/root", "/srv", "/mnt", "/opt")
_SEARCHED = "LD_LIBRARY_PATH"
_HIDDEN_GPUS = "CUDA_VISIBLE_DEVICES"
HINT = (
    "install bubblewrap and let it make user namespaces (docs/how-to/untrusted-builds.md), measure on a host that has "
    "it, or say that you trust the build"
)


@dataclass(frozen=True, slots=True)
class Found:
    """What a look for a sandbox found.

    Attributes:
        tool: What works; ``None``: nothing.
        reason: Why nothing does.
    """

    tool: Tool | None
    reason: str = ""


@cache
def sandbox_here() -> Found:
    """Try bubblewrap once, with all that an engine is run with."""
    program = shutil.which(_NAME)
    if program is None:
        return Found(None, "bubblewrap (bwrap) is not installed")
    version, reason = "bubblewrap", ""
    try:
        with Supervisor() as supervisor:
            told = supervisor.run(ProcessSpec((program, "--version"), env={}, timeout_s=_TIMEOUT_S)).stdout.strip()
            version = told or version
            for extras in _EXTRAS:
                tool = Tool(program, version, extras)
                trial = Sandbox(tool, (), hidden_places(), (), _room_bytes())
                result = supervisor.run(ProcessSpec(_NOTHING, env={}, timeout_s=_TIMEOUT_S, sandbox=trial))
                if result.ok:
                    return Found(tool)
                reason = reason or (result.stderr.strip().splitlines() or ["it did not say why"])[-1]
    except HarnessError as error:
        reason = error.message
    return Found(None, f"{version} does not work here: {reason}")


def require_sandbox(where: str) -> Tool:
    """What works here.

    Args:
        where: What asks for it, for the error.

    Raises:
        BadInput: ``E-no-sandbox``.
    """
    found = sandbox_here()
    if found.tool is None:
        message = f"this host has no sandbox for untrusted builds: {found.reason}"
        raise BadInput("E-no-sandbox", message, hint=HINT, where=where)
    return found.tool


def sandbox_for(
    build: Build,
    argv: Iterable[str],
    environment: Mapping[str, str],
    *,
    files: Sequence[Path],
    model: Iterable[Path] = (),
) -> Sandbox:
    """The sandbox of one command of a build.

    Args:
        build: Whose it is.
        argv: Its arguments: a child of ours needs Python and this package.
        environment: Its complete environment.
        files: The program first, and libraries of the build: their folders can be read.
        model: Files of the model.

    Raises:
        BadInput: ``E-no-sandbox``, ``E-sandbox-place``: a folder holds more than a build.
    """
    where = f"builds.{build.name}"
    tool = require_sandbox(where)
    searched = with_libraries(Path(files[0]), environment).get(_SEARCHED, "").split(os.pathsep)
    folders = {file.parent for file in files} | {Path(place) for place in searched if place.startswith("/")}
    python = set(_python()) if next(iter(argv)) == sys.executable else set()
    hidden = hidden_places()
    for folder in folders | python:
        _require_own(folder, hidden, where)
    readable = sorted(str(place) for place in {*folders, *python, *model} if place.exists())
    computes = build.has_gpu_code and environment.get(_HIDDEN_GPUS) != ""
    return Sandbox(tool, tuple(readable), hidden, gpu_devices() if computes else (), _room_bytes())


def asking_sandbox(build: Build, files: Sequence[Path], environment: Mapping[str, str] | None = None) -> Sandbox | None:
    """The sandbox in which programs of a build by path are asked what they are; ``None``: it is trusted.

    Args:
        build: The build.
        files: One of its programs first, and its libraries.
        environment: Variables that its programs get.

    Raises:
        BadInput: As `sandbox_for`.
    """
    return None if build.trusted else sandbox_for(build, ("",), environment or {}, files=files)


def gpu_devices() -> tuple[str, ...]:
    """Device files of GPUs on this host."""
    return tuple(sorted(str(path) for pattern in _GPU_DEVICES for path in Path("/dev").glob(pattern)))


def hidden_places() -> tuple[str, ...]:
    """Folders of ours that nobody in a sandbox has to see, as far as they are there."""
    token = os.environ.get("RAY_AUTH_TOKEN_PATH", "")
    places = [Path.home(), Path.cwd(), Path(tempfile.gettempdir()), cache_root(), config_folder(), lock_dir()]
    places += [Path(token).absolute().parent] if token else []
    return tuple(sorted({str(place.resolve()) for place in places if place.is_dir()}))


def _require_own(folder: Path, hidden: Iterable[str], where: str) -> None:
    """Refuse a folder to read that would show what is none of a build's business.

    Raises:
        BadInput: ``E-sandbox-place``.
    """
    real = folder.resolve()
    shown = next((place for place in (*hidden, *_SYSTEM_FOLDERS) if Path(place).is_relative_to(real)), "")
    if shown:
        message = f"the folder {folder} can't be shown to an untrusted build: it is or holds {shown}"
        hint = "put the build's programs and libraries into a folder of their own"
        raise BadInput("E-sandbox-place", message, hint=hint, where=where)


def _python() -> Iterator[Path]:
    """Where this interpreter, its packages and this one lie."""
    yield Path(harness.__file__).resolve().parent
    for prefix in {sys.prefix, sys.base_prefix} - {"/usr"}:
        yield Path(prefix)
    for packages in site.getsitepackages():
        yield Path(packages)


def _room_bytes() -> int:
    return min(_ROOM_BYTES, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _ROOM_SHARE)
