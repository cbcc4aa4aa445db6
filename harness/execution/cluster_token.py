"""The token of a fleet's Ray cluster: a file that its owner alone reads; it is never an argument and never in a log."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from harness.builds.state_file import config_folder
from harness.domain.errors import BadInput

_FOREIGN = stat.S_IRWXG | stat.S_IRWXO
_FOR_OTHERS = "RAY_AUTH_TOKEN_PATH"


def token_file() -> Path:
    """Where ``fleet up`` and ``fleet join`` keep the token, in the user's folder of settings."""
    return config_folder() / "fleet" / "token"


def token_environment() -> dict[str, str]:
    """What a process of Ray needs to know of the token; nothing where the user said it already, or there is none.

    Raises:
        BadInput: ``E-fleet-token``: others can read the file.
    """
    if any(os.environ.get(name) for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", _FOR_OTHERS)):
        return {}
    file = token_file()
    return environment_with(file) if file.is_file() else {}


def environment_with(file: Path) -> dict[str, str]:
    """What a process of Ray needs to know of a token in a file.

    Raises:
        BadInput: ``E-fleet-token``: there is none, or others can read the file.
    """
    require_private(file)
    return {"RAY_AUTH_MODE": "token", _FOR_OTHERS: str(file)}


def require_private(file: Path) -> None:
    """Return where a file is there and its owner alone can read it; errors as of `environment_with`."""
    try:
        state = file.stat()
    except OSError as error:
        hint = "copy it from the head: moe-harness fleet up says where it lies"
        message = f"the token can't be read: {error.strerror or error}"
        raise BadInput("E-fleet-token", message, hint=hint, where=str(file)) from error
    if state.st_mode & _FOREIGN:
        message = f"others can read the token (mode {stat.S_IMODE(state.st_mode):o})"
        raise BadInput("E-fleet-token", message, hint=f"chmod 600 {file}", where=str(file))
