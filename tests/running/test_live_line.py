"""The live line: what runs where, how much is left; silent where nobody watches."""

from __future__ import annotations

from io import StringIO

from harness.domain.measurement import Conditions, ProcessRun, Step
from harness.execution.events import Finished, ProcessDone, Progress, Started
from harness.execution.node import probe_node
from harness.running.live import LiveLine

RUN = ProcessRun(Step(0, 0), "", (), (), 1.0, None, 0, Conditions(0, (), 1, 0.0), {})


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_it_tells_what_runs_where_and_how_much_is_left() -> None:
    """Cases, process and host; a guess of the time after some processes."""
    live = LiveLine(StringIO(), cases=3, processes=10, enabled=True)
    live.take(Started("j1", 1, probe_node(), "node-7"))
    live.take(Progress("j1", 1, "ik+fa=1, process 2 of 10"))
    assert live.text() == "0 of 3 cases  ik+fa=1, process 2 of 10 on node-7"
    for _ in range(3):
        live.take(ProcessDone("j1", 1, RUN))
    assert ", about " in live.text()
    live.take(Finished("j1", 1))
    live.case_decided()
    assert live.text().startswith("1 of 3 cases, about ")
    assert "node-7" not in live.text()


def test_it_draws_on_a_terminal_and_hides() -> None:
    """Control sequences go to a terminal only."""
    terminal = Terminal()
    with LiveLine(terminal, cases=1, processes=1, enabled=True) as live:
        live.take(Progress("j1", 1, "measuring"))
        live.case_decided()
    assert "measuring" in terminal.getvalue()
    assert terminal.getvalue().endswith("\x1b[2K") or "\x1b[?25h" in terminal.getvalue()


def test_it_is_silent_elsewhere() -> None:
    """Not on a terminal, or told so: not a byte."""
    for stream, enabled in ((StringIO(), True), (Terminal(), False)):
        live = LiveLine(stream, cases=1, processes=1, enabled=enabled)
        live.take(Progress("j1", 1, "measuring"))
        live.case_decided()
        assert stream.getvalue() == ""
