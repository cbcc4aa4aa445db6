"""Benchmark of the judge itself: ``python benchmarks/judge.py --write`` remakes docs/explanation/judge-benchmark.md.

Simulated machines, recorded ones, and ones that break the noise model; our rule against fixed thresholds, textbook
tests and two packages. ``--quick`` makes the same tables from few sessions, to see that it runs. ``--write`` puts the
tables between the markers of the page. The seed is fixed: equal sources give equal tables.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from judge_cells import Cell, Task, measure_all
from judge_rare import rare
from judge_report import FULL, QUICK, SECTIONS, Effort

PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "judge-benchmark.md"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
_NOTHING = Cell(0, 0, 0, 1.0, 1)


def tables(effort: Effort, jobs: int) -> str:
    """All sections as Markdown.

    Args:
        effort: How many sessions a cell has.
        jobs: Processes to share the cells out to.
    """
    wanted: dict[Task, Cell] = {}

    def note(task: Task) -> Cell:
        return wanted.setdefault(task, _NOTHING)

    for section in SECTIONS:  # once dry, to learn which cells are needed
        section(effort, note)
    cells = dict(measure_all(list(wanted), jobs))
    return "\n\n".join([*(section(effort, cells.__getitem__) for section in SECTIONS), rare()])


def put_into(page: str, made: str) -> str:
    """The page with new tables between its markers."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{rest.split(END)[1]}"


def _main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few sessions, below a minute: for seeing that it runs")
    parser.add_argument(
        "--write", action="store_true", help=f"put the tables into {PAGE.name} instead of printing them"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes to use")
    asked = parser.parse_args()
    made = tables(QUICK if asked.quick else FULL, asked.jobs)
    if asked.write:
        PAGE.write_text(put_into(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")
    else:
        sys.stdout.write(made + "\n")


if __name__ == "__main__":
    _main()
