"""What tables are printed on."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table


def stdout_console(pipe_width: int) -> Console:
    """Standard output: a terminal is as wide as it is, a pipe as wide as a table wants.

    Args:
        pipe_width: Columns of what is no terminal.
    """
    return Console() if sys.stdout.isatty() else Console(width=pipe_width)


def plain_table(*headings: str) -> Table:
    """A table without lines, whose long cells are folded.

    Args:
        headings: Of its columns.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table
