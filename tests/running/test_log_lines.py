"""What a log is told of long work: little, but something."""

from __future__ import annotations

from io import StringIO

import pytest

from harness.execution.events import Finished, Progress
from harness.models.amounts import amount_text, progress_text
from harness.models.cache import Progress as Stage
from harness.running.live import LiveLine
from harness.running.log_lines import EVERY_S, FIRST_S, JobLines, LogLines


class Clock:
    """A clock that stands until it is moved."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_log_gets_a_line_now_and_then() -> None:
    """None for what is over at once; then one in ten seconds and every thirty, whatever the number of reports."""
    said: list[tuple[float, str]] = []
    clock = Clock()
    lines = LogLines(lambda text: said.append((clock.now, text)), clock)
    for number in range(1001):
        clock.now = 100.0 + number / 10
        lines.tell(f"{number}")
    assert [time for time, _ in said] == [100 + FIRST_S + EVERY_S * step for step in range(4)]
    assert said[0][1] == "100"
    lines.tell("")
    lines.tell("something else")
    assert len(said) == 4


def test_a_job_is_told_of_while_it_prepares() -> None:
    """Also while nothing new is heard of it; no more once it measures."""
    said: list[str] = []
    clock = Clock()
    lines = JobLines(LogLines(said.append, clock))
    lines.take(Progress("j", 1, "fetching m, 1.0 of 2.0 GiB (50 %)", preparing=True))
    clock.now += FIRST_S
    lines.take(None)
    assert said == ["fetching m, 1.0 of 2.0 GiB (50 %)"]
    lines.take(Progress("j", 1, "process 1"))
    clock.now += 10 * EVERY_S
    for event in (None, Progress("j", 1, "process 2"), Finished("j", 1), None):
        lines.take(event)
    assert len(said) == 1


def test_the_live_line_speaks_plainly_where_it_can_not_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr("harness.running.log_lines.FIRST_S", 0.0)
    live = LiveLine(StringIO(), cases=1, processes=1, enabled=True, say=said.append)
    for _ in range(3):
        live.take(Progress("j", 1, "making m: weights", preparing=True))
    assert said == ["making m: weights"]


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        (Stage("fetching", 3 * 2**29, 2**31), "fetching m, 1.5 of 2.0 GiB (75 %)"),
        (Stage("fetching", 3 * 2**20), "fetching m, 3.0 MiB"),
        (Stage("weights", 0, 2**30), "making m: weights, 0.0 of 1.0 GiB (0 %)"),
        (Stage("waiting"), "waiting for another process that makes or fetches m"),
    ],
)
def test_an_amount_is_told_in_words(stage: Stage, text: str) -> None:
    assert progress_text("m", stage) == text
    assert amount_text(5, 10) == "5 of 10 bytes (50 %)"
