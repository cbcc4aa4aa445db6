"""What ``ab`` shows while it runs: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from harness.cli.contrast_table import Line, contrast_table, line_of
from harness.execution.hostlock import describe_holder
from harness.reporting.clean import one_line
from harness.reporting.plain_words import clock_text, signed
from harness.running.ab import AbPlan
from harness.running.ab_board import QUAD_PROCESSES, Board, Phase
from harness.running.log_lines import LogLines

_REDRAW_S = 1.0
"""Drawing takes time on a core that may be measured on."""


def head(plan: AbPlan) -> list[Text]:
    """What is compared, on which model, by which limits."""
    said = [f"{name}={value}" for name, value in sorted(plan.common.items())]
    weights = ", random weights" if plan.synthetic else ""
    facts = [f"{plan.model.name}{weights}", *([" ".join(said)] if said else [])]
    facts.append(f"margin {_margins(plan.margins)}, alpha {plan.plan.policy.alpha:g}")
    names = [one_line(name) for name in plan.arms.names]
    room = max(map(len, names))
    lines = [
        Text.assemble((f"{side}  ", "dim"), (name.ljust(room), "bold"), (f"  {_origin(plan, index)}", "dim"))
        for index, (side, name) in enumerate(zip(("old", "new"), names, strict=True))
    ]
    lines.append(Text.assemble(("on   ", "dim"), one_line("; ".join(facts))))
    lines += [Text(f"     {why}", style="dim") for why in _margin_reasons(plan)]
    return lines + [Text(f"     {one_line(note)}", style="yellow") for note in plan.notes]


def _margin_reasons(plan: AbPlan) -> list[str]:
    """Where margins go by known spreads: by which, and where they are from."""
    by_reason: dict[str, list[str]] = {}
    for name, margin in plan.margins.items() if plan.plan.policy.judging.auto_margin else ():
        spread = plan.job.spread_of(name)
        if spread is not None and spread.df > 0:
            known = (
                f"{100 * margin:g} %, as quads are known to scatter by {100 * spread.quad_sd:.1f} % ({spread.source})"
            )
            by_reason.setdefault(f"{known}; --margin sets another", []).append(name)
    return [one_line(f"margin of {', '.join(names)}: {reason}") for reason, names in by_reason.items()]


def _margins(margins: Mapping[str, float]) -> str:
    """One margin, or that of each workload where they differ."""
    told = {name: f"{100 * margin:g} %" for name, margin in margins.items()}
    if len(set(told.values())) == 1:
        return next(iter(told.values()))
    return ", ".join(f"{margin} for {name}" for name, margin in told.items())


def _origin(plan: AbPlan, index: int) -> str:
    build = plan.arms.arms[index].build
    if index and build == plan.arms.arms[0].build:
        return "the same build"
    return one_line(f"wheel {build.wheel}" if build.wheel else build.path)


def status(board: Board, minutes: float) -> str:
    """What runs now, and how much of the budget is used."""
    if board.is_kept_waiting:
        return f"waiting for the host, on which measures {one_line(describe_holder())}"
    if board.phase in (Phase.WAITING, Phase.PREPARING):
        return one_line(board.doing) or "starting"
    used = f"{clock_text(board.seconds)} of {clock_text(60 * minutes)}"
    quad = f", a quad takes {clock_text(board.quad_seconds)}" if board.quad_seconds else ""
    return f"{_running(board)}  {used}{quad}"


def _running(board: Board) -> str:
    step = board.next_step
    if step is None or board.phase is Phase.ENDED:
        return "done"
    name = one_line(board.names[step.arm])
    if not step.scored:
        return f"burn-in of {name}"
    quad, process = divmod(sum(run.step.scored for run in board.runs), QUAD_PROCESSES)
    return f"quad {quad + 1}, process {process + 1} of {QUAD_PROCESSES}: {name}"


class LiveView:
    """A table that is drawn over itself.

    Args:
        console: A terminal.
        plan: What is run.
    """

    def __init__(self, console: Console, plan: AbPlan) -> None:
        self._console = console
        self._plan = plan
        self._drawn = 0.0
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def draw(self, board: Board, ended: bool) -> None:
        """Redraw once a second, and when a quad has ended."""
        now = time.monotonic()
        if ended or now - self._drawn >= _REDRAW_S:
            self._drawn = now
            self._live.update(self._screen(board), refresh=True)

    def _screen(self, board: Board) -> RenderableType:
        table = contrast_table([line_of(row) for row in board.rows], self._console)
        doing = Text(status(board, self._plan.minutes), style="dim")
        return Group(*head(self._plan), Text(), table, Text(), doing)


class PlainView:
    """A line for each quad, for logs.

    Args:
        console: Where to print.
        plan: What is run.
    """

    def __init__(self, console: Console, plan: AbPlan) -> None:
        self._console = console
        self._plan = plan
        self._quads = -1
        self._decided: set[str] = set()
        self._told_of_waiting = False
        self._log = LogLines(self._say)

    def __enter__(self) -> Self:
        for line in head(self._plan):
            self._say(line.plain)
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def draw(self, board: Board, ended: bool) -> None:
        """Say what is new."""
        self._log.tell(one_line(board.doing) if board.preparing else "")
        if board.is_kept_waiting and not self._told_of_waiting:
            self._told_of_waiting = True
            self._say(status(board, self._plan.minutes))
        burnt_in = not ended and self._quads < 0 and len(board.runs) == len(board.names)
        if burnt_in and board.quad_seconds:
            self._quads = 0
            self._say(f"{clock_text(board.seconds)}  burn-in done, a quad takes about {clock_text(board.quad_seconds)}")
        elif ended and board.quads > max(self._quads, 0):
            self._quads = board.quads
            rows = [row for row in board.rows if row.workload not in self._decided]
            self._decided.update(row.workload for row in rows if not row.decision.open)
            told = "; ".join(self._quad_text(line_of(row)) for row in rows)
            self._say(f"{clock_text(board.seconds)}  quad {board.quads}: {told}")

    @staticmethod
    def _quad_text(line: Line) -> str:
        change = [signed(line.ratio.value)] if line.ratio else []
        return " ".join([line.workload, *change, line.word])

    def _say(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)


def view_for(console: Console, plan: AbPlan) -> LiveView | PlainView:
    """The live table on a terminal that can move its cursor, plain lines elsewhere."""
    live = console.is_terminal and not console.is_dumb_terminal
    return LiveView(console, plan) if live else PlainView(console, plan)
