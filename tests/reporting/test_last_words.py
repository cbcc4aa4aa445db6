"""Why a build failed is told where its failure is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.domain.verdict import Verdict
from harness.domain.words import Status
from harness.reporting.last_words import last_words
from harness.reporting.summary import summary_text

CRASHED = Verdict(
    "memory/m/a/none@any", Status.FAIL, "a: crash, ended with exit code 127", detail="one\n\x1b[31mtwo\x1b[0m\n\n"
)


def test_the_summary_tells_how_the_log_ends_below_the_reason() -> None:
    """Cleaned: a log is somebody else's text."""
    assert "    a: crash, ended with exit code 127\n    its log ends: two\n" in summary_text([CRASHED])


@pytest.mark.parametrize(
    "changed",
    [
        {"detail": ""},
        {"detail": "first\nexit code 127"},
        {"detail": "prompt 1: 3 of 4 tokens", "scope": "1 prompt"},
        {"status": Status.UNSUPPORTED},
    ],
)
def test_what_the_reason_has_and_what_is_no_log_is_not_told(changed: dict[str, object]) -> None:
    """Nothing is said twice, and a difference of outputs has a place of its own."""
    assert not last_words(replace(CRASHED, **changed))  # type: ignore[arg-type]  # mixed


def test_a_long_line_is_cut() -> None:
    """A line of a log may be as long as the log."""
    assert len(last_words(replace(CRASHED, detail="a" * 9999))) < 200
