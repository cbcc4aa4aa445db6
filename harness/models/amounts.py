"""How far making or fetching is, in words: one line of what would be a bar on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # What makes models brings numpy, which plans do without.
    from harness.models.cache import Progress

_UNITS = (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024))
_WORDS = {
    "waiting": "waiting for another process that makes or fetches {name}",
    "weights": "making {name}: weights",
    "quantizing": "making {name}: quantizing",
    "hashing": "making {name}: hashing",
    "fetching": "fetching {name}",
}


def progress_text(name: str, progress: Progress) -> str:
    """What is done for a model, and how much of it.

    Args:
        name: The model's.
        progress: What is told.
    """
    amount = amount_text(progress.done, progress.total)
    return ", ".join(filter(None, [_WORDS[progress.stage].format(name=name), amount]))


def amount_text(done: int, total: int) -> str:
    """Bytes done of those in all, in the unit of the larger; empty where neither is known."""
    most = max(done, total)
    unit, size = next(((unit, size) for unit, size in _UNITS if most >= size), ("bytes", 1))
    if not most:
        return ""
    figures = f"{done / size:.1f}" if size > 1 else f"{done}"
    if not total:
        return f"{figures} {unit}"
    whole = f"{total / size:.1f}" if size > 1 else f"{total}"
    return f"{figures} of {whole} {unit} ({100 * done // total} %)"
