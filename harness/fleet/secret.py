"""Making and keeping the token of a fleet."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from harness.domain.errors import BadInput, Infrastructure
from harness.execution.cluster_token import require_private, token_file

_BYTES = 32
_TOKEN = re.compile(r"[A-Za-z0-9_.~+/=-]{16,4096}")


def made_token() -> Path:
    """The file with the token of the fleet that is started here; made where there is none.

    Raises:
        BadInput: ``E-fleet-token``: others can read the one that is there.
        Infrastructure: ``E-fleet-token-unwritable``.
    """
    file = token_file()
    if not file.exists():
        _write(file, secrets.token_hex(_BYTES))
    require_private(file)
    return file


def kept_token(text: str, where: str) -> Path:
    """Keep a token that was handed over.

    Args:
        text: What was read.
        where: From where, for messages. The text itself is in none.

    Raises:
        BadInput: ``E-fleet-token``: it is none.
        Infrastructure: ``E-fleet-token-unwritable``.
    """
    token = text.strip()
    if not _TOKEN.fullmatch(token):
        message = "expected a token, one line of at least 16 letters and digits"
        raise BadInput("E-fleet-token", message, hint="copy the head's file as it is", where=where)
    file = token_file()
    _write(file, token)
    return file


def token_from(path: Path) -> Path:
    """Keep the token of a file; errors as of `kept_token`."""
    require_private(path)
    try:
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeError) as error:
        raise BadInput("E-fleet-token", f"the token can't be read: {error}", where=str(path)) from error
    return kept_token(text, str(path))


def _write(file: Path, token: str) -> None:
    """Write it so that it is never there for others, nor half of it for anybody."""
    beside = file.with_name(f".{file.name}-{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside.unlink(missing_ok=True)
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as opened:
            opened.write(token)
        beside.replace(file)
    except OSError as error:
        hint = "choose another folder with MOE_CONFIG_DIR"
        message = f"the token can't be written: {error.strerror or error}"
        raise Infrastructure("E-fleet-token-unwritable", message, hint=hint, where=str(file)) from error
