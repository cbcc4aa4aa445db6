"""Runs of the history made of figures: what a journal of such a night would say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import numpy as np

from harness.domain.verdict import ArmSpeed, Verdict
from harness.domain.words import Status, Throughput
from harness.history.history import History, Imported
from harness.history.records import ArmRecord, CellRecord, Figure, NodeRecord, RunRecord
from harness.history.series import BuildRef

FIRST = date(2026, 9, 1)
CONTRAST = "throughput/tiny/base..head/pp64@any"
ARM = "throughput/tiny/head/pp64@any"
MEMORY = "memory/tiny/head/peak@any"
NODE = NodeRecord("node-a", "hardware-a", "a machine", "{}")
BASE = BuildRef("base", "0000000")


def commit(night: int) -> str:
    """The commit of the head of a night."""
    return f"c{night:07d}"


def cell(
    case: str,
    value: float | None,
    head: BuildRef,
    *,
    unit: str = "ratio",
    status: Status = Status.PASS,
    word: Throughput | None = None,
    node: NodeRecord | None = NODE,
    setup: dict[str, str] | None = None,
    slug: str = "",
    reason: str = "as measured",
) -> CellRecord:
    """One cell: two arms where the unit is a ratio."""
    builds = (BASE, head) if unit == "ratio" else (head,)
    speeds = [100.0, 100.0 * (value or 1.0)][-len(builds) :]
    arms = tuple(
        ArmRecord(build.name, build, ArmSpeed(build.name, tps, None, 4))
        for build, tps in zip(builds, speeds, strict=True)
    )
    figure = None if value is None else Figure(value, value * 0.98, value * 1.02, 4, unit)
    verdict = Verdict(case, status, reason, throughput=word, slug=slug)
    return CellRecord(verdict, figure, arms, node, setup or {"ub": "512"})


def run(night: int, cells: Sequence[CellRecord], *, hour: int = 3, matrix: str = "nightly") -> RunRecord:
    """A run of a night, by its number."""
    day = FIRST + timedelta(days=night)
    began = datetime(day.year, day.month, day.day, hour, tzinfo=UTC)
    return RunRecord(f"run-{matrix}-{night}-{hour}", matrix, day, began, True, "nowhere", tuple(cells))


def nights(
    history: History,
    logs: Sequence[float],
    *,
    case: str = CONTRAST,
    unit: str = "ratio",
    first: int = 0,
    skip: Sequence[int] = (),
) -> list[Imported]:
    """Put a run of one cell in for each log figure, each with a commit of its own."""
    level = 1.0 if unit == "ratio" else 100.0
    return [
        history.add(
            run(
                night,
                [cell(case, level * math.exp(value), BuildRef("head", commit(night), content="x"), unit=unit)],
            )
        )
        for night, value in enumerate(logs, first)
        if night not in skip
    ]


def noise(count: int, sd: float = 0.01, seed: int = 7) -> np.ndarray:
    """Independent normal log figures."""
    return np.random.default_rng(seed).normal(size=count) * sd


def stepped(count: int, place: int, size: float, sd: float = 0.01, seed: int = 7) -> np.ndarray:
    """The same, with a change of the level from one index on; ``size`` -0.05 is 5 % slower."""
    values = noise(count, sd, seed)
    values[place:] += math.log1p(size)
    return values


def day(night: int) -> date:
    """The date of a night, by its number."""
    return FIRST + timedelta(days=night)


def at(record: RunRecord, night: int) -> RunRecord:
    """The same run, said to be of another night."""
    return replace(record, night=day(night))
