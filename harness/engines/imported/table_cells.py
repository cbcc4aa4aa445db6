"""Lines of Markdown tables, taken apart."""

from __future__ import annotations

import re

_RULE = re.compile(r":?-+:?")


def table_cells(line: str) -> list[str]:
    """The cells of a line, without emphasis."""
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().strip("*`").strip() for cell in inner.split("|")]


def is_rule(cell: str) -> bool:
    """Whether a cell is a part of the line below a heading."""
    return _RULE.fullmatch(cell) is not None
