"""What this program reads of its environment: each ``MOE_`` variable by one reader, which tells what is wrong with it.

A variable that is empty is not set: CI systems write ``MOE_X=`` where nobody gave a value.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from harness.domain.errors import BadInput

CACHE_DIR = "MOE_CACHE_DIR"
CACHE_GIB = "MOE_CACHE_GIB"
CONFIG_DIR = "MOE_CONFIG_DIR"
CORES = "MOE_CORES"
HISTORY = "MOE_HISTORY"
HOST_HOLD = "MOE_HOST_HOLD"
LOCK_DIR = "MOE_LOCK_DIR"
SPREADS = "MOE_SPREADS"
_GIB = 1024**3
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+", re.ASCII)
_MAX_GIB = 1e9
_CORES = re.compile(r"\s*([0-9]+)(?:-([0-9]+))?\s*", re.ASCII)


def cache_dir() -> Path | None:
    """``MOE_CACHE_DIR``; ``None`` where it is not set.

    Raises:
        BadInput: ``E-bad-setting``.
    """
    return _folder(CACHE_DIR)


def config_dir() -> Path | None:
    """``MOE_CONFIG_DIR``; result and errors as of `cache_dir`."""
    return _folder(CONFIG_DIR)


def lock_dir() -> Path | None:
    """``MOE_LOCK_DIR``; result and errors as of `cache_dir`."""
    return _folder(LOCK_DIR)


def spreads_file() -> Path | None:
    """``MOE_SPREADS``; result and errors as of `cache_dir`."""
    path = _path(SPREADS)
    if path is not None and path.is_dir():
        raise _bad(SPREADS, f"expected a file, {path} is a folder", f"e.g. {path / 'spreads.json'}")
    return path


def history() -> str:
    """``MOE_HISTORY``, a file or the URL of a database; empty where it is not set. Whether it can be is asked later."""
    return _said(HISTORY)


def host_hold() -> str:
    """``MOE_HOST_HOLD``, set by ``fleet lock`` and ``hold``: the hold that we run under; empty where there is none."""
    return _said(HOST_HOLD)


def cache_bytes() -> int | None:
    """``MOE_CACHE_GIB`` in bytes; ``None`` where it is not set.

    Raises:
        BadInput: ``E-bad-setting``: it is no number of GiB above 0.
    """
    said = _said(CACHE_GIB)
    if not said:
        return None
    size = float(said) if _NUMBER.fullmatch(said) else 0.0
    if not 0 < size <= _MAX_GIB:
        hint = "the number alone, e.g. 200 or 0.5; leave it out for no limit"
        raise _bad(CACHE_GIB, f"expected GiB, a number above 0, found '{said}'", hint)
    return max(1, int(size * _GIB))


def cores() -> tuple[tuple[int, int], ...]:
    """``MOE_CORES`` as ranges, first and last core of each; empty where it is not set.

    Raises:
        BadInput: ``E-bad-setting``: it is no list of cores. Whether they are there is asked of the machine later.
    """
    said = _said(CORES)
    ranges = []
    for part in said.split(",") if said else ():
        match = _CORES.fullmatch(part)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if low > high:
            raise _bad(CORES, f"expected cores such as 0-3,8, found '{said}'", "leave it out for those of the process")
        ranges.append((low, high))
    return tuple(ranges)


def check_settings() -> None:
    """Read all of them: better said at once than by the first job that needs one.

    Raises:
        BadInput: ``E-bad-setting`` with the variable.
    """
    for read in (cache_dir, config_dir, lock_dir, spreads_file, cache_bytes, cores):
        read()


def _said(variable: str) -> str:
    return os.environ.get(variable, "").strip()


def _folder(variable: str) -> Path | None:
    path = _path(variable)
    if path is not None and path.exists() and not path.is_dir():
        raise _bad(variable, f"expected a folder, {path} is a file", "name another one; it is made if it is not there")
    return path


def _path(variable: str) -> Path | None:
    said = _said(variable)
    if not said:
        return None
    try:
        path = Path(said).expanduser().absolute()
        path.exists()
    except (OSError, RuntimeError, ValueError) as wrong:  # ~nobody; a name that is too long; a folder that is closed
        raise _bad(variable, f"'{said[:100]}' can't be a path here: {wrong}", "give an absolute path") from wrong
    return path


def _bad(variable: str, message: str, hint: str) -> BadInput:
    return BadInput("E-bad-setting", message, hint=hint, where=variable)
