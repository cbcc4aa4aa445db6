"""A calibration as a table for people, as markdown and as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.judging.calibration import Alarms
from harness.judging.wording import node_text
from harness.reporting.clean import one_line
from harness.reporting.markdown import code
from harness.running.calibration import Calibration, CellResult, Plant

HEADINGS = ("cell", "quad SD [95 %]", "quads", "false at .05", "at .01", "finds", "planted: found", "")
_STYLES = {
    "fine": "green",
    "quarantined": "bold red",
    "unproven": "yellow",
    "not calibrated": "yellow",
    "as before": "yellow",
}
_NOMINAL = (
    "Only error rates of .05 and .01 can be seen in so few decisions. What a gate promises beyond that is nominal: it"
    " holds as far as quads scatter like the noise that the rule was simulated on."
)

_FINDS = (
    "'finds': the smallest loss of speed that comes out as regressed with 95 % probability within the policy's quads,"
    " simulated at the measured spread."
)
_HOPELESS = (
    "No minutes would do for what is unproven: the policy's quads are too few for the scatter of all that is measured"
    " together. Make the machine quieter, or raise blocks in [policy]."
)
_OURS = frozenset({_NOMINAL, _FINDS, _HOPELESS})
"""Lines without a name in them, which no page has to make harmless."""


def as_json(found: Calibration, store: Path) -> dict[str, Any]:
    """The calibration as data."""
    return {
        "node": {"fingerprint": found.node.fingerprint, **asdict(found.node)},
        "when": found.when.isoformat(timespec="seconds"),
        "seconds": round(found.seconds, 1),
        "store": str(store),
        "minutes_needed": found.minutes_needed,
        "alarms": [asdict(alarms) for alarms in found.alarms],
        "cells": [_cell_json(cell) for cell in found.cells],
    }


def print_table(console: Console, found: Calibration, store: Path) -> None:
    """The calibration for a person."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="right" if 1 < number < 6 else "left", overflow="fold")  # noqa: PLR2004
    for cell, label in zip(found.cells, _labels(found.cells), strict=True):
        *columns, word = _columns(cell, label)
        table.add_row(*map(Text, columns), Text(word, style=_STYLES[word]))
    console.print(Text(_title(found), style="bold"))
    console.print(table)
    kept = any(cell.alike for cell in found.cells)
    for line in (*_lines(found), *([f"Kept in {store}: runs on this node use it from now on."] if kept else [])):
        console.print(Text(line), soft_wrap=True)


def markdown(found: Calibration) -> str:
    """The calibration for a page."""
    rows = [map(code, _columns(cell, label)) for cell, label in zip(found.cells, _labels(found.cells), strict=True)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in [HEADINGS, ("---",) * len(HEADINGS), *rows])
    told = [line if line in _OURS else code(line) for line in _lines(found)]
    return "\n\n".join([f"**{code(_title(found))}**", table, *told])


def _title(found: Calibration) -> str:
    minutes = found.seconds / 60
    return f"Calibration of {node_text(found.node)}, {found.when:%Y-%m-%d %H:%M} UTC, {minutes:.1f} min"


def _labels(cells: Sequence[CellResult]) -> list[str]:
    """Each cell in words; those that would read alike with what tells them apart."""
    told = []
    for cell in cells:
        alike = [dict(other.cell.placement) for other in cells if other.cell.label == cell.cell.label]
        placement = dict(cell.cell.placement)
        differing = [name for name in placement if len({each.get(name) for each in alike}) > 1]
        apart = ", ".join(f"{name}={placement[name]}" for name in differing)
        told.append(one_line(f"{cell.cell.label} ({apart})" if apart else cell.cell.label))
    return told


def _columns(cell: CellResult, label: str) -> tuple[str, ...]:
    alike = cell.alike
    if alike is None:
        return (label, "", "", "", "", "", "", cell.word)
    return (
        label,
        f"{alike.quad_sd:.2%} [{alike.sd_low:.2%}, {alike.sd_high:.2%}]",
        f"{alike.quads}",
        *(f"{alarms.alarms} of {alarms.decisions}" for alarms in alike.alarms),
        _percent(alike.smallest),
        "; ".join(map(_plant_text, cell.plants)) or "none could be planted",
        cell.word,
    )


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:g} %"


def _plant_text(plant: Plant) -> str:
    what = f"-{_percent(plant.loss)}" if plant.loss else plant.what
    if plant.throughput is None:
        return f"{what}: no verdict"
    measured = f" ({plant.ratio.value - 1:+.1%})" if plant.ratio else ""
    return f"{what}: {plant.throughput}{measured}"


def _lines(found: Calibration) -> Sequence[str]:
    lines = [_alarms_text(alarms) for alarms in found.alarms]
    lines += [_NOMINAL, _FINDS] if found.alarms else []
    for cell, label in zip(found.cells, _labels(found.cells), strict=True):
        lines += [f"quarantined: {label}: {one_line(fault)}" for fault in cell.faults]
        lines += [f"{cell.word}: {label}: {one_line(cell.trouble)}{_still_known(cell)}"] if cell.trouble else []
        lines += [
            f"no verdict: {label}: {plant.what}: {one_line(plant.reason)}"
            for plant in cell.plants
            if plant.throughput is None
        ]
    hopeless = any(cell.word == "unproven" and cell.needed is None for cell in found.cells)
    lines += [_HOPELESS] if hopeless else []
    needed = found.minutes_needed
    whose = "the other" if hopeless else "all"
    return lines if needed is None else [*lines, f"--minutes {needed} would likely do for {whose} cells."]


def _still_known(cell: CellResult) -> str:
    known = cell.earlier
    return f"; runs go on with a quad SD of {known.quad_sd:.2%}, {one_line(known.source)}" if known else ""


def _alarms_text(alarms: Alarms) -> str:
    drawn = "" if alarms.resampled is None else f"; on resampled quads {alarms.resampled:.1%}"
    return (
        f"False alarms at {alarms.alpha:g}, all cells: {alarms.alarms} of {alarms.decisions} decisions on fresh quads"
        f" (exact 95 % bounds {alarms.low:.1%} to {alarms.high:.1%}){drawn}."
    )


def _cell_json(cell: CellResult) -> dict[str, Any]:
    return {
        "cell": {**asdict(cell.cell), "placement": dict(cell.cell.placement), "label": cell.cell.label},
        "verdict": cell.word,
        "reasons": [*cell.faults, *([cell.trouble] if cell.trouble else [])],
        "needed": cell.needed,
        "process_s": cell.process_s,
        "load_s": cell.load_s,
        "alike": asdict(cell.alike) if cell.alike else None,
        "earlier": asdict(cell.earlier) if cell.earlier else None,
        "plants": [{**asdict(plant), "found": plant.found} for plant in cell.plants],
    }
