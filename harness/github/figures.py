"""A verdict's figures in a cell of a table: numbers and words of ours, so nothing has to be made harmless."""

from __future__ import annotations

from harness.domain.verdict import Verdict
from harness.judging.wording import assumption_text, speeds_text
from harness.reporting.plain_words import signed, signed_between


def speeds_cell(verdict: Verdict) -> str:
    """Speeds of the arms, baseline first; empty where none was measured."""
    return speeds_text(verdict.arms) if verdict.arms else ""


def change_cell(verdict: Verdict) -> str:
    """Change of speed with its interval, and what the interval assumes; empty where there is no contrast."""
    ratio = verdict.estimate
    if ratio is None or ratio.unit != "ratio":
        return ""
    assumed = assumption_text(ratio)
    between = signed_between(ratio.low, ratio.high)
    return f"{signed(ratio.value)} ({between}{', ' if assumed else ''}{assumed})"
