"""The table of the summary."""

from __future__ import annotations

from harness.domain.verdict import Verdict
from harness.domain.words import Status
from harness.reporting.summary import summary_text


def test_the_head_is_text_and_no_markup() -> None:
    """Brackets of a plain heading are a style to rich, which shows nothing of them."""
    assert "ratio or figure [interval]" in summary_text([Verdict("a/b/c/tg1@any", Status.PASS, "measured")])
