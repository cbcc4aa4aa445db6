"""Verdicts as CSV that a spreadsheet opens and does not run."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO

from harness.history.series import NightVerdict
from harness.reporting.clean import one_line

_COLUMNS = (
    *("cell", "night", "time", "matrix", "status", "word", "unit", "value", "low", "high", "assumed", "n"),
    *("baseline_tps", "candidate_tps", "baseline_build", "candidate_build", "node", "slug", "reason"),
)
_STARTS_FORMULA = ("=", "+", "-", "@")


def csv_text(verdicts: Sequence[NightVerdict]) -> str:
    """The rows with a heading; of a single arm the candidate's columns are its own."""
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows(map(_row, verdicts))
    return buffer.getvalue()


def _row(verdict: NightVerdict) -> list[str]:
    speeds = [_number(each) for each in verdict.speeds]
    builds = [each.word for each in verdict.builds]
    return [
        _inert(verdict.cell),
        f"{verdict.night}",
        verdict.time.isoformat(),
        _inert(verdict.matrix),
        str(verdict.status),
        _inert(verdict.word),
        _inert(verdict.unit),
        *map(_number, (verdict.value, verdict.low, verdict.high, verdict.assumed)),
        f"{verdict.n}",
        *_two(speeds),
        *map(_inert, _two(builds)),
        _inert(verdict.node),
        _inert(verdict.slug),
        _inert(verdict.reason),
    ]


def _two(parts: Sequence[str]) -> list[str]:
    """Of the first arm and the last; a single one is no baseline."""
    return [parts[0] if len(parts) > 1 else "", parts[-1] if parts else ""]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"


def _inert(text: str) -> str:
    plain = one_line(text)
    return f"'{plain}" if plain.startswith(_STARTS_FORMULA) else plain
