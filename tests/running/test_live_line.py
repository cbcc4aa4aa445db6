"""The live line: what runs where, how much is left; silent where nobody watches."""

from __future__ import annotations

from io import StringIO

from harness.execution.events import Finished, Progress, Started
from harness.execution.node import probe_node
from harness.running.live import LiveLine


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_it_tells_what_runs_where_and_how_much_is_left() -> None:
    """Job count, process and host; a guess of the time after the first job."""
    live = LiveLine(StringIO(), 3, enabled=True)
    live.take(Started("j1", 1, probe_node(), "node-7"))
    live.take(Progress("j1", 1, "ik+fa=1, process 2 of 10"))
    assert live.text() == "job 1 of 3  ik+fa=1, process 2 of 10 on node-7"
    live.take(Finished("j1", 1))
    assert live.text().startswith("job 2 of 3, about ")
    assert "node-7" not in live.text()


def test_it_draws_on_a_terminal_and_hides(monkeypatch: object) -> None:
    """Control sequences go to a terminal only."""
    del monkeypatch
    terminal = Terminal()
    with LiveLine(terminal, 1, enabled=True) as live:
        live.take(Progress("j1", 1, "measuring"))
        live.hide()
    assert "measuring" in terminal.getvalue()
    assert terminal.getvalue().endswith("\x1b[2K") or "\x1b[?25h" in terminal.getvalue()


def test_it_is_silent_elsewhere() -> None:
    """Not on a terminal, or told so: not a byte."""
    for stream, enabled in ((StringIO(), True), (Terminal(), False)):
        live = LiveLine(stream, 1, enabled=enabled)
        live.take(Progress("j1", 1, "measuring"))
        live.hide()
        assert stream.getvalue() == ""
