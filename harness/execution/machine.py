"""Reading what the kernel tells in files: below one root, so that tests can make a machine of files."""

from __future__ import annotations

from pathlib import Path

ROOT = Path("/")


def read(path: str) -> str:
    """Contents of a file below the root; empty where it can't be read."""
    try:
        return (ROOT / path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def read_number(path: str) -> int | None:
    """The one number in a file below the root; None where there is none."""
    text = read(path).strip()
    return int(text) if text.isdecimal() else None
