"""What the history tells, on a terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from datetime import date, datetime

import click
from rich.table import Table
from rich.text import Text

from harness.cli.paper import plain_table, stdout_console
from harness.domain.words import Status
from harness.history.history import Imported
from harness.history.regressions import change_words, open_changes
from harness.history.series import BuildRef, CellTrend, MissingNight, NightPoint, NightVerdict, Regression, Series
from harness.judging.wording import assumed_text, speed_text
from harness.reporting.clean import one_line
from harness.reporting.plain_words import count

_PIPE_WIDTH = 160
_BARS = "▁▂▃▄▅▆▇█"
_PLAIN_BARS = "_.-=*#%@"
_MOST_BARS = 60
_STYLES = {Status.FAIL: "bold red", Status.ERROR: "red", Status.PASS: "green"}


def print_imported(done: Sequence[Imported], where: str) -> None:
    """What became of each run, and the changes that were not known before."""
    for each in done:
        run, stored = each.run, each.stored
        counts = f"{stored.added} added, {stored.changed} changed, {stored.same} as before"
        _say(f"{run.night}  {run.matrix}: {count(len(run.cells), 'cell')}: {counts}  ({run.source})")
        for case, changes in each.changes.items():
            for change in changes:
                unit = next((cell.figure.unit for cell in run.cells if cell.verdict.case == case and cell.figure), "")
                _say(f"  {'worse' if change.worse else 'better'}: {case}", f"    {change_words(change, unit)}")
    _say(f"history: {where}")


def print_cell(cell: str, verdicts: Sequence[NightVerdict], series: Sequence[Series]) -> None:
    """The nights of a cell, each series apart; last those without a figure where there is none at all."""
    _say(cell)
    for each in series:
        _print_series(each, verdicts)
    if not series:
        _say("no figure that could be followed: verdicts alone")
        stdout_console(_PIPE_WIDTH).print(_nights_table([*verdicts], "", {}))


def _print_series(series: Series, verdicts: Sequence[NightVerdict]) -> None:
    if series.began:
        _say("", f"another series, since {series.points[0].night} is not comparable with the nights before:")
        _say(f"  {series.began}")
    _say("", f"{series.unit} on {series.node}, {count(len({each.night for each in series.points}), 'night')}")
    _say(f"{_sparkline([each.value for each in series.points])}", "")
    times = {each.time: each for each in series.points}
    first, last = series.points[0].night, series.points[-1].night
    shown = [each for each in verdicts if each.time in times or (each.value is None and first <= each.night <= last)]
    gaps = [each for each in series.missing if each.night not in {verdict.night for verdict in shown}]
    stdout_console(_PIPE_WIDTH).print(_nights_table([*shown, *gaps], series.unit, times))
    for change in series.changes:
        head = "worse" if change.worse else "better"
        _say(f"{head}: {change_words(change, series.unit)}; first told on {change.first_seen}")
    if not series.changes:
        _say("nothing changed, as far as can be told")


def _nights_table(rows: list[NightVerdict | MissingNight], unit: str, points: dict[datetime, NightPoint]) -> Table:
    several = len({row.node for row in rows if isinstance(row, NightVerdict)}) > 1
    table = plain_table(
        "night", "build", one_line(unit) or "figure", "interval", "n", "verdict", "machine" if several else "", ""
    )
    for row in sorted(rows, key=lambda each: each.night):
        if isinstance(row, MissingNight):
            table.add_row(*map(Text, (f"{row.night}", "", "-", "", "", one_line(row.why), "", "")))
            continue
        point = points.get(row.time)
        far = "far off, alone" if point and point.outlier else ""
        table.add_row(
            Text(f"{row.night}"),
            Text(one_line(_builds(row.builds))),
            Text("-" if row.value is None else figure_text(row.value, row.unit)),
            Text(_interval(row)),
            Text(f"{row.n}" if row.n else ""),
            Text(one_line(_words(row)), style=_STYLES.get(row.status, "yellow")),
            Text(one_line(row.node) if several else ""),
            Text(far),
        )
    return table


def print_cells(night: date, trends: Sequence[CellTrend]) -> None:
    """The cells of a night."""
    table = plain_table("cell", "figure", "verdict", "trend", "changed")
    for each in trends:
        last = each.last
        value = "" if last.value is None else f"{figure_text(last.value, last.unit)} {last.unit}"
        told = list(open_changes(each.changes))
        changed = f"{100 * (told[-1].ratio - 1):+.1f} % since {told[-1].first_after}" if told else ""
        cells = (last.cell, value, _words(last), _sparkline(each.trend), changed)
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    stdout_console(_PIPE_WIDTH).print(table)
    _say(f"night {night}: {count(len(trends), 'cell')}")


def print_regressions(night: date, found: Sequence[Regression]) -> None:
    """The regressions of a night, new ones first."""
    for each in found:
        known = "new" if each.new else f"known since {each.first_seen}"
        _say(f"{known}: {each.cell} ({each.evidence}, bad since {each.since})")
        _say(f"    {each.reason}")
        for arm in each.builds if each.evidence == "verdict" else ():
            _say(f"    {arm.arm} {arm.words}")
    new = sum(each.new for each in found)
    told = f"{count(len(found), 'regression')}, {new} new" if found else "no figure regressed (outputs have none)"
    _say(f"night {night}: {told}")


def figure_text(value: float, unit: str) -> str:
    """A figure with the digits that its unit needs."""
    return f"{value:.3f}" if unit == "ratio" else speed_text(value)


def _interval(verdict: NightVerdict) -> str:
    low, high = verdict.low, verdict.high
    if low is None or high is None or low == high:
        return ""
    held = assumed_text(verdict.assumed)
    return f"[{figure_text(low, verdict.unit)}, {figure_text(high, verdict.unit)}]{' ' if held else ''}{held}"


def _words(verdict: NightVerdict) -> str:
    finer = verdict.word if verdict.word != verdict.status else ""
    return " ".join(filter(None, [str(verdict.status), finer, verdict.slug]))


def _builds(builds: Sequence[BuildRef]) -> str:
    return " v ".join(dict.fromkeys(each.word for each in builds))


def _sparkline(values: Sequence[float]) -> str:
    """Figures as bars, the last ones where there are many; on a logarithmic scale of at least 2 %."""
    if not values:
        return ""
    logs = [math.log(value) for value in values[-_MOST_BARS:]]
    least, span = min(logs), max(0.02, max(logs) - min(logs))
    bars = _BARS if _prints_blocks() else _PLAIN_BARS
    return "".join(bars[round((each - least) / span * (len(bars) - 1))] for each in logs)


def _prints_blocks() -> bool:
    try:
        _BARS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _say(*lines: str) -> None:
    """Lines, each clean and one; their indentation stays."""
    for line in lines:
        click.echo(line[: len(line) - len(line.lstrip(" "))] + one_line(line))
