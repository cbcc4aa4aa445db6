"""Sizes as people read them, ``16.54 GiB``, ``30.53 B``, as numbers."""

from __future__ import annotations

import re

_QUANTITY = re.compile(r"(?P<number>\d+(?:\.\d+)?) (?P<unit>KiB|MiB|GiB|TiB|K|M|B|T)", re.ASCII)
_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


def quantity(text: str) -> float:
    """The number; 0 where it is none.

    Args:
        text: A cell of a table, or what stands behind an equals sign of a log.
    """
    found = _QUANTITY.fullmatch(text)
    return float(found["number"]) * _UNITS[found["unit"]] if found else 0.0
