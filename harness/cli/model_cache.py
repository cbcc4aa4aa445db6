"""``moe-harness models list``, ``fetch`` and ``remove``: the models in this node's cache, and fetched builds."""

from __future__ import annotations

import json
import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any, Literal

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table
from rich.text import Text

from harness.cli.doing import Doing
from harness.domain.errors import BadInput
from harness.models.address import DIGEST
from harness.models.amounts import progress_text
from harness.models.cache import Progress as Stage
from harness.models.fetched import Fetching, ReportFetch, fetch_model
from harness.models.shelf import Held, held, named, quota_bytes, remove
from harness.models.storage import cache_root
from harness.models.usage import want
from harness.reporting.clean import one_line

_GIB = 1024**3
_DAY_S = 86_400.0
_FORMAT = click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)


@click.command("list")
@_FORMAT
def list_command(form: str) -> None:
    """List the models in this node's cache, and fetched builds; what was wanted longest ago comes first."""
    root, quota = cache_root(), quota_bytes()
    found = held(root)
    total = sum(model.size for model in found)
    if form == "json":
        listed = {"folder": str(root), "bytes": total, "quota": quota, "models": [_row(model) for model in found]}
        click.echo(json.dumps(listed, indent=2))
        return
    if found:
        Console().print(_table(found))
    limit = f" of {quota / _GIB:.1f}" if quota else ""
    said = f"{total / _GIB:.1f}{limit} GiB" if found else "nothing"
    click.echo(f"{said} in {root}")


@click.command("fetch")
@click.argument("url")
@click.argument("sha256", nargs=-1, required=True)
def fetch_command(url: str, sha256: tuple[str, ...]) -> None:
    """Fetch a model into the cache from URL and print its path; SHA256 is its digest.

    Of a split model, the address of the first part and the digests of all of them.
    """
    wrong = [each for each in sha256 if not DIGEST.fullmatch(each)]
    if wrong:
        raise BadInput("E-bad-digest", f"expected 64 hexadecimal digits, found '{wrong[0]}'", where=url)
    with ExitStack() as stack:
        report = _bar(stack) if sys.stderr.isatty() else _lines(stack)
        path, record = fetch_model(url, tuple(each.lower() for each in sha256), Fetching(cache_root(), report))
    want(record)
    click.echo(path)


@click.command("remove")
@click.argument("names", nargs=-1, required=True)
def remove_command(names: tuple[str, ...]) -> None:
    """Remove models and fetched builds from the cache, by name or how it begins; not those that a job uses."""
    root = cache_root()
    for model in [named(held(root), name) for name in names]:
        if model.in_use or not remove(model):
            what = "is still being fetched or made" if model.kind == "unfinished" else "is used by a job"
            hint = "let that end; see 'moe-harness models list'"
            raise BadInput("E-in-use", f"it {what}, so it is not removed", hint=hint, where=model.name)
        again = "; the baseline that it is fetches it again" if model.kept else ""
        click.echo(f"removed {model.name}, {model.size / _GIB:.1f} GiB{again}")


def _lines(stack: ExitStack) -> ReportFetch:
    doing = stack.enter_context(Doing())

    def report(name: str, done: int, total: int) -> None:
        stage: Literal["fetching", "waiting"] = "fetching" if done or total else "waiting"
        doing.tell(progress_text(name, Stage(stage, done, total)))

    return report


def _bar(stack: ExitStack) -> ReportFetch:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    bar = stack.enter_context(Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)))
    tasks: dict[str, Any] = {}

    def report(name: str, done: int, total: int) -> None:
        if name not in tasks:
            tasks[name] = bar.add_task(one_line(name), total=None)
        bar.update(tasks[name], completed=done, total=total or None)

    return report


def _row(model: Held) -> dict[str, Any]:
    return {
        "name": model.name,
        "kind": model.kind,
        "bytes": model.size,
        "wanted": datetime.fromtimestamp(model.wanted, UTC).isoformat(timespec="seconds"),
        "in_use": model.in_use,
        "kept": model.kept,
        "sha256": list(model.sha256),
        "files": [str(file) for file in model.files],
    }


def _table(found: tuple[Held, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("model", "kind", "GiB", "days unused", ""):
        table.add_column(heading, justify="right" if heading in {"GiB", "days unused"} else "left", no_wrap=True)
    now = time.time()
    for model in found:
        days = f"{max(0.0, now - model.wanted) / _DAY_S:.0f}"
        table.add_row(
            Text(one_line(model.name)),
            model.kind,
            f"{model.size / _GIB:.2f}",
            days,
            "in use" if model.in_use else "a baseline" if model.kept else "",
        )
    return table
