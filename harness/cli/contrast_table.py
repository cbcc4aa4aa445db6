"""The table of a contrast: a line for each workload, with speeds, change, forest plot and the word so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console, JustifyMethod
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from harness.domain.verdict import ArmSpeed, Estimate, Verdict
from harness.domain.words import Throughput
from harness.judging.wording import LEVEL, assumption_text, speed_text
from harness.reporting.clean import one_line
from harness.reporting.forest import ASCII, UNICODE, Axis, Glyphs, plot
from harness.reporting.plain_words import signed, signed_between
from harness.running.ab_board import Row

_LEANING_P = 0.10
STYLES = {
    Throughput.REGRESSED: "bold red",
    Throughput.IMPROVED: "bold green",
    Throughput.EQUIVALENT: "bold cyan",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One workload as the table shows it.

    Attributes:
        workload: Its name.
        arms: Speeds of baseline and candidate.
        ratio: Candidate over baseline; ``None`` before the first quad.
        quads: Quads it rests on.
        margin: Relative change that is still equivalent.
        word: The verdict so far.
        style: Of the word and the interval.
    """

    workload: str
    arms: Sequence[ArmSpeed | None]
    ratio: Estimate | None
    quads: int
    margin: float
    word: str
    style: str


def line_of(row: Row) -> Line:
    """The line of a workload that is still measured, or decided and not judged yet."""
    decision, margin = row.decision, row.limits.margin
    word, style = _open_word(row) if decision.open else _decided_word(decision.throughput, margin)
    return Line(row.workload, row.arms, decision.ratio, row.quads, margin, word, style)


def judged_line(workload: str, verdict: Verdict, margin: float) -> Line:
    """The line of a verdict."""
    if verdict.throughput is None:
        word, style = str(verdict.status).replace("_", " "), "bold red"
    else:
        word, style = _decided_word(verdict.throughput, margin)
    arms: list[ArmSpeed | None] = list(verdict.arms) or [None, None]
    quads = verdict.estimate.n if verdict.estimate else 0
    return Line(workload, arms, verdict.estimate, quads, margin, word, style)


def _decided_word(word: Throughput, margin: float) -> tuple[str, str]:
    said = f"equivalent within {100 * margin:g} %" if word is Throughput.EQUIVALENT else str(word)
    return said, STYLES.get(word, "yellow")


def _open_word(row: Row) -> tuple[str, str]:
    ratio = row.decision.ratio
    if ratio is None:
        return "measuring" if any(row.arms) else "waiting", "dim"
    if ratio.p is not None and ratio.p < _LEANING_P:
        return f"leaning {'faster' if ratio.value > 1 else 'slower'}", "yellow"
    return "no difference yet", "yellow"


# ---- layouts ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which columns there are room for.

    Attributes:
        plot: Width of the plot; 0 for none.
        details: Spreads, intervals and quads.
        speeds: Speeds of the arms.
    """

    plot: int
    details: bool = False
    speeds: bool = True


_LAYOUTS = (
    _Layout(41, details=True),
    _Layout(31, details=True),
    _Layout(41),
    _Layout(31),
    _Layout(21),
    _Layout(0),
    _Layout(0, speeds=False),
)
"""Widest first."""
_UNBOUNDED = 10_000


def contrast_table(lines: Sequence[Line], console: Console) -> Table:
    """The workloads, with as many columns as the console has room for.

    Args:
        lines: One per workload.
        console: Where the table will be printed.
    """
    glyphs = ASCII if console.options.ascii_only else UNICODE
    tables = (_table(lines, layout, glyphs) for layout in _LAYOUTS)
    unbounded = console.options.update(max_width=_UNBOUNDED)
    fitting = (table for table in tables if Measurement.get(console, unbounded, table).maximum <= console.width)
    return next(fitting, None) or _table(lines, _LAYOUTS[-1], glyphs)


def _table(lines: Sequence[Line], layout: _Layout, glyphs: Glyphs) -> Table:
    axis = _axis(lines, layout.plot) if layout.plot else None
    columns: list[tuple[str, JustifyMethod, Callable[[Line], Text]]] = [("", "left", _name)]
    if layout.speeds:
        columns += [
            ("old t/s", "right", lambda line: _speed(line.arms[0], spread=layout.details)),
            ("new t/s", "right", lambda line: _speed(line.arms[1], spread=layout.details)),
        ]
    columns.append(("change", "right", _change))
    if layout.details:
        level = "" if any(map(_is_assumed, lines)) else f"{LEVEL} "
        columns.append((f"{level}interval", "left", _interval))
    if axis:
        columns.append((axis.scale(), "left", lambda line: _plot(line, axis, glyphs)))
    if layout.details:
        columns.append(("quads", "right", lambda line: Text(str(line.quads) if line.quads else "")))
    columns.append(("", "left", lambda line: Text(line.word, style=line.style)))
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.caption, table.caption_justify = _caption(lines, layout), "left"
    for heading, side, _ in columns:
        table.add_column(Text(heading), justify=side, overflow="fold")
    for line in lines:
        table.add_row(*(cell(line) for _, _, cell in columns))
    return table


def _caption(lines: Sequence[Line], layout: _Layout) -> Text | None:
    """Of few quads nobody knows how far they scatter: what an interval assumes is told wherever it is shown."""
    shown = [line for line in lines if line.ratio]
    if not any(map(_is_assumed, shown)) or not (layout.plot or layout.details):
        return None
    by_assumption: dict[str, list[str]] = {}
    for line in shown:
        if line.ratio and _is_assumed(line):
            by_assumption.setdefault(assumption_text(line.ratio), []).append(line.workload)
    named = [
        assumption if len(names) == len(shown) else f"{assumption} ({', '.join(names)})"
        for assumption, names in by_assumption.items()
    ]
    others = "" if all(map(_is_assumed, shown)) else f"; else {LEVEL}"
    dashed = "dashed: " if layout.plot else ""
    return Text(f"{dashed}interval {one_line(', '.join(named))}, which is assumed{others}", style="dim")


def _is_assumed(line: Line) -> bool:
    return line.ratio is not None and line.ratio.assumed is not None


def _axis(lines: Sequence[Line], width: int) -> Axis:
    return Axis.around([line.ratio for line in lines if line.ratio], max(line.margin for line in lines), width)


def _name(line: Line) -> Text:
    return Text(one_line(line.workload), style="bold")


def _speed(arm: ArmSpeed | None, *, spread: bool) -> Text:
    if arm is None:
        return Text("")
    text = Text(speed_text(arm.tps))
    if spread and arm.spread is not None:
        text.append(f" ± {100 * arm.spread:.1f} %", style="dim")
    return text


def _change(line: Line) -> Text:
    return Text(signed(line.ratio.value) if line.ratio else "", style=line.style)


def _interval(line: Line) -> Text:
    ratio = line.ratio
    return Text(signed_between(ratio.low, ratio.high) if ratio else "", style="dim")


def _plot(line: Line, axis: Axis, glyphs: Glyphs) -> Text:
    pieces = plot(axis, line.ratio, line.margin, glyphs)
    return Text.assemble(*((char, line.style if of_interval else "dim") for char, of_interval in pieces))
