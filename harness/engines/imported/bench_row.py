"""One result row of any format, checked: a row that can be used, or what is wrong with it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.domain.build import Fork
from harness.domain.imported import ImportedRow, ImportProblem, Summary
from harness.domain.measurement import NS
from harness.domain.workload import Workload
from harness.engines.imported.fields import identity_of, plain
from harness.engines.imported.figures import figure
from harness.engines.rows import workload_of, wrong_samples

DEFAULT_REPETITIONS = 5
"""What ``-r`` is in both forks where nobody says otherwise; no table tells."""
_MOST_TOKENS = 2**31
"""``llama-bench`` counts in 32 bits."""
_COUNTS = ("n_prompt", "n_gen", "n_depth")
_COUNT = re.compile("[0-9]{1,12}")
_ROUNDING = 1e-3
_FARTHEST_MEANS = 1e3


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row stands: file and place in it."""

    source: str
    place: str

    @property
    def where(self) -> str:
        """Both, for messages."""
        return ", ".join(part for part in (self.source, self.place) if part)


def bench_row(
    row: Mapping[str, Any], place: Place, fork: Fork | None = None, *, whole: bool = True
) -> ImportedRow | ImportProblem:
    """Check one row. Never raises.

    Args:
        row: Values by the names that fields have in JSON; texts will do, as CSV and SQL have them.
        place: Where it stands.
        fork: The fork, where something else than the row's fields tells it.
        whole: The row has all fields of its build.
    """
    load = workload_of({**row, **_counts(row)})
    if load is None or not 0 < load.tokens <= _MOST_TOKENS:
        return ImportProblem("E-unreadable-workload", place.where, "a row whose token counts cannot be read")
    found = _samples(load, row, place) if "samples_ns" in row else _summary(load, row, place)
    if isinstance(found, ImportProblem):
        return found
    samples, summary = found
    identity = identity_of(row, fork, whole=whole)
    return ImportedRow(
        workload=load.name,
        tokens=load.tokens,
        settings=identity.settings,
        build=identity.build,
        model=identity.model,
        machine=identity.machine,
        samples_ns=samples,
        summary=summary,
        time=plain(row.get("test_time", "")),
        source=place.source,
        place=place.place,
    )


_Result = tuple[tuple[float, ...], Summary | None]


def _samples(load: Workload, row: Mapping[str, Any], place: Place) -> _Result | ImportProblem:
    samples = row["samples_ns"]
    if not isinstance(samples, list) or not samples:
        return ImportProblem("E-incomplete-row", place.where, f"{load.name}: no samples", load.name)
    if failure := wrong_samples(load, samples, row):
        return ImportProblem(failure.slug, place.where, failure.message, load.name)
    return tuple(float(value) for value in samples), None


def _summary(load: Workload, row: Mapping[str, Any], place: Place) -> _Result | ImportProblem:
    """Mean and deviation of the rates. ``stddev_ns`` is never read: both forks compute it in integers, wrongly."""
    mean, deviation = figure(row.get("avg_ts")), figure(row.get("stddev_ts"))
    if mean is None:
        return ImportProblem("E-incomplete-row", place.where, f"{load.name}: no mean speed", load.name)
    if not math.isfinite(mean) or mean <= 0:
        return ImportProblem("E-implausible", place.where, f"{load.name}: {mean} is no speed", load.name)
    time_ns = load.tokens * NS / mean
    if failure := wrong_samples(load, [time_ns], {}):
        return ImportProblem(failure.slug, place.where, failure.message, load.name)
    if not _means_agree(time_ns, figure(row.get("avg_ns"))):
        lost = f"{load.name}: avg_ns and avg_ts disagree"
        return ImportProblem("E-inconsistent-row", place.where, lost, load.name)
    spread = deviation if deviation is not None and math.isfinite(deviation) and deviation >= 0 else None
    return (), Summary(mean, spread, DEFAULT_REPETITIONS)


def _means_agree(from_rates_ns: float, mean_ns: float | None) -> bool:
    """The mean time is never shorter than the mean rate says, and longer only by how far the repetitions scatter."""
    if mean_ns is None:
        return True
    return from_rates_ns * (1 - _ROUNDING) - 1 <= mean_ns <= from_rates_ns * _FARTHEST_MEANS


def _counts(row: Mapping[str, Any]) -> dict[str, int]:
    """Token counts that are texts, as numbers."""
    texts = {name: row[name].strip() for name in _COUNTS if isinstance(row.get(name), str)}
    return {name: int(text) for name, text in texts.items() if _COUNT.fullmatch(text)}
