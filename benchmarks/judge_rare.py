"""Rare false gates: ``python benchmarks/judge_rare.py --sessions 3000000`` judges unchanged sessions by the real rule.

Counts are added to ``benchmarks/data/rare.json``, with a fingerprint of what the rule decides: counts of another rule
are dropped. Each run draws on where the one before ended. What is found is nominal: it holds under the noise model.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from judge_cells import MAX_QUADS, machines
from judge_noise import QUAD_STARTS, margin_for, quad_sd
from judge_ours import BURN_IN_STARTS, KNOWN, UNKNOWN, judge_sessions
from scipy.special import betaincinv

from harness.judging.sequential import Limits

FILE = Path(__file__).parent / "data" / "rare.json"
ALPHA = 1e-5
MACHINES = ("quad SD 1.0%", "quad SD 3.4%")
KNOWLEDGE = {told.name: told for told in (UNKNOWN, KNOWN)}
_CHUNK = 1000
_CONFIDENCE = 0.95


@dataclass(slots=True)
class Count:
    """Unchanged sessions of one machine, judged.

    Attributes:
        machine: Its name.
        knowledge: What the rule was told of the scatter.
        sessions: Cases.
        quads: Quads that they took.
        slower: Cases called regressed: false gates.
        faster: Cases called improved.
    """

    machine: str
    knowledge: str
    sessions: int = 0
    quads: int = 0
    slower: int = 0
    faster: int = 0


def upper_bound(errors: int, cases: int) -> float:
    """Clopper and Pearson's one-sided 95 % upper bound of an error rate, exact for any count."""
    return float(betaincinv(errors + 1, cases - errors, _CONFIDENCE)) if errors < cases else 1.0


@cache
def _limits(machine: str) -> Limits:
    return Limits(ALPHA, margin_for(quad_sd(machines()[machine], np.random.default_rng(1))), MAX_QUADS)


def count(machine: str, knowledge: str, seed: int) -> Count:
    """Judge one chunk of unchanged sessions."""
    source, rng = machines()[machine], np.random.default_rng([seed, MACHINES.index(machine), len(knowledge)])
    judged = judge_sessions(source, _CHUNK, 0.0, _limits(machine), knowledge=KNOWLEDGE[knowledge], rng=rng)
    quads = int((judged.starts - BURN_IN_STARTS).sum()) // QUAD_STARTS
    slower, faster = int((judged.words < 0).sum()), int((judged.words > 0).sum())
    return Count(machine, knowledge, _CHUNK, quads, slower, faster)


def fingerprint() -> str:
    """Which rule it is: what it decides of some sessions, and when."""
    said = []
    for machine, told, effect in product(MACHINES, KNOWLEDGE.values(), (0.0, -0.03, -0.7)):
        rng = np.random.default_rng(1)
        judged = judge_sessions(machines()[machine], 25, effect, _limits(machine), knowledge=told, rng=rng)
        said.append((judged.words.tolist(), judged.equivalent.tolist(), judged.starts.tolist()))
    return hashlib.sha256(repr(said).encode()).hexdigest()[:16]


def stored() -> tuple[str, list[Count]]:
    """The fingerprint of the rule that was counted, and the counts."""
    if not FILE.is_file():
        return "", []
    file = json.loads(FILE.read_text(encoding="utf-8"))
    return file["rule"], [Count(**entry) for entry in file["counts"]]


def rare() -> str:
    """The section of the page."""
    rule, counts = stored()
    head = "| machine | spread | cases | quads | regressed | improved | false gates per case, 95 % upper bound |"
    lines = [head, "|" + "---|" * (head.count("|") - 1), *map(_row, counts)]
    note = "" if rule == fingerprint() else "Counted for an earlier rule: run `judge_rare.py` again.\n\n"
    return "### Rare false gates, alpha 1e-05\n\n" + note + "\n".join(lines)


def _row(entry: Count) -> str:
    told = entry.knowledge.removeprefix("spread ")
    figures = f"{entry.sessions:,} | {entry.quads:,} | {entry.slower} | {entry.faster}"
    return f"| {entry.machine} | {told} | {figures} | {upper_bound(entry.slower, entry.sessions):.1e} |"


def _seeds(sessions: int, asked: Sequence[str], done: list[Count]) -> Iterator[tuple[str, str, int]]:
    for machine in asked:
        for knowledge in KNOWLEDGE:
            had = sum(each.sessions for each in done if (each.machine, each.knowledge) == (machine, knowledge))
            for seed in range(had // _CHUNK, (had + sessions) // _CHUNK):
                yield machine, knowledge, seed


def _main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sessions", type=int, required=True, help="cases to add for each machine and spread")
    parser.add_argument("--machine", choices=MACHINES, action="append", help="this one only; repeatable")
    parser.add_argument("--jobs", type=int, default=2, help="processes to use")
    asked = parser.parse_args()
    rule, counts = stored()
    sums = {(each.machine, each.knowledge): each for each in counts if rule == fingerprint()}
    with ProcessPoolExecutor(asked.jobs) as pool:
        for part in pool.map(
            count,
            *zip(*_seeds(asked.sessions, asked.machine or MACHINES, list(sums.values())), strict=True),
            chunksize=10,
        ):
            total = sums.setdefault((part.machine, part.knowledge), Count(part.machine, part.knowledge))
            for name in ("sessions", "quads", "slower", "faster"):
                setattr(total, name, getattr(total, name) + getattr(part, name))
    made = {"rule": fingerprint(), "counts": [asdict(total) for total in sums.values()]}
    FILE.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _main()
