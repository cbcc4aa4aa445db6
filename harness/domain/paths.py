"""What can be a path."""

from __future__ import annotations

import os

_MAX_PATH_BYTES, _MAX_NAME_BYTES = 4095, 255


def usable_path(text: str) -> str:
    """A path that the operating system can be asked about.

    Args:
        text: The path.

    Returns:
        The same.

    Raises:
        ValueError: If it can be none, with the reason.
    """
    if "\0" in text:
        raise ValueError("a path can't hold a null character")
    too_long = any(len(os.fsencode(part)) > _MAX_NAME_BYTES for part in text.split("/"))
    if too_long or len(os.fsencode(text)) > _MAX_PATH_BYTES:
        raise ValueError(f"a path has at most {_MAX_PATH_BYTES} bytes, and {_MAX_NAME_BYTES} between slashes")
    return text
