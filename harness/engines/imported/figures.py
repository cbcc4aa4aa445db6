"""Numbers as the tools print them; what only Python takes for a number (``22_9.05``, other scripts' digits) is none."""

from __future__ import annotations

import re
from typing import Any

NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]+)?|nan|inf)"
"""Pattern of one in a table: digits on both sides of the point."""

_PRINTED = re.compile(r"[ \t]*[-+]?(?:[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?|nan|inf(?:inity)?)[ \t]*", re.IGNORECASE)


def figure(value: Any) -> float | None:
    """A number, NaN and infinity included; ``None`` for anything else.

    Args:
        value: A field: a number of JSON, or its text.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and not _PRINTED.fullmatch(value):
        return None
    try:
        return float(value)
    except OverflowError:
        return None
