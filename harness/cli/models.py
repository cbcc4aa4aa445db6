"""``moe-harness models``: shape cards, the models made of them, and what lies in the cache."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.cli.doing import Doing
from harness.cli.model_cache import fetch_command, list_command, remove_command
from harness.domain.errors import BadInput
from harness.models.amounts import progress_text
from harness.models.cache import ensure_model, read_sidecar
from harness.models.card import written_quant
from harness.models.from_file import card_of, card_text, undrawable
from harness.models.hashing import file_sha256
from harness.models.inspect import GgufInfo, inspect_gguf
from harness.models.quantize import UNQUANTIZED
from harness.planning.model_word import DEFAULT_QUANT
from harness.reporting.clean import one_line

_MIB = 1024**2
_FORMAT = click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)


@click.group()
def models() -> None:
    """Make models of shape cards, look into GGUF files, and see to the cache of models."""


for _command in (list_command, fetch_command, remove_command):
    models.add_command(_command)


@models.command()
@click.argument("card", default="tiny-moe")
@click.option("--quant", help="Quantization; F16 is the card as written. IQ4_XS, or what the card's own table has.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads for quantizing.")
@_FORMAT
def make(card: str, quant: str | None, threads: int, form: str) -> None:
    """Make the model of CARD (a packaged name or a file) in the cache and print its path."""
    own = written_quant(card)
    asked = quant or (DEFAULT_QUANT if own == UNQUANTIZED else own)
    with Doing() as doing:
        path = ensure_model(
            card, asked, threads=threads, progress=lambda done: doing.tell(progress_text(f"{card} in {asked}", done))
        )
    if form == "json":
        sidecar = read_sidecar(path)
        chosen = sidecar.experts_chosen if sidecar else {}
        facts = {"path": str(path), "bytes": path.stat().st_size, "sha256": file_sha256(path)}
        click.echo(json.dumps({**facts, "experts_chosen": chosen}))
    else:
        click.echo(path)


@models.command("card")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Where to write it; standard output without it.")
def card_command(file: Path, output: Path | None) -> None:
    """Write the shape card of a model FILE: a model of the same shape can be made of it anywhere, without the weights.

    Of a split model, name any part.
    """
    card = card_of(file)
    if types := undrawable(card):
        click.echo(f"moe-harness: no model can be made of it: {', '.join(types)} can't be drawn", err=True)
    if output is None:
        click.echo(card_text(card), nl=False)
        return
    try:
        output.write_text(card_text(card), encoding="utf-8")
    except OSError as failure:
        message = f"the card can't be written: {failure.strerror or failure}"
        hint = "give -o a file in a folder that is there and can be written to"
        raise BadInput("E-card-unwritable", message, hint=hint, where=str(output)) from failure
    click.echo(output)


@models.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--tensors", is_flag=True, help="List every tensor.")
@_FORMAT
def inspect(file: Path, tensors: bool, form: str) -> None:
    """Say what is in a GGUF FILE, from its header: nothing is loaded."""
    info = inspect_gguf(file)
    if form == "json":
        click.echo(json.dumps(_as_json(info), indent=2))
        return
    console = Console()
    console.print(_facts(info))
    if tensors:
        console.print(_tensors(info))


def _as_json(info: GgufInfo) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Path) else value for name, value in asdict(info).items()}


def _facts(info: GgufInfo) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in _as_json(info).items():
        if name == "tensors":
            mix = Counter(tensor.type for tensor in info.tensors)
            table.add_row("tensors", ", ".join(f"{count} {kind}" for kind, count in mix.most_common()))
        else:
            table.add_row(name, Text(one_line(str(value))))  # names come from the file: no markup, no escapes
    return table


def _tensors(info: GgufInfo) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("tensor", "type", "shape", "MiB"):
        table.add_column(heading, justify="right" if heading == "MiB" else "left", no_wrap=True)
    for tensor in info.tensors:
        shape = " x ".join(str(side) for side in tensor.shape)
        table.add_row(Text(one_line(tensor.name)), tensor.type, shape, f"{tensor.nbytes / _MIB:.2f}")
    return table
