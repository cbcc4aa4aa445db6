"""What the history tells, as data."""

from __future__ import annotations

import math
from dataclasses import asdict
from datetime import date, datetime
from typing import Any

from harness.history.history import Imported
from harness.history.series import BuildRef, CellTrend, Change, NightVerdict, Regression, Series
from harness.reporting.clean import clean


def imported_json(imported: Imported) -> dict[str, Any]:
    """What an import of one run did."""
    run, stored = imported.run, imported.stored
    return {
        "run": run.key,
        "matrix": clean(run.matrix),
        "night": run.night.isoformat(),
        "source": clean(run.source),
        "added": stored.added,
        "changed": stored.changed,
        "same": stored.same,
        "changes": {clean(case): [change_json(each) for each in changes] for case, changes in imported.changes.items()},
    }


def series_json(series: Series) -> dict[str, Any]:
    """A series with its points, missing nights and changes."""
    told: dict[str, Any] = _plain(asdict(series))
    told["changes"] = [change_json(each) for each in series.changes]
    return told


def change_json(change: Change) -> dict[str, Any]:
    """A change; build ranges in words, too."""
    told: dict[str, Any] = _plain(asdict(change))
    told["range"] = {each.arm: clean(each.words) for each in change.builds}
    return told


def verdict_json(verdict: NightVerdict) -> dict[str, Any]:
    """One verdict of one night."""
    told: dict[str, Any] = _plain(asdict(verdict))
    told["builds"] = [_build(each) for each in verdict.builds]
    return told


def trend_json(trend: CellTrend) -> dict[str, Any]:
    """A cell as it stands."""
    return {
        "last": verdict_json(trend.last),
        "trend": list(trend.trend),
        "changes": [change_json(each) for each in trend.changes],
    }


def regression_json(regression: Regression) -> dict[str, Any]:
    """A regression; build ranges in words, too."""
    told: dict[str, Any] = _plain(asdict(regression))
    told["range"] = {each.arm: clean(each.words) for each in regression.builds}
    return told


def _build(build: BuildRef) -> dict[str, Any]:
    told: dict[str, Any] = _plain(asdict(build))
    return {**told, "word": clean(build.word)}


def _plain(value: Any) -> Any:
    """JSON values: days and times as texts, texts without what drives a terminal, no number that JSON does not have."""
    match value:
        case dict():
            return {name: _plain(entry) for name, entry in value.items()}
        case list() | tuple():
            return [_plain(entry) for entry in value]
        case datetime() | date():
            return value.isoformat()
        case str():
            return clean(str(value))
        case float() if not math.isfinite(value):
            return None
        case _:
            return value
