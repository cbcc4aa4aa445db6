"""What a job costs beside its engines: ``python benchmarks/cost_per_job.py``.

Jobs whose engines take no time (a stand-in, ``cost_standin.py``) go the whole way: plan, pytest, dispatcher, Ray,
journal, verdicts, JUnit, page, closing table. Told is CPU time, user and system, per job; what is there once (imports,
Ray's start) drops out, as the difference between a long run and a short one. Beside it empty Ray tasks: as many,
through one slot, as many events each. ``--write docs/explanation/architecture.md`` puts the table into the page.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cost_standin import ONCE
from noise import put_between_markers

BEGIN, END = "<!-- cost: begin -->", "<!-- cost: end -->"
_BLOCKS = 4
_WINDOW = 2
_MATRIX = """
name = "instant"
[builds.ik]
fork = "ik_llama.cpp"
wheel = "ik-llama-cpp-python"
[models.tiny]
card = "tiny-moe"
quant = "IQ4_XS"
[flags]
b = {sizes}
[[workloads]]
pp = 32
[policy]
warmup = 1
repetitions = 2
blocks = {blocks}
burn_in = 1
"""
_MIB = 1024**2


def whole_path(folder: Path, jobs: int) -> dict[str, Any]:
    """Run so many jobs of one case.

    Args:
        folder: A new one, for the run.
        jobs: How many.

    Returns:
        ``cost_standin.Taken`` as JSON.

    Raises:
        RuntimeError: A case was not decided by what the stand-in told.
    """
    (folder / "matrices").mkdir(parents=True)
    sizes = list(range(512, 512 + jobs))
    (folder / "matrices" / "local.toml").write_text(_MATRIX.format(sizes=sizes, blocks=_BLOCKS), encoding="utf-8")
    argv = [sys.executable, "-m", "pytest", "-q", "-m", "moe", "-p", "cost_standin", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "MOE_COST": str(folder / "cost.json")}
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if f"{jobs} passed" not in done.stdout:
        raise RuntimeError(f"not all of {jobs} cases passed: {done.stdout[-2000:]} {done.stderr[-2000:]}")
    taken: dict[str, Any] = json.loads((folder / "cost.json").read_text(encoding="utf-8"))
    return taken


def empty_tasks(jobs: int) -> dict[str, float]:
    """Ray alone: so many streaming tasks through one slot, a window of two, each with a job's number of events.

    Returns:
        Seconds of CPU of the driver and of Ray's processes.
    """
    import ray  # noqa: PLC0415 - only the child that is started for this needs it
    from cost_standin import cpu_of_others, events_of  # noqa: PLC0415

    from harness.execution.offers import SLOT  # noqa: PLC0415
    from harness.execution.ray_join import embed  # noqa: PLC0415

    @ray.remote(max_retries=0, num_cpus=0, max_calls=0)
    def empty(events: int) -> Iterator[int]:
        yield from (number for number in range(events))  # Ray wants a generator

    embed(resources={SLOT: 1}, num_cpus=1, object_store_memory=100 * _MIB)
    task = empty.options(resources={SLOT: 1})

    def stream(count: int) -> None:
        waiting = deque(task.remote(events_of(_BLOCKS)) for _ in range(min(_WINDOW, count)))
        left = count - len(waiting)
        while waiting:
            done, _ = ray.wait(list(waiting), num_returns=1, timeout=10, fetch_local=False)
            for each in done:
                try:
                    ray.get(next(each))
                except StopIteration:
                    waiting.remove(each)
                    if left:
                        left -= 1
                        waiting.append(task.remote(events_of(_BLOCKS)))

    stream(20)
    driver, others = time.process_time(), cpu_of_others()
    stream(jobs)
    taken = {"driver_s": time.process_time() - driver, "others_s": cpu_of_others() - others}
    ray.shutdown()
    return taken


def table(few: int, many: int, short: dict[str, Any], long: dict[str, Any], empty: dict[str, float]) -> list[str]:
    """Milliseconds a job by part, and the memory, as lines of Markdown."""

    def per_job(before: float, after: float) -> float:
        return 1000 * (after - before) / (many - few)

    names = [name for name in long["driver_s"] if name != ONCE]
    parts = {name: per_job(short["driver_s"][name], long["driver_s"][name]) for name in names}
    others = per_job(short["others_s"], long["others_s"])
    ray_driver, ray_others = (1000 * empty[name] / many for name in ("driver_s", "others_s"))
    over = sum(parts.values()) + others - ray_driver - ray_others
    rows = [*((f"driver: {name}", took) for name, took in parts.items()), ("Ray's processes and workers", others)]
    rows += [("empty tasks: driver", -ray_driver), ("empty tasks: Ray's processes and workers", -ray_others)]
    rss = {int(cases): size / _MIB for cases, size in long["rss_bytes"].items()}
    middle = min(rss, key=lambda cases: abs(cases - many // 4))
    grown = (rss[max(rss)] - rss[middle]) / (max(rss) - middle)
    sizes = f"{rss[middle]:.0f} MiB after {middle} cases, {rss[max(rss)]:.0f} MiB after {max(rss)}"
    return [
        "| part | CPU, ms a job |",
        "|---|---|",
        *(f"| {name} | {took:.2f} |" for name, took in rows),
        f"| **over Ray's own cost** | **{over:.2f}** |",
        "",
        f"Memory of the driver: {sizes}, {1024 * grown:.1f} KiB a case.",
    ]


def main(argv: Sequence[str]) -> int:
    """Measure, print the table, and put it into a page if one is named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--few", type=int, default=200, help="jobs of the short run, which is taken off")
    parser.add_argument("--write", type=Path, help="page to put the table into")
    parser.add_argument("--empty", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args(argv)
    if asked.empty:
        sys.stdout.write(json.dumps(empty_tasks(asked.empty)))
        return 0
    with tempfile.TemporaryDirectory(prefix="moe-cost-") as folder:
        alone = [sys.executable, __file__, "--empty", str(asked.jobs)]
        empty = json.loads(subprocess.run(alone, capture_output=True, text=True, check=True).stdout)
        short, long = (whole_path(Path(folder) / f"{count}", count) for count in (asked.few, asked.jobs))
    load = f"one-minute load {os.getloadavg()[0]:.1f}"
    what = (
        f"{asked.jobs} jobs of one case and {1 + _BLOCKS} processes, less {asked.few}; {os.cpu_count()} cores, {load}."
    )
    lines = [what, "", *table(asked.few, asked.jobs, short, long, empty)]
    sys.stdout.write("\n".join(lines) + "\n")
    if asked.write:
        page = asked.write.read_text(encoding="utf-8")
        asked.write.write_text(put_between_markers(page, lines, BEGIN, END), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
