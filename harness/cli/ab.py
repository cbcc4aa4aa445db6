"""``moe-harness ab``: two builds, or two flag sets of one build, on this machine; the verdicts as they firm up."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console

from harness.cli.ab_report import as_json, markdown, print_result
from harness.cli.ab_view import PlainView, view_for
from harness.cli.doing import Doing
from harness.cli.finite import FiniteRange
from harness.cli.paper import stdout_console
from harness.domain.build import Fork
from harness.domain.errors import BadInput
from harness.running.ab import AbRequest, plan_ab
from harness.running.ab_run import AbResult, run_ab
from harness.running.options import DEFAULT_REPORTS

_PIPE_WIDTH = 120
_EXAMPLES = """\b
  moe-harness ab mainline ik
  moe-harness ab ik+rtr=0 ik+rtr=1 -m tiny-moe:Q4_K_M --minutes 2
  moe-harness ab ~/llama.cpp/build ~/patched/build -m model.gguf -- -fa 1 -ngl 99 -p 512 -n 128 -d 0,4096"""


@click.command(epilog=_EXAMPLES)
@click.argument("old")
@click.argument("new", required=False)
@click.argument("flags", nargs=-1, type=click.UNPROCESSED, metavar="[-- FLAGS...]")
@click.option(
    "-m", "--model", default="", metavar="FILE|CARD[:QUANT]", help="GGUF file, or shape card [tiny-moe:IQ4_XS]."
)
@click.option(
    "--minutes",
    type=FiniteRange(min=0, min_open=True),
    default=5.0,
    show_default=True,
    help="Budget of measuring.",
)
@click.option("--margin", type=FiniteRange(0, 1, min_open=True, max_open=True), help="Change that is still equivalent.")
@click.option("--alpha", type=FiniteRange(0, 1, min_open=True, max_open=True), help="Error rate of a workload.")
@click.option("--threads", type=click.IntRange(1, 1024), help="Compute threads [one less than there are cores].")
@click.option("--fork", type=click.Choice([str(fork) for fork in Fork]), help="Of builds whose --help does not tell.")
@click.option("--check-outputs/--no-check-outputs", default=None, help="Compare outputs first [where engines can].")
@click.option("--reports", type=click.Path(path_type=Path), help="Folder of the journal [moe-reports/ab-TIME].")
@click.option("--format", "form", type=click.Choice(["table", "json", "markdown"]), default="table", show_default=True)
@click.pass_context
def ab(  # noqa: PLR0917 - click passes by name
    context: click.Context,
    old: str,
    new: str | None,
    flags: tuple[str, ...],
    model: str,
    minutes: float,
    margin: float | None,
    alpha: float | None,
    threads: int | None,
    fork: str | None,
    check_outputs: bool | None,
    reports: Path | None,
    form: str,
) -> None:
    """Measure NEW against OLD on this machine: interleaved, until each workload is decided or the minutes are over.

    OLD and NEW are builds: mainline or ik (the installed wheels), or the path of a llama-bench or its build folder.
    Flags of one arm are added with a plus: ik+rtr=1. FLAGS hold for both and are llama-bench's own, workloads too: -fa
    1 -ub 512 -ot exps=CPU -p 512 -n 128 -d 4096.

    Exit codes: 0 faster or as fast, 1 slower (or crashed, or other outputs), 2 bad input, 3 undecided or not measured,
    130 Ctrl-C (what was measured is judged and shown).
    """
    if new is None or new.startswith("-"):
        raise BadInput("E-one-build", f"there is only {old}: ab compares two", hint=f"e.g. {old} {old}+fa=0")
    request = AbRequest(
        old=old,
        new=new,
        model=model,
        line=flags,
        fork=Fork(fork) if fork else None,
        minutes=minutes,
        margin=margin,
        alpha=alpha,
        threads=threads,
        check_outputs=check_outputs,
    )
    with Doing() as doing:
        plan = plan_ab(request, doing.tell)
    with view_for(Console(stderr=True), plan) as view:
        result = run_ab(plan, fresh_folder(reports), view.draw)
    _print(result, form, headed=not (isinstance(view, PlainView) and _share_one_stream()))
    context.exit(result.exit_code)


def _print(result: AbResult, form: str, *, headed: bool) -> None:
    if form == "json":
        click.echo(json.dumps(as_json(result), indent=2, allow_nan=False))
    elif form == "markdown":
        click.echo(markdown(result), nl=False)
    else:
        print_result(stdout_console(_PIPE_WIDTH), result, headed=headed)


def _share_one_stream() -> bool:
    """Whether both streams are one file, as after ``2>&1``: what the one has said need not be said by the other."""
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, ValueError):  # not of the system: a test's
        return False


def fresh_folder(said: Path | None) -> Path:
    """The folder that was said, or one that no run reported into yet."""
    if said is not None:
        return said
    wanted = Path(DEFAULT_REPORTS) / f"ab-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    taken = (wanted.with_name(f"{wanted.name}-{number}") for number in range(2, 1000))
    return next(folder for folder in (wanted, *taken) if not folder.exists())
