r"""Untrusted text in Markdown, as GitHub reads it: in code nothing is a mention, a link, a reference or markup.

Escapes by backslash are not enough there: ``\@team`` still mentions, ``\#12`` still refers, a bare address is a link.
"""

from __future__ import annotations

import re

from harness.reporting.clean import clean, one_line

_FENCE = 3
_BAR = "\N{BROKEN BAR}"


def code(text: str, most: int = 0) -> str:
    """A span of code on one line, also in a cell of a table; empty for an empty text.

    A bar would end the cell, whatever stands before it: it becomes a broken one.

    Args:
        text: Any text.
        most: So many characters of it are shown; 0 for all.
    """
    plain = one_line(text).replace("|", _BAR)
    if most and len(plain) > most:
        plain = plain[: most - 3] + "..."
    if not plain:
        return ""
    fence = "`" * (_longest_run(plain) + 1)
    room = " " if plain[0] == "`" or plain[-1] == "`" else ""
    return f"{fence}{room}{plain}{room}{fence}"


def fenced(text: str, language: str = "text") -> tuple[str, str, str]:
    """The lines of a block in which nothing is markup."""
    plain = clean(text).replace("\r", "")
    fence = "`" * max(_FENCE, _longest_run(plain) + 1)
    return (f"{fence}{language}", plain, fence)


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
