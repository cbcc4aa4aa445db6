"""Break a fleet on purpose, again and again, and count what is lost: cases, processes, reports.

    python benchmarks/fault_campaign.py --faults 60 --seed 1

Real raylets (`ray.cluster_utils`), real drivers (`pytest -m moe`), real engines (a wheel on the tiny model). A night is
a run of a small matrix; faults hit it at seeded random moments, one after another. Where a fault ends the driver, the
night is resumed from its journal. Health checks are shortened, so that a frozen host costs seconds.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fault_fleet import Fleet
from fault_kinds import KINDS, SOON, Kind
from fault_nights import Night, Tally


def main() -> int:
    """Run the campaign and print its table; ends with 1 where anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=120.0, help="begin no fault after that")
    parser.add_argument("--soon", action="store_true", help="only the kinds that cost no minute")
    parser.add_argument("--kind", action="append", metavar="NAME", help="only kinds of that name; repeatable")
    parser.add_argument("--keep", type=Path, help="keep journals and logs in this folder")
    parser.add_argument("--json", type=Path, help="write what was counted there")
    told = parser.parse_args()
    kinds = tuple(kind for kind in (SOON if told.soon else KINDS) if told.kind is None or kind.name in told.kind)
    if unknown := set(told.kind or ()) - {kind.name for kind in kinds}:
        parser.error(f"there is no kind {sorted(unknown)}, there are: {', '.join(kind.name for kind in KINDS)}")
    with tempfile.TemporaryDirectory(prefix="moe-faults-") as folder:
        tally = campaign(told.keep or Path(folder), told.faults, told.seed, kinds, told.minutes)
    sys.stdout.write(table(tally))
    if told.json:
        told.json.write_text(json.dumps(tally.as_json(), indent=1))
    return 1 if tally.losses else 0


def campaign(folder: Path, faults: int, seed: int, kinds: tuple[Kind, ...], minutes: float) -> Tally:
    """Inject faults, each kind about as often as the others, in an order that follows from the seed.

    Args:
        folder: For journals and logs.
        faults: How many.
        seed: Of order and moments.
        kinds: Which.
        minutes: No fault is begun after that.
    """
    chance = random.Random(seed)  # noqa: S311 - a seed that can be given again is the point
    left = [kind for _ in range(faults // len(kinds) + 1) for kind in chance.sample(kinds, len(kinds))][:faults]
    tally, until = Tally(), time.monotonic() + minutes * 60
    fleet = Fleet(folder)
    try:
        while left and time.monotonic() < until:
            night = Night(folder / f"night{tally.nights}", fleet, chance, tally)
            while left and night.goes_on and time.monotonic() < until:
                if night.suffers(left[-1]):
                    left.pop()
            night.end()
    finally:
        fleet.close()
    tally.count_orphans(fleet)
    return tally


def table(tally: Tally) -> str:
    """The counts, by kind of fault and in all, as Markdown."""
    lines = ["| fault | injected | what the journal told |", "|---|---|---|"]
    for kind, count in sorted(tally.injected.items()):
        told = ", ".join(f"{slug} {times}" for slug, times in tally.told[kind].most_common()) or "nothing was hurt"
        lines.append(f"| {kind} | {count} | {told} |")
    lines += ["", "| counted | target | found |", "|---|---|---|"]
    lines += [f"| {what} | 0 | {found} |" for what, found in tally.losses_by_name.items()]
    ends = ", ".join(f"{count} {status}" for status, count in Counter(tally.ends).most_common())
    lines += ["", f"{sum(tally.injected.values())} faults in {tally.nights} nights with {tally.planned} cases: {ends}."]
    lines += [f"- {line}" for line in tally.findings]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
