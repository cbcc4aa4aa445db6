"""A night: a real driver on a small matrix, broken and resumed, and in the end held against its journal."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import psutil
from fault_fleet import Fleet, Node, command, say
from fault_kinds import Kind

from harness.models.cache import ensure_model
from harness.reporting.projections import write_projections
from harness.reporting.replay import read_journal

_MATRIX = """
name = "night"
[builds.ik]
fork = "ik_llama.cpp"
wheel = "ik-llama-cpp-python"
{models}
[flags]
fa = [0, 1]
[[workloads]]
pp = 32
[policy]
warmup = 1
repetitions = 2
blocks = 4
burn_in = 1
timeout_s = 6.0
margin = 0.05
alpha = 0.001
"""
MODELS = 4
_PATIENCE_S = 240.0
_DRIVER_PATIENCE_S = 75.0
"""For a driver that has to end: a lost head is known after twenty seconds."""
_MOMENT_S = 1.0
_IN_ORDER = (0, 1, 2, 3)
"""pytest's own exit codes; what was measured when a head dies comes in all the same, and can be the last of a night."""
_REPLACED_AFTER_S = 4.0
_ANY_MOMENT_S = 8.0


@dataclass
class Tally:
    """What a campaign counts."""

    nights: int = 0
    planned: int = 0
    injected: Counter[str] = field(default_factory=Counter)
    told: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    ends: Counter[str] = field(default_factory=Counter)
    losses_by_name: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("lost cases", "double results", "orphan processes", "invalid JUnit", "drivers that hung or crashed"), 0
        )
    )
    findings: list[str] = field(default_factory=list)

    @property
    def losses(self) -> int:
        """All that must be zero."""
        return sum(self.losses_by_name.values())

    def lose(self, what: str, found: list[str]) -> None:
        """Count what was lost, and say it."""
        self.losses_by_name[what] += len(found)
        self.findings += [f"{what}: {each}" for each in found]
        for each in found:
            say(f"LOST {what}: {each}")

    def count_orphans(self, fleet: Fleet) -> None:
        """After a run, and after the fleet is down."""
        self.lose("orphan processes", fleet.orphans())

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return {
            "nights": self.nights,
            "planned": self.planned,
            "injected": dict(self.injected),
            "told": {kind: dict(slugs) for kind, slugs in self.told.items()},
            "ends": dict(self.ends),
            "losses": self.losses_by_name,
            "findings": self.findings,
        }


@dataclass
class Target:
    """What a fault can hit."""

    fleet: Fleet
    driver: psutil.Process
    journal: Path
    engine: psutil.Process
    worker: psutil.Process
    raylet: psutil.Process
    gcs: psutil.Process
    node: Node


class Night:
    """One night.

    Args:
        folder: Of its matrix and reports.
        fleet: Where it runs.
        chance: Of the moments.
        tally: Where it is counted.
    """

    def __init__(self, folder: Path, fleet: Fleet, chance: random.Random, tally: Tally) -> None:
        self._folder, self._fleet, self._chance, self._tally = folder, fleet, chance, tally
        self._reports = folder / "moe-reports"
        self._hit: list[tuple[str, int]] = []
        folder.mkdir(parents=True)
        model = ensure_model("tiny-moe", "IQ4_XS")
        models = "\n".join(f'[models.m{number}]\npath = "{model}"' for number in range(MODELS))
        (folder / "night.toml").write_text(_MATRIX.format(models=models))
        tally.nights += 1
        self._driver = self._start()

    @property
    def goes_on(self) -> bool:
        """Whether there is something left to hit: a driver that runs, and jobs that are not over."""
        return self._driver.poll() is None

    def suffers(self, kind: Kind) -> bool:
        """Wait for the moment, inject a fault, and go on after it; false where the night was over before it came."""
        target = self._moment(kind)
        if target is None:
            self._driver_ended()
            return False
        self._tally.injected[kind.name] += 1
        self._hit.append((kind.name, self._size()))
        say(f"{kind.name}")
        with suppress(psutil.Error):
            kind.inject(target)
        if kind.ends_driver:
            self._driver_ended()
            self._check_exit(kind)
            if kind.ends_head:
                self._fleet.rebuild()
            self._fleet.repair()
            self._driver = self._start("--moe-resume=moe-reports")
        else:
            self._until_it_got_over(kind.shows_within_s)
            self._fleet.switch_off_frozen()
        return True

    def end(self) -> None:
        """Wait for its end, resume what a fault has ended, and hold it against its journal."""
        self._driver_ended()
        if self._unfinished():
            self._driver = self._start("--moe-resume=moe-reports")
            self._driver_ended()
        self._fleet.repair()
        self._count()

    # ---- driving -----------------------------------------------------------------------------------------------------

    def _start(self, *more: str) -> subprocess.Popen[bytes]:
        line = [sys.executable, "-m", "pytest", "-m", "moe", "--matrix=night.toml", "-p", "no:cacheprovider", "-q"]
        log = (self._folder / "driver.log").open("ab")
        fresh = more if (self._reports / "journal.jsonl").exists() else ()
        return subprocess.Popen(
            [*line, f"--ray-address={self._fleet.address}", *fresh],
            cwd=self._folder,
            stdout=log,
            stderr=log,
            env={**os.environ, "MOE_SPREADS": str(self._folder / "spreads.json"), "CI": "1"},
        )

    def _moment(self, kind: Kind) -> Target | None:
        """A random moment: of a fault that needs none, any; of others one at which an engine runs."""
        if kind.any_moment and self._chance.random() < 0.5:  # noqa: PLR2004 - half of them
            time.sleep(self._chance.uniform(0, _ANY_MOMENT_S))
            if not self.goes_on:
                return None
            nobody: Any = None
            return Target(self._fleet, self._process, self._journal, nobody, nobody, nobody, self._fleet.gcs, nobody)
        later = self._chance.uniform(0, _MOMENT_S)
        give_up = time.monotonic() + _PATIENCE_S
        while self.goes_on and time.monotonic() < give_up:
            if (target := self._target()) is not None:
                time.sleep(later)
                return self._target() or target
            time.sleep(0.02)
        return None

    def _target(self) -> Target | None:
        for engine in self._fleet.engines():
            with suppress(psutil.Error):
                above = engine.parents()
                worker = next((each for each in above if command(each).startswith("ray::")), None)
                for node in self._fleet.nodes:
                    raylet = node.raylet
                    if worker and raylet and raylet in above and not node.frozen:
                        gcs = self._fleet.gcs
                        return Target(self._fleet, self._process, self._journal, engine, worker, raylet, gcs, node)
        return None

    def _until_it_got_over(self, shows_within_s: float) -> None:
        """Until the journal tells of the fault, if it hurt anything, and a process has ended well since."""
        begin, now = self._size(), time.monotonic()
        while self.goes_on and time.monotonic() < now + _PATIENCE_S:
            if time.monotonic() > now + _REPLACED_AFTER_S:
                self._fleet.replace_dead()
            events = self._events(begin)
            shown = time.monotonic() > now + shows_within_s or _told(events)
            if shown and any(each["event"] == "process" and each["run"]["failure"] is None for each in events):
                return
            time.sleep(0.1)

    def _driver_ended(self) -> None:
        try:
            self._driver.wait(_DRIVER_PATIENCE_S if self._hit else _PATIENCE_S)
        except subprocess.TimeoutExpired:
            if self._still_measures():
                self._wait_long()
                return
            self._hung()

    def _still_measures(self) -> bool:
        """Whether it has more to do: a driver that was not told to end may take its time."""
        before = self._size()
        time.sleep(10)
        return self._driver.poll() is None and self._size() > before

    def _wait_long(self) -> None:
        try:
            self._driver.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._hung()

    def _hung(self) -> None:
        tail = (self._folder / "driver.log").read_text(errors="replace")[-2000:]
        self._tally.lose(
            "drivers that hung or crashed", [f"after {self._hit[-1][0] if self._hit else 'nothing'}: {tail[-300:]!r}"]
        )
        self._driver.kill()
        self._driver.wait()

    def _check_exit(self, kind: Kind) -> None:
        """A driver that was not killed ends in order; by a signal's number before it could do anything about it."""
        code = self._driver.returncode
        if code not in (*_IN_ORDER, *kind.codes):
            self._tally.lose("drivers that hung or crashed", [f"{kind.name}: exit code {code}"])

    @property
    def _process(self) -> psutil.Process:
        return psutil.Process(self._driver.pid)

    # ---- the journal -------------------------------------------------------------------------------------------------

    @property
    def _journal(self) -> Path:
        return self._reports / "journal.jsonl"

    def _size(self) -> int:
        return self._journal.stat().st_size if self._journal.exists() else 0

    def _events(self, begin: int = 0, end: int | None = None) -> list[dict[str, Any]]:
        if not self._journal.exists():
            return []
        found = []
        for line in self._journal.read_bytes()[begin:end].splitlines():
            with suppress(ValueError):
                found.append(json.loads(line))
        return [each for each in found if isinstance(each, dict)]

    def _unfinished(self) -> bool:
        if not self._journal.exists():
            return True
        state = read_journal(self._reports)
        return not state.finished or not state.complete_plan

    def _count(self) -> None:
        state = read_journal(self._reports)
        write_projections(state, self._reports)
        final = state.final_verdicts()
        self._tally.planned += len(state.planned)
        self._tally.ends.update(str(verdict.status) for verdict in final)
        name = self._folder.name
        lost = [verdict.case for verdict in final if verdict.slug == "E-never-finished"]
        expected = 2 * MODELS
        if len(final) != expected or not state.complete_plan:
            lost.append(f"{len(final)} of {expected} cases have an end")
        self._tally.lose("lost cases", [f"{name}: {each}" for each in lost])
        self._tally.lose("double results", [f"{name}: {each}" for each in self._double()])
        self._tally.lose("invalid JUnit", [f"{name}: {each}" for each in self._invalid(set(state.planned))])
        self._tally.count_orphans(self._fleet)
        marks = [*self._hit, ("", self._size())]
        for (kind, begin), (_, end) in pairwise(marks):
            self._tally.told[kind].update(_told(self._events(begin, end)))

    def _double(self) -> list[str]:
        """Tries that ended twice, jobs that were run again although whole, cases judged twice in one go."""
        found, whole = [], set()
        ends: Counter[tuple[str, int]] = Counter()
        judged: Counter[str] = Counter()
        for event in self._events():
            if event["event"] in ("run_started", "run_resumed"):
                judged.clear()
                whole -= set(event.get("jobs", ()))
            elif event["event"] == "job_started" and event["job"] in whole:
                found.append(f"{event['job']} was run again although it was whole")
            elif event["event"] == "job_finished":
                ends[event["job"], event["try"]] += 1
                if event["failure"] is None:
                    whole.add(event["job"])
            elif event["event"] == "verdict":
                judged[event["case"]] += 1
                if judged[event["case"]] > 1:
                    found.append(f"{event['case']} was judged twice")
        return found + [
            f"{job}, try {attempt} ended {times} times" for (job, attempt), times in ends.items() if times > 1
        ]

    def _invalid(self, planned: set[str]) -> list[str]:
        try:
            cases = ET.parse(self._reports / "junit.xml").getroot().findall(".//testcase")  # noqa: S314 - our own
        except (ET.ParseError, OSError) as error:
            return [str(error)]
        names = Counter(case.get("name", "") for case in cases)
        return [f"{name} stands there {count} times" for name, count in names.items() if count != 1] + [
            f"{name} is missing or unknown" for name in planned ^ set(names)
        ]


def _told(events: list[dict[str, Any]]) -> list[str]:
    """Slugs of what went wrong, and what the dispatcher and a resumption said."""
    found = []
    for event in events:
        if event["event"] == "job_finished" and event["failure"]:
            found.append(event["failure"]["slug"])
        elif event["event"] == "process" and event["run"]["failure"]:
            found.append(event["run"]["failure"]["slug"])
        elif event["event"] in ("node_set_aside", "run_resumed"):
            found.append(event["event"].replace("_", " "))
    return found
