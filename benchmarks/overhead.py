"""What the harness costs over its engines alone: ``python benchmarks/overhead.py``.

Two matrices on the tiny model, without Ray: one whose processes take seconds, one of short ones. The wall time of each
run, and of its parts, over the sum of the wall times of its engine processes. ``--journal FILE`` tells the same of a
run of your own, but for its start and its reports; it must have used one slot. ``--write docs/explanation/speed.md``
puts the table into the page.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from noise import put_between_markers

from harness.execution.node import probe_node
from harness.judging.wording import node_text

BEGIN, END = "<!-- overhead: begin -->", "<!-- overhead: end -->"
_MATRIX = """
name = "overhead"
[builds.ik]
fork = "ik_llama.cpp"
wheel = "ik-llama-cpp-python"
[models.tiny]
card = "tiny-moe"
quant = "IQ4_XS"
[flags]
t = 1
ub = {batches}
[[workloads]]
pp = 128
[[workloads]]
pp = 256
[[workloads]]
tg = 8
[[workloads]]
tg = 16
[policy]
warmup = 1
repetitions = {kept}
burn_in = 1
blocks = 2
"""
_SHORT, _LONG = ([32, 64, 96, 128, 192, 256], 1), ([64, 256], 19)
"""Batches, each an arm of four cases, and repetitions."""


def measure(events: list[dict[str, Any]], whole_s: float | None = None) -> dict[str, float]:
    """The figures of one run.

    Args:
        events: The journal's lines.
        whole_s: What its command took from start to end, where that is known.

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
    once_started_s = finished[-1] - started[0]
    found = {
        "engine processes": float(len(engines)),
        "cases": float(cases),
        "engines alone, s": engine_s,
        "a process, s": engine_s / len(engines),
        "once started, over engines": once_started_s / engine_s,
        "ms a case once started": 1000 * (once_started_s - engine_s) / cases,
        "ms a process in jobs": 1000 * (in_jobs - engine_s) / len(engines),
    }
    if whole_s is not None:
        found["start and reports, s"] = whole_s - once_started_s
        found["whole command, over engines"] = whole_s / engine_s
    return found


def run(batches: Sequence[int], kept: int) -> dict[str, float]:
    """Run a matrix and measure it."""
    with tempfile.TemporaryDirectory(prefix="moe-overhead-") as place:
        folder = Path(place)
        (folder / "m.toml").write_text(_MATRIX.format(batches=list(batches), kept=kept), encoding="utf-8")
        argv = [sys.executable, "-m", "pytest", "-q", "-m", "moe", "--matrix=m.toml", "--moe-executor=local"]
        environment = {**os.environ, "MOE_LOCK_DIR": place}  # to wait for another measurement is no cost of this one
        began = time.monotonic()
        subprocess.run([*argv, "-p", "no:cacheprovider"], cwd=folder, env=environment, capture_output=True, check=False)
        whole_s = time.monotonic() - began
        return measure(read(folder / "moe-reports" / "journal.jsonl"), whole_s)


def read(journal: Path) -> list[dict[str, Any]]:
    """The journal's lines."""
    return [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]


def table(found: dict[str, dict[str, float]]) -> list[str]:
    """Runs beside each other, as lines of Markdown."""
    rows = [f"| | {' | '.join(found)} |", f"|---|{'---|' * len(found)}"]
    for name in dict.fromkeys(name for figures in found.values() for name in figures):
        told = (f"{figures[name]:.3f}".rstrip("0").rstrip(".") for figures in found.values())
        rows.append(f"| {name} | {' | '.join(told)} |")
    return rows


def main(argv: Sequence[str]) -> int:
    """Measure, print the table, and put it into a page if one is named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--journal", type=Path, help="of a run of your own, in place of running something")
    parser.add_argument("--write", type=Path, help="page to put the table into")
    asked = parser.parse_args(argv)
    if asked.journal:
        sys.stdout.write("\n".join(table({"this run": measure(read(asked.journal))})) + "\n")
        return 0
    load = os.getloadavg()[0]
    found = {"short processes": run(*_SHORT), "long processes": run(*_LONG)}
    what = f"On {node_text(probe_node())}, one-minute load {load:.1f} before, {os.getloadavg()[0]:.1f} after."
    lines = [what, "", *table(found)]
    sys.stdout.write("\n".join(lines) + "\n")
    if asked.write:
        page = asked.write.read_text(encoding="utf-8")
        asked.write.write_text(put_between_markers(page, lines, BEGIN, END), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
