"""``moe-harness lint``: a command line judged without running it."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from harness.cli.ab import fresh_folder
from harness.cli.ab_view import view_for
from harness.cli.finite import FiniteRange
from harness.domain.build import Fork
from harness.linting.finding import Finding
from harness.linting.lint import Judged
from harness.running.ab import AbPlan
from harness.running.ab_run import AbResult, run_ab
from harness.running.linting import LintRequest, LintResult, judge_line, verify

_EXAMPLES = """\b
  moe-harness lint "llama-server -m model.gguf -ngl 99 -ot exps=CPU -rtr"
  moe-harness lint --build ~/ik_llama.cpp/build -- llama-bench -m model.gguf -fa on -ser 1,6
  moe-harness lint --verify --build ik -m tiny-moe "llama-server -m model.gguf -no-fmoe" """

_FORKS = {**{str(fork): fork for fork in Fork}, "mainline": Fork.LLAMA_CPP, "ik": Fork.IK_LLAMA_CPP}
"""Their names, and those of the builds that come with the harness."""


@click.command(epilog=_EXAMPLES)
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar='"COMMAND LINE" | -- WORDS...')
@click.option("--fork", type=click.Choice(list(_FORKS)), help="Whose program [by its options].")
@click.option(
    "--build", default="", metavar="NAME|PATH", help="Build, as ab names it: fork and number are asked of it."
)
@click.option("--build-number", type=click.IntRange(1), help="Number of the build [the newest that was read].")
@click.option("-m", "--model", default="", metavar="FILE|CARD[:QUANT]", help="Model [the line's, if it is here].")
@click.option("--placement", type=click.Choice(["cpu", "hybrid", "gpu"]), help="Where it computes [by the flags].")
@click.option("--verify", "asked", is_flag=True, help="Run the two sides of each pitfall that is warned of.")
@click.option(
    "--pitfall",
    "pitfalls",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="A pitfall of your own beside those of the package; repeatable.",
)
@click.option(
    "--minutes",
    type=FiniteRange(min=0, min_open=True),
    default=2.0,
    show_default=True,
    help="Budget of each pitfall that is run.",
)
@click.option("--reports", type=click.Path(path_type=Path), help="Folder of its journals [moe-reports/ab-TIME].")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_context
def lint(  # noqa: PLR0917 - click passes by name
    context: click.Context,
    words: tuple[str, ...],
    fork: str | None,
    build: str,
    build_number: int | None,
    model: str,
    placement: str | None,
    asked: bool,
    pitfalls: tuple[Path, ...],
    minutes: float,
    reports: Path | None,
    form: str,
) -> None:
    """Warn about a command line of llama-bench, -server, -cli, -perplexity, -sweep-bench or -batched-bench of a fork.

    The line is one argument, split as a shell would split it, or the words after --. It is never run: its options and
    values are held against the flag tables, and against the documented pitfalls.

    Exit codes: 0 no warnings, or --verify found all of them gone; 1 warnings; 2 bad input; 3 --verify left one
    undecided and no other stands; 130 Ctrl-C.
    """
    request = LintRequest(
        words=words,
        fork=_FORKS[fork] if fork else None,
        build=build,
        build_number=build_number,
        model=model,
        placement=placement,
        pitfalls=pitfalls,
    )
    result = judge_line(request)
    if asked:
        result = replace(result, verified=verify(result, minutes, lambda plan: _run(plan, reports)))
    if form == "json":
        click.echo(json.dumps(as_json(result), indent=2, allow_nan=False))
    else:
        click.echo(as_text(result))
    context.exit(result.exit_code)


def _run(plan: AbPlan, reports: Path | None) -> AbResult:
    folder = fresh_folder(reports)
    with view_for(Console(stderr=True), plan) as view:
        result = run_ab(plan, folder, view.draw)
    if result.stopped:
        raise KeyboardInterrupt  # of this pitfall and of all that would follow
    return result


def as_json(result: LintResult) -> dict[str, Any]:
    """What was found, as data."""
    return {
        "command": result.command.line(result.command.arguments),
        "program": str(result.command.kind),
        "forks": [str(judged.line.fork) for judged in result.judged],
        "build_number": result.surroundings.number,
        "warnings": [_warning(finding, judged, result) for judged in result.judged for finding in judged.findings],
        "notes": [note for judged in result.judged for note in judged.notes],
        "replacement": {str(judged.line.fork): judged.replacement for judged in result.judged},
    }


def _warning(finding: Finding, judged: Judged, result: LintResult) -> dict[str, Any]:
    told: dict[str, Any] = {
        "pitfall": finding.id,
        "kind": str(finding.sort),
        "fork": str(finding.fork),
        "where": finding.where,
        "why": finding.why,
        "applies": finding.applies,
        "may_not_apply": list(finding.unknown),
        "instead": finding.instead,
        "replacement": judged.line_without(finding),
    }
    if finding.pitfall is not None:
        told["sources"] = [source.url or source.name for source in finding.pitfall.sources]
        verified = result.verified.get(finding.id)
        if verified is not None:
            told["verified"] = {"pitfall": str(verified.word), "reason": verified.said}
    return told


def as_text(result: LintResult) -> str:
    """What was found, for a person."""
    blocks = [line for judged in result.judged for line in _fork(judged, result)]
    if len(result.judged) > 1:
        forks = " and ".join(str(judged.line.fork) for judged in result.judged)
        blocks.insert(0, f"No option tells which fork this is: judged for {forks}; --fork says it.\n")
    return "\n".join(blocks).rstrip()


def _fork(judged: Judged, result: LintResult) -> list[str]:
    line, count = judged.line, len(judged.findings)
    number = result.surroundings.number_for(line.fork)
    build = f"build {number}" if result.surroundings.number is not None else f"build {number}, the newest that was read"
    warnings = f"{count} warning{'' if count == 1 else 's'}" if count else "no warnings"
    lines = [f"{line.program} of {line.fork} ({build}): {warnings}"]
    for finding in judged.findings:
        lines += _finding(finding, judged, result)
    lines += [f"  note: {note}" for note in judged.notes]
    if count > 1 and judged.replacement:
        lines += ["", f"all that is sure: {judged.replacement}"]
    return [*lines, ""]


def _finding(finding: Finding, judged: Judged, result: LintResult) -> list[str]:
    replacement = judged.line_without(finding)
    verified = result.verified.get(finding.id) if finding.pitfall else None
    rows = [
        ("why", finding.why),
        ("applies to", finding.applies),
        ("may not apply", "; ".join(finding.unknown)),
        ("instead", finding.instead),
        ("write", replacement),
        ("verified", f"{verified.word}: {verified.said}" if verified else ""),
    ]
    where = finding.where or shlex.join(result.command.arguments)
    return ["", f"  {where}  [{finding.id}, {finding.sort}]", *(f"    {name}: {text}" for name, text in rows if text)]
