"""A cell's nights, as the page plots and lists them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.history.series import Change, ChangeKind, Series
from harness.judging.wording import assumed_text
from harness.reporting.clean import one_line
from harness.reporting.plain_words import signed, signed_between


def nights_data(series: Sequence[Series]) -> list[dict[str, Any]]:
    """The series of one cell, the oldest first.

    Returns:
        Of each: ``unit``, ``node``, ``began`` (why it does not go on the one before), ``points``, ``missing`` nights
        with why, and ``changes``. Nights are ISO dates.
    """
    return [
        {
            "unit": each.unit,
            "node": each.node,
            "began": each.began,
            "points": [
                {
                    "night": point.night.isoformat(),
                    "figures": [point.value, point.low, point.high],
                    "assumed": assumed_text(point.assumed),
                    "word": f"{point.status}" + (f" {point.word}" if point.word else ""),
                    "builds": " → ".join(dict.fromkeys(build.word for build in point.builds)),
                    "outlier": point.outlier,
                }
                for point in each.points
            ],
            "missing": [[night.night.isoformat(), night.why] for night in each.missing],
            "changes": [_change(change) for change in each.changes],
        }
        for each in series
    ]


def _change(change: Change) -> dict[str, Any]:
    """A change with its sentence."""
    way = "drift of" if change.kind is ChangeKind.DRIFT else ""
    builds = ", ".join(f"{each.arm} {each.words}" for each in change.builds)
    node = "the machine changed, too" if change.node_changed else ""
    told = [
        " ".join(filter(None, [way, signed(change.ratio), f"[{signed_between(change.low, change.high)}]"])),
        f"last night before {change.last_before}, first after {change.first_after}",
        f"between {change.earliest} and {change.latest} (95 %)",
        f"builds {builds}" if builds else "no build changed",
        node,
    ]
    return {
        "night": change.first_after.isoformat(),
        "before": change.before,
        "after": change.after,
        "short": " ".join(filter(None, [way, signed(change.ratio)])),
        "text": one_line(", ".join(filter(None, told))),
        "worse": change.worse,
    }
