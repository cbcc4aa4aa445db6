"""Attributions on simulated machines: ``python benchmarks/attribution.py`` remakes the table of its explanation page.

Each session runs blocks of four arms in the order of a real job, with independent noise of each process and a random
walk of the machine under them, and is judged by the rule as it is. The seed is fixed: equal sources give equal tables.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.domain.job import block_order
from harness.domain.words import Throughput
from harness.judging.attribution import Attribution, judge_blocks
from harness.judging.sequential import Limits

ALPHA, MARGIN, BLOCKS = 0.001, 0.03, 24
DIFFERENT = (Throughput.REGRESSED, Throughput.IMPROVED)


@dataclass(frozen=True, slots=True)
class Machine:
    """A process's own noise, and the steps of the random walk from process to process: SD of log speeds."""

    process_sd: float
    drift_sd: float


@dataclass(frozen=True, slots=True)
class Change:
    """What was planted: log effects of the four arms (old/old, old/new, new/old, new/new)."""

    name: str
    arms: tuple[float, float, float, float]


def changes() -> Iterator[Change]:
    """Nothing; then a loss of the first factor alone, and one that only both together have."""
    yield Change("nothing", (0.0, 0.0, 0.0, 0.0))
    for loss in (0.02, 0.03, 0.05, 0.10):
        log = math.log1p(-loss)
        yield Change(f"first -{100 * loss:.0f} %", (0.0, 0.0, log, log))
        yield Change(f"together -{100 * loss:.0f} %", (0.0, 0.0, 0.0, log))


def session(machine: Machine, change: Change, rng: random.Random) -> Attribution:
    """One job, as long as its schedule."""
    seed, level = str(rng.random()), 0.0
    blocks: list[tuple[float, ...]] = []
    for block in range(BLOCKS):
        logs = list(change.arms)
        for arm in block_order(len(change.arms), block, seed):
            level += rng.gauss(0, machine.drift_sd)
            logs[arm] += level + rng.gauss(0, machine.process_sd)
        blocks.append(tuple(logs))
    return judge_blocks(blocks, ("first", "second"), Limits(ALPHA, MARGIN, BLOCKS))


def row(machine: Machine, change: Change, sessions: int) -> str:
    """One line of the table."""
    rng = random.Random(f"{machine} {change}")  # noqa: S311 - noise, not a secret
    found = [session(machine, change, rng) for _ in range(sessions)]
    effects = ("first", "second", "interaction")
    shares = [_share([getattr(each, effect).throughput in DIFFERENT for each in found]) for effect in effects]
    any_of = _share([any(effect.throughput in DIFFERENT for effect in each.effects[:3]) for each in found])
    figures = " | ".join([f"{100 * machine.process_sd:g} %", f"{100 * machine.drift_sd:g} %", change.name])
    return f"| {figures} | {' | '.join(shares)} | {any_of} |"


def _share(hits: Sequence[bool]) -> str:
    return f"{100 * sum(hits) / len(hits):.2f} %"


def _main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--sessions", type=int, default=1000, help="of each line; ten times as many where nothing changed"
    )
    asked = parser.parse_args()
    machines = [Machine(sd, 0.005) for sd in (0.01, 0.02, 0.035)]
    lines = [
        "| process SD | drift | planted | first differs | second differs | interaction differs | any |",
        "|---" * 7 + "|",
    ]
    lines += [
        row(machine, change, asked.sessions * (1 if any(change.arms) else 10))
        for machine in machines
        for change in changes()
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    _main()
