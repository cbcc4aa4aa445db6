"""What the harness costs over its engines alone: ``python benchmarks/overhead.py JOURNAL``.

Ratios and differences of one run, no absolute claim: the sum of the engine processes' wall times against the time
between the first and the last line of the journal. The run must have used one slot.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any


def measure(events: list[dict[str, Any]]) -> dict[str, float]:
    """The figures of one run.

    Args:
        events: The journal's lines.

    Returns:
        Seconds, milliseconds and ratios by name.
    """
    times = [datetime.fromisoformat(event["t"]).timestamp() for event in events]
    by_name = [(event["event"], time) for event, time in zip(events, times, strict=True)]
    engines = [event["run"]["wall_s"] for event in events if event["event"] == "process"]
    cases = sum(name == "verdict" for name, _ in by_name)
    started = [time for name, time in by_name if name == "job_started"]
    finished = [time for name, time in by_name if name == "job_finished"]
    in_jobs = sum(finished) - sum(started)
    engine_s = sum(engines)
    return {
        "engine processes": len(engines),
        "cases": cases,
        "engines alone, s": engine_s,
        "wall over engines": (times[-1] - times[0]) / engine_s,
        "start to first job, s": started[0] - times[0],
        "in jobs over engines": in_jobs / engine_s,
        "ms a process in jobs": 1000 * (in_jobs - engine_s) / len(engines),
        "ms a case once started": 1000 * (times[-1] - started[0] - engine_s) / cases,
    }


if __name__ == "__main__":
    lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    for name, figure in measure([json.loads(line) for line in lines]).items():
        sys.stdout.write(f"{name:24} {figure:10.3f}\n")
