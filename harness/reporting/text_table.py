"""A table as lines of plain text: each column as wide as what it holds, one of them folded so that all fits.

A table of rich makes a document of every cell, which takes most of a millisecond a row; a night has thousands of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from rich.cells import cell_len, chop_cells

_GAP = "  "
_LEAST = 20
"""Cells of the folded column, however little the others leave."""


def table_lines(rows: Sequence[Sequence[str]], *, width: int, folded: int, right: int) -> list[list[str]]:
    """Lay rows out.

    Args:
        rows: Their cells, all rows alike many; a cell may have several lines. The first row is the head.
        width: Cells of a line, at most.
        folded: The column that gives way.
        right: The column that is aligned to the right.

    Returns:
        The lines of each row.
    """
    cells = [[cell.split("\n") for cell in row] for row in rows]
    widths = [max(cell_len(line) for row in cells for line in row[column]) for column in range(len(cells[0]))]
    others = sum(widths) - widths[folded] + len(_GAP) * (len(widths) - 1)
    widths[folded] = min(widths[folded], max(_LEAST, width - others))
    for row in cells:
        row[folded] = [part for line in row[folded] for part in _folded(line, widths[folded])]
    return [[_line(parts, widths, right) for parts in zip_longest(*row, fillvalue="")] for row in cells]


def _folded(line: str, width: int) -> list[str]:
    return [line] if cell_len(line) <= width else chop_cells(line, width)


def _line(parts: Sequence[str], widths: Sequence[int], right: int) -> str:
    """One line of a row: the end of the last column is not filled up."""
    filled = []
    for column, (part, width) in enumerate(zip(parts, widths, strict=True)):
        rest = " " * (width - cell_len(part))
        filled.append(rest + part if column == right else part + rest)
    return _GAP.join(filled).rstrip()
