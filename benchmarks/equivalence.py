"""How often outputs of sound and broken ways of running are told apart: hits and false alarms, by contrast and budget.

Networks of random weights are run by both wheels, in ways that leave them as they are and with planted faults. Each
engine is a fresh child process, started, asked and read as in any run; what it said is kept and judged by the product's
own judge. Tolerances come from the calibration networks alone; the scored ones are others, some of another shape.

    python benchmarks.equivalence.py [--work FOLDER] [--minutes 600] [--quick] [--judge-only] [--floors]

It goes on where it stopped. ``--floors`` prints what the calibration networks showed: the numbers of
``harness.judging.tolerances`` were fixed by it before the scored networks were run.
"""

from __future__ import annotations

import argparse
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

CALIBRATION = (
    Net("tiny", 1, Role.CALIBRATION), Net("tiny", 101, Role.CALIBRATION), Net("wide", 201, Role.CALIBRATION)
)  # fmt: skip
FAULTY = (Net("tiny", 102, Role.SCORED), Net("short", 301, Role.SCORED))
SCORED = (*FAULTY, Net("tiny", 103, Role.SCORED), Net("short", 302, Role.SCORED), Net("wide", 202, Role.SCORED))
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
    """What is run, in an order that gives a table at any time: coarse weights first, where it is hardest."""
    for net in CALIBRATION:
        yield from _runs(root, net, QUANTS if net.shape == "tiny" else QUANTS[::3])
    for half in (("IQ4_XS", "Q8_0"), ("F16", "Q4_K_M")):
        for net in FAULTY:
            yield from _runs(root, net, half)
    for net in SCORED[len(FAULTY) :]:
        yield from _runs(root, net, QUANTS)
    for net in (*CALIBRATION, *SCORED):
        for quant in QUANTS:
            yield Kept(root, net, quant), list(harmless_ways(threads=True))


def _runs(root: Path, net: Net, quants: Sequence[str]) -> Iterator[tuple[Kept, list[Way]]]:
    for quant in quants:
        yield Kept(root, net, quant), [*harmless_ways(), *(broken_ways(net.seed) if net in FAULTY else ())]


if __name__ == "__main__":
    main()
