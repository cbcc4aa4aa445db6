"""How often outputs of sound and broken ways of running are told apart: hits and false alarms, by contrast and budget.

Networks of random weights are run by both wheels, in ways that leave them as they are and with planted faults. Each
engine is a fresh child process, started, asked and read as in any run; what it said is kept and judged by the product's
own judge. Tolerances come from the calibration networks alone; the scored ones are others, some of another shape.

    python benchmarks/equivalence.py [--work FOLDER] [--minutes 600] [--quick] [--judge-only] [--floors]

It goes on where it stopped. ``--floors`` prints what the calibration networks showed: the numbers of
``harness.judging.tolerances`` were fixed by it before the scored networks were run.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from equivalence_plan import QUANTS, Net, Role, Way, broken_ways, harmless_ways
from equivalence_report import floors, report
from equivalence_runs import Kept, run_all
from equivalence_score import figures_of, harmless_pairs, planted_pairs

from harness.domain.tolerance import ContrastClass, Figures
from harness.judging.tolerances import largest, with_surplus
from harness.models.corruptions import Kind

CALIBRATION = tuple(
    Net(shape, seed, Role.CALIBRATION)
    for shape, seed in (
        ("tiny", 1), ("tiny", 101), ("wide", 201), ("tiny", 102), ("short", 301),
        ("tiny", 103), ("short", 302), ("wide", 202), ("tiny", 401), ("short", 601), ("wide", 501), ("lean", 701),
        ("tiny", 402),
    )
)  # fmt: skip
KNOWN_FAULTS = CALIBRATION[3:5]
"""Faults on these were looked at while surpluses were chosen."""
FAULTY = (Net("tiny", 411, Role.SCORED), Net("short", 611, Role.SCORED))
SCORED = (*FAULTY, Net("wide", 511, Role.SCORED), Net("lean", 711, Role.SCORED), Net("deep", 811, Role.SCORED))
"""In the first ones faults are planted. One shape is not among those of the calibration."""
_SECONDS = 60.0
_QUICK = (str(Kind.FEWER_EXPERTS), "position-gap")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("equivalence"), help="folder of models and answers")
    parser.add_argument("--minutes", type=float, default=600.0, help="no process is begun after that")
    parser.add_argument("--quick", action="store_true", help="one small network")
    parser.add_argument("--judge-only", action="store_true", help="run nothing")
    parser.add_argument("--floors", action="store_true", help="what calibration networks showed, and no verdicts")
    asked = parser.parse_args(arguments)
    until = time.monotonic() + (0.0 if asked.judge_only else asked.minutes * _SECONDS)
    planned = list(quick(asked.work) if asked.quick else campaign(asked.work))
    for kept, ways in planned:
        started = run_all(kept, ways, lambda: time.monotonic() < until)
        if started:
            sys.stderr.write(f"{time.strftime('%H:%M:%S')} {kept.net.name} {kept.quant}: {started} processes\n")
    kinds = list(dict.fromkeys(kept for kept, _ in planned))
    sys.stdout.write(_floors(kinds) if asked.floors else _verdicts(kinds))


def _verdicts(kinds: Sequence[Kept]) -> str:
    scored = [kept for kept in kinds if kept.net.role is Role.SCORED]
    harmless = [judged for kept in scored for judged in harmless_pairs(kept)]
    planted = [judged for kept in scored for judged in planted_pairs(kept)]
    return report(harmless, planted)


def _floors(kinds: Sequence[Kept]) -> str:
    seen: dict[tuple[str, ContrastClass], list[Figures]] = {}
    for kept in kinds:
        for contrast, figures in figures_of(kept) if kept.net.role is Role.CALIBRATION else ():
            seen.setdefault((kept.quant, contrast), []).append(figures)
    most = {kind: found for kind, listed in seen.items() if (found := largest(listed))}
    return floors((quant, contrast, found, with_surplus(found)) for (quant, contrast), found in most.items())


def quick(root: Path) -> Iterator[tuple[Kept, list[Way]]]:
    """One network, two harmless ways and two faults on each fork: seconds, and every step of the campaign."""
    net = Net("short", 1, Role.SCORED)
    ways = [*(way for way in harmless_ways() if way.name.endswith(("-base", "-fa0"))), *broken_ways(1, only=_QUICK)]
    yield Kept(root, net, "F16"), [replace(way, prompts=2) for way in ways]


def campaign(root: Path) -> Iterator[tuple[Kept, list[Way]]]:
    """What is run, in an order that gives a table at any time."""
    for net in CALIBRATION:
        faults = list(broken_ways(net.seed)) if net in KNOWN_FAULTS else []
        for quant in QUANTS[::3] if net.shape == "wide" else QUANTS:
            yield Kept(root, net, quant), [*harmless_ways(), *faults]
    for net, quant in itertools.product(FAULTY, QUANTS):
        yield Kept(root, net, quant), list(harmless_ways(combined=True))
    for net, quant in itertools.product(FAULTY, QUANTS):
        yield Kept(root, net, quant), list(broken_ways(net.seed))
    for net, quant in itertools.product(SCORED[len(FAULTY) :], QUANTS):
        yield Kept(root, net, quant), list(harmless_ways(combined=True))
    for net, quant in itertools.product((*CALIBRATION, *SCORED), QUANTS):
        yield Kept(root, net, quant), list(harmless_ways(threads=True))


if __name__ == "__main__":
    main()
