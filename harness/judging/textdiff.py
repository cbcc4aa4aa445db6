"""A difference of two texts that a person can read: what they share, then what each says."""

from __future__ import annotations

from itertools import takewhile

_BEFORE = 60
_AFTER = 120


def show_divergence(baseline: str, candidate: str) -> str:
    """Show two texts around the first character at which they part.

    Control characters are written as escapes, so that a difference in white space shows.

    Args:
        baseline: The reference text.
        candidate: The other text.

    Returns:
        Three lines: the end of the common beginning, and how each text goes on.
    """
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(baseline, candidate, strict=False)))
    before = baseline[max(0, shared - _BEFORE) : shared]
    return "\n".join(
        (
            f"  both say   {'...' if shared > _BEFORE else ''}{_visible(before)}",
            f"- baseline   {_go_on(baseline, shared)}",
            f"+ candidate  {_go_on(candidate, shared)}",
        )
    )


def _go_on(text: str, start: int) -> str:
    rest = text[start : start + _AFTER]
    return (_visible(rest) or "(ends)") + ("..." if len(text) > start + _AFTER else "")


def _visible(text: str) -> str:
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
