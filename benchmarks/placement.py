"""How long nights take on mixed fleets, over what no schedule can beat: the dispatcher's planner of order and rivals.

The planner is the one that the dispatcher asks (`harness.execution.order`); only the jobs are simulated. Seeds of these
nights begin at 1. It was tuned on others, from 10,000 on.

    python benchmarks/placement.py [--nights 20] [--format json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from placement_bound import lower_bound
from placement_nights import night
from placement_rivals import Affinity, FirstCome, LongestFirst, Planner
from placement_run import run_night

from harness.execution.order import Order

SIZES = ((4, 125), (8, 250), (16, 500), (32, 1000), (64, 2000), (4, 24), (16, 96))
"""Nodes and jobs: long nights, and short ones in which a slot gets six jobs."""
WAYS: Mapping[str, Callable[[], Planner]] = {
    "first come": FirstCome,
    "longest first": LongestFirst,
    "model affinity": Affinity,
    "ours": Order,
}
OURS = "ours"


@dataclass(frozen=True, slots=True)
class Row:
    """Nights of one size.

    Attributes:
        nodes: Nodes of each.
        jobs: Jobs of each.
        ratios: By way of planning, end over lower bound of each night.
        loads: By way of planning, models loaded in each night.
        cpu_s: CPU time of all decisions of our planner in each night.
    """

    nodes: int
    jobs: int
    ratios: Mapping[str, Sequence[float]]
    loads: Mapping[str, Sequence[int]]
    cpu_s: Sequence[float]


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nights", type=int, default=20, help="nights of each size (default: 20)")
    parser.add_argument("--first-seed", type=int, default=1, help="seed of the first night (default: 1)")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    asked = parser.parse_args(arguments)
    seeds = range(asked.first_seed, asked.first_seed + asked.nights)
    rows = [measured(nodes, jobs, seeds) for nodes, jobs in SIZES]
    shown = [as_data(row) for row in rows]
    sys.stdout.write((json.dumps(shown) if asked.format == "json" else "\n".join(table(rows))) + "\n")


def measured(nodes: int, jobs: int, seeds: Sequence[int], ways: Mapping[str, Callable[[], Planner]] = WAYS) -> Row:
    """Nights of one size.

    Args:
        nodes: Nodes of each.
        jobs: Jobs of each.
        seeds: One for each night.
        ways: Planners by name.
    """
    ratios: dict[str, list[float]] = {way: [] for way in ways}
    loads: dict[str, list[int]] = {way: [] for way in ways}
    cpu_s = []
    for seed in seeds:
        tonight = night(nodes, jobs, seed)
        bound = lower_bound(tonight)
        for way, make in ways.items():
            outcome = run_night(tonight, make())
            ratios[way].append(outcome.end_s / bound)
            loads[way].append(outcome.loads)
            if way == OURS:
                cpu_s.append(outcome.cpu_s)
    return Row(nodes, jobs, ratios, loads, cpu_s)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """As Markdown: mean, and the worst night in brackets."""
    yield f"| nodes | jobs | {' | '.join(WAYS)} | loads, first come and ours | CPU s of a night's plan, at most |"
    yield "|---" * (len(WAYS) + 4) + "|"
    for row in rows:
        cells = [f"{statistics.mean(found):.2f} ({max(found):.2f})" for found in row.ratios.values()]
        loads = [f"{statistics.mean(row.loads[way]):.0f}" for way in ("first come", OURS)]
        yield f"| {row.nodes} | {row.jobs} | {' | '.join(cells)} | {', '.join(loads)} | {max(row.cpu_s):.2f} |"


def as_data(row: Row) -> dict[str, object]:
    """A row for machines."""
    return {
        "nodes": row.nodes,
        "jobs": row.jobs,
        "ratios": row.ratios,
        "loads": row.loads,
        "cpu_s": row.cpu_s,
    }


if __name__ == "__main__":
    main()
