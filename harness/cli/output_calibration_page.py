"""A calibration of outputs as a table for people, as markdown and as data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.cli.paper import stdout_console
from harness.judging.outputs_allowed import not_set
from harness.judging.tolerances import QUANTILE_DECODED, QUANTILE_POSITIONS
from harness.judging.wording import node_text
from harness.reporting.clean import one_line
from harness.reporting.markdown import code
from harness.running.output_calibration import ModelResult, OutputCalibration, PlantedFault
from harness.running.tolerance_file import Found

_PIPE_WIDTH = 200
_TOLERANCES = ("model", "contrast", "pairs", "positions", "KLD seen -> tolerated, nats")
_FAULTS = ("planted", "by", "beside", "found")
_STYLES = {"fine": "green", "blind": "bold red"}
_MEANING = (
    "Seen: the largest of each figure over pairs of sound processes. Builds are taken for sound here: what one of them"
    " does wrong becomes tolerated between builds. What the planted faults show, no other fault has to."
)


def show(found: OutputCalibration, store: Path, form: str) -> None:
    """Print it.

    Args:
        found: The calibration.
        store: Where it was kept.
        form: ``table``, ``json`` or ``markdown``.
    """
    if form == "json":
        click.echo(json.dumps(_json(found, store), indent=2))
    elif form == "markdown":
        click.echo(_markdown(found))
    else:
        _print(stdout_console(_PIPE_WIDTH), found, store)


def _json(found: OutputCalibration, store: Path) -> dict[str, Any]:
    return {
        "node": {"fingerprint": found.node.fingerprint, **asdict(found.node)},
        "when": found.when.isoformat(timespec="seconds"),
        "seconds": round(found.seconds, 1),
        "store": str(store),
        "models": [
            {
                "model": model.target.model.name,
                "verdict": model.word,
                "tolerances": [_json_tolerance(each) for each in model.found],
                "faults": [{**asdict(fault), "found": fault.found} for fault in model.faults],
                "troubles": list(model.troubles),
            }
            for model in found.models
        ],
    }


def _json_tolerance(each: Found) -> dict[str, Any]:
    return {**each.model_dump(mode="json"), "not_set": not_set(each.positions, each.decoded)}


def _print(console: Console, found: OutputCalibration, store: Path) -> None:
    console.print(Text(_title(found), style="bold"))
    for headings, rows in (_tolerances(found), _faults(found)):
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in headings:
            table.add_column(heading, overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        if rows:
            console.print(table)
    for model in found.models:
        console.print(Text(f"{model.target.model.name}: {model.word}", style=_STYLES.get(model.word, "yellow")))
    for line in _lines(found):
        console.print(Text(line), soft_wrap=True)
    if any(model.found for model in found.models):
        console.print(Text(f"Kept in {store}: runs on this node use it from now on."), soft_wrap=True)


def _markdown(found: OutputCalibration) -> str:
    tables = [_grid(headings, rows) for headings, rows in (_tolerances(found), _faults(found)) if rows]
    words = [f"{model.target.model.name}: {model.word}" for model in found.models]
    told = [line if line == _MEANING else code(line) for line in [*words, *_lines(found)]]
    return "\n\n".join([f"**{code(_title(found))}**", *tables, *told])


def _grid(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    listed = [headings, ("---",) * len(headings), *([*map(code, row)] for row in rows)]
    return "\n".join("| " + " | ".join(row) + " |" for row in listed)


def _title(found: OutputCalibration) -> str:
    return (
        f"Outputs calibrated on {node_text(found.node)}, {found.when:%Y-%m-%d %H:%M} UTC, {found.seconds / 60:.1f} min"
    )


def _tolerances(found: OutputCalibration) -> tuple[Sequence[str], list[Sequence[str]]]:
    return _TOLERANCES, [_tolerance(each) for model in found.models for each in model.found]


def _tolerance(each: Found) -> Sequence[str]:
    contrast = f"{each.contrast} ({' against '.join(each.backends)})"
    return each.model, contrast, f"{each.pairs}", f"{each.positions}", _figures(each)


def _figures(each: Found) -> str:
    unset = not_set(each.positions, each.decoded)
    limits = {name: "not set" if name in unset else f"{value:.2g}" for name, value in asdict(each.tolerated).items()}
    return ", ".join(f"{_words(name)} {value:.2g} -> {limits[name]}" for name, value in asdict(each.seen).items())


def _words(name: str) -> str:
    return name.replace("_", " ")


def _faults(found: OutputCalibration) -> tuple[Sequence[str], list[Sequence[str]]]:
    return _FAULTS, [_fault(fault) for model in found.models for fault in model.faults]


def _fault(fault: PlantedFault) -> Sequence[str]:
    word = "not tried" if fault.equivalence is None else str(fault.equivalence)
    return (
        one_line(fault.what or fault.kind),
        fault.arm,
        fault.contrast,
        word if not fault.missed else f"{word}: MISSED",
    )


def _lines(found: OutputCalibration) -> Iterator[str]:
    for model in found.models:
        yield from (f"{_name(model)}: {one_line(trouble)}" for trouble in model.troubles)
        yield from (f"{_name(model)}: {text}" for each in model.found if (text := _too_few(each)))
        untold = (fault for fault in model.faults if fault.equivalence is None)
        yield from (f"{_name(model)}: {fault.kind}: {one_line(fault.reason)}" for fault in untold)
        missed = (fault for fault in model.faults if fault.missed)
        yield from (f"{_name(model)}: {fault.kind} of {fault.arm}: {one_line(fault.reason)}" for fault in missed)
    yield _MEANING


def _too_few(each: Found) -> str:
    """What a calibration on few positions leaves as it was; empty where it sets all."""
    unset = ", ".join(map(_words, not_set(each.positions, each.decoded)))
    if not unset:
        return ""
    enough = f"{QUANTILE_POSITIONS} positions ({QUANTILE_DECODED} decoded ones for decode p90)"
    had = f"{each.positions} positions, {each.decoded} of them decoded"
    return (
        f"{each.contrast}: {had}, are too few to set {unset}: the shipped tolerances of these stand, where there are"
        f" some. More prompts set them, from {enough} on."
    )


def _name(model: ModelResult) -> str:
    return model.target.model.name
