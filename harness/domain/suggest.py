"""The "did you mean" of error messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MAX_LISTED = 12


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Name the nearest choice, or list the choices when none is near.

    Args:
        word: What was written.
        choices: What would have been right.

    Returns:
        A phrase for an error's hint, e.g. ``did you mean 'fmoe'?``; empty when there are no choices.
    """
    known = sorted(set(choices))
    folded = {choice.lower(): choice for choice in known}
    near = get_close_matches(word.lower(), folded, n=1, cutoff=0.55)
    if near:
        return f"did you mean '{folded[near[0]]}'?"
    if not known:
        return ""
    listed = ", ".join(known[:_MAX_LISTED])
    return f"known: {listed}" + (", ..." if len(known) > _MAX_LISTED else "")
