"""A build in a file of its own, for the catalogue: the keys of a matrix's ``[builds.X]``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from harness import bounded
from harness.domain.errors import BadInput


def read_build_file(path: Path) -> dict[str, Any]:
    """Read the keys; paths in it are relative to the file.

    Args:
        path: A TOML file.

    Raises:
        BadInput: ``E-build-invalid``.
    """
    try:
        table = bounded.read_toml(path)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as failure:
        raise BadInput("E-build-invalid", f"not a TOML file: {failure}", where=f"{path}") from failure
    listed = table.get("variants")
    for entry in (table, *(listed if isinstance(listed, list) else ())):
        for key in ("path", "recipe"):
            if isinstance(entry, dict) and isinstance(entry.get(key), str):
                entry[key] = str(path.parent.absolute() / Path(entry[key]).expanduser())
    return table
