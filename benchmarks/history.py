"""What a night's questions cost in a history of 100,000 measurements: CPU seconds, not time on a clock.

    python benchmarks/history.py [--cells 1000] [--nights 100] [--history FILE|URL]

The history is made for it, in a temporary folder where none is named: every tenth cell has a step of 5 %.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import select

from harness.domain.verdict import ArmSpeed, Verdict
from harness.domain.words import Status, Throughput
from harness.history.history import History
from harness.history.importing import store
from harness.history.looking import look_again
from harness.history.records import ArmRecord, CellRecord, Figure, NodeRecord, RunRecord
from harness.history.series import BuildRef
from harness.history.tables import SeriesRow

_FIRST = date(2026, 1, 1)
_NODE = NodeRecord("node", "hardware", "a machine", "{}")
_BASE = BuildRef("base", "0000000")


def fill(history: History, cells: int, nights: int) -> None:
    """Put all nights but the last in without looking at them, look at all, then import the last as users do."""
    random = np.random.default_rng(1)
    logs = 0.01 * random.normal(size=(nights, cells))
    logs[nights // 2 :, ::10] += math.log(0.95)
    with history.database.writing() as connection:
        for night in range(nights - 1):
            store(connection, _run(night, logs[night]))
        look_again(connection, connection.execute(select(SeriesRow.id)).scalars().all())
    spent(f"import of the last night, {cells} cells", lambda: history.add(_run(nights - 1, logs[-1])))


def _run(night: int, logs: Any) -> RunRecord:
    day = _FIRST + timedelta(days=night)
    began = datetime(day.year, day.month, day.day, tzinfo=UTC)
    head = BuildRef("head", f"c{night:07d}")
    cells = tuple(
        _cell(f"throughput/model/base..head+f={at}/pp512@any", float(log), head) for at, log in enumerate(logs)
    )
    return RunRecord(f"run-{night}", "nightly", day, began, finished=True, source="nowhere", cells=cells)


def _cell(case: str, log: float, head: BuildRef) -> CellRecord:
    ratio = math.exp(log)
    speeds = (ArmSpeed("base", 100.0, 0.01, 8), ArmSpeed("head", 100.0 * ratio, 0.01, 8))
    arms = tuple(ArmRecord(each.label, build, each) for each, build in zip(speeds, (_BASE, head), strict=True))
    verdict = Verdict(case, Status.PASS, "equivalent: as measured", throughput=Throughput.EQUIVALENT, arms=speeds)
    return CellRecord(verdict, Figure(ratio, ratio * 0.98, ratio * 1.02, 4, "ratio"), arms, _NODE, {"ub": "512"})


def spent(what: str, do: Callable[[], Any]) -> Any:
    """Do it and tell what it took."""
    before = time.process_time()
    found = do()
    sys.stdout.write(f"{what}: {time.process_time() - before:.2f} s CPU\n")
    sys.stdout.flush()
    return found


def main() -> None:
    """Make the history and ask it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--nights", type=int, default=100)
    parser.add_argument("--history", default="")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        address = given.history or str(Path(folder) / "history.sqlite")
        with History(address, make=True) as history:
            spent(f"{given.cells * given.nights} measurements made", lambda: fill(history, given.cells, given.nights))
        with History(address) as history:
            last = history.last_night()
            trends = spent("a night: all cells with figures, trends and changes", lambda: history.night(last))
            found = spent("a night: its regressions", lambda: history.regressions(last))
            cell = trends[0].last.cell
            spent("one cell: all nights and series", lambda: (history.verdicts(cell), history.series(cell)))
        sys.stdout.write(f"{len(trends)} cells, {len(found)} regressions\n")


if __name__ == "__main__":
    main()
