"""``compare``: measurements that somebody sent, judged."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.cli import beside_table
from harness.cli.compare_inputs import (
    STDIN,
    Input,
    checked_factor,
    read_input,
    require_contrast,
    split_advice,
    split_input,
)
from harness.cli.compare_spreads import known_spreads
from harness.cli.paper import stdout_console
from harness.domain.errors import EXIT_FINDING, EXIT_OK, EXIT_UNDECIDED, BadInput
from harness.domain.imported import ImportProblem
from harness.domain.words import Throughput
from harness.domain.workload import names_a_time
from harness.judging.comparing import DEFAULT_PROCESS_SPREAD, Comparison, Settings, Side, compare_sides
from harness.judging.comparing_cells import build_word, model_word
from harness.judging.samples import MS_PER_S
from harness.judging.wording import speed_text
from harness.reporting.clean import clean, one_line
from harness.reporting.markdown import code
from harness.running.spread_file import read_spreads, spreads_path
from harness.sharing.beside import side_by_side
from harness.sharing.opened import opened
from harness.sharing.unpacking import is_bundle

_PIPE_WIDTH = 160
_MOST_LISTED = 8
_MARK = "*"
_RELATIVE = "not candidate over baseline of this line: each is taken relative to the baseline arm of its own session"
_DIGITS = 10
"""A table's speed comes back from its logarithm a few units in the last place away."""
_STYLES = {
    Throughput.REGRESSED: "bold red",
    Throughput.IMPROVED: "bold green",
    Throughput.EQUIVALENT: "cyan",
    Throughput.INCONCLUSIVE: "yellow",
    Throughput.NOT_COMPARABLE: "dim",
}


class _Percent(click.ParamType[float]):
    """A share, said as ``0.035`` or ``3.5%``."""

    name = "SHARE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = f"{value}".strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            share = -1.0
        if not 0 < share < 1:
            self.fail(f"{value!r} is no share between 0 and 1, such as 0.035 or 3.5%", param, ctx)
        return share


@click.command()
@click.argument("baseline", metavar="A")
@click.argument("candidate", metavar="[B]", required=False)
@click.option(
    "--split", metavar="COLUMN[=X:Y]", help="A holds both sides: rows with COLUMN=X are the baseline, Y the candidate."
)
@click.option("--factor", default="", metavar="NAME", help="What is meant to differ: build, model, machine or a flag.")
@click.option(
    "--alpha", type=_Percent(), default=0.01, show_default=True, help="Error rate of 'different', for each row."
)
@click.option("--margin", type=_Percent(), default=0.05, show_default=True, help="Change that is still equivalent.")
@click.option(
    "--process-spread",
    type=_Percent(),
    help=f"Spread between processes where files do not tell [{DEFAULT_PROCESS_SPREAD:g}].",
)
@click.option("--beside", is_flag=True, help="A and B are journals or bundles of two machines: set them side by side.")
@click.option("--format", "form", type=click.Choice(["table", "json", "markdown"]), default="table", show_default=True)
@click.pass_context
def compare(  # noqa: PLR0917 - click passes by name
    context: click.Context,
    baseline: str,
    candidate: str | None,
    split: str | None,
    factor: str,
    alpha: float,
    margin: float,
    process_spread: float | None,
    beside: bool,
    form: str,
) -> None:
    """Judge the speeds of B against those of A.

    Each is a file of llama-bench's output in any format (JSON, JSONL, CSV, SQL, Markdown), or of llama-sweep-bench's or
    llama-batched-bench's, a folder of such files (its blocks, in natural order), a journal, or - for standard input.

    A bundle, or --beside, sets another machine's results of the same cases beside the original ones: contrasts with
    their intervals here and there, speeds without a verdict.

    Exit codes: 0 fine, 1 something regressed or is another finding there, 2 bad input, 3 undecided or not comparable.
    """
    if candidate is not None and (beside or any(is_bundle(Path(path)) for path in (baseline, candidate))):
        with opened(Path(baseline)) as original, opened(Path(candidate)) as mine:
            machines = side_by_side(original.state, mine.state)
        beside_table.tell(machines, form)
        context.exit(beside_table.exit_code(machines))
    given, sides, inferred = _sides(baseline, candidate, split)
    factor = checked_factor(factor, sides) if factor else inferred
    settings = Settings(alpha=alpha, margin=margin, factor=factor)
    if process_spread is None:
        rows = [row for side in sides for row in side.rows]
        settings = replace(settings, known=known_spreads(rows, read_spreads(spreads_path())))
    else:
        settings = replace(settings, process_spread=process_spread, spread_source="--process-spread")
    found = compare_sides(*sides, settings)
    _tell_problems(sides)
    if form == "json":
        click.echo(json.dumps([_as_json(comparison) for comparison in found], indent=2))
    elif form == "markdown":
        click.echo(clean(markdown(found, given, alpha)))
    else:
        _print_table(found, given, stdout_console(_PIPE_WIDTH), alpha)
    context.exit(exit_code(found))


def exit_code(found: Sequence[Comparison]) -> int:
    """The contract's: a regression before what is undecided, and nothing passes that was not judged."""
    words = {comparison.verdict for comparison in found}
    if Throughput.REGRESSED in words:
        return EXIT_FINDING
    return EXIT_UNDECIDED if words & {Throughput.INCONCLUSIVE, Throughput.NOT_COMPARABLE} or not words else EXIT_OK


def _sides(
    baseline: str, candidate: str | None, split: str | None
) -> tuple[list[tuple[str, Input]], tuple[Side, Side], str]:
    """What was given, the two sides made of it, and the factor where a column tells it."""
    if (candidate is None) == (split is None):
        held = one_line(split_advice(baseline)) if candidate is None else ""
        raise click.UsageError(f"give A and B, or A and --split COLUMN{held}")
    if baseline == candidate == STDIN:
        raise BadInput("E-no-contrast", "both sides are standard input", hint="give one of them as a file")
    first = read_input(baseline)
    if candidate is not None:
        second = read_input(candidate)
        require_contrast(first, second)
        return [(baseline, first), (candidate, second)], (first.side, second.side), ""
    column, _, values = (split or "").partition("=")
    ours, theirs, factor = split_input(first, column, values.split(":") if values else [], baseline)
    return [(baseline, first)], (ours, theirs), factor


def _tell_problems(sides: tuple[Side, Side]) -> None:
    """What could not be used, on the other stream: data stay data. No problem here ends the command."""
    for problem in _problems(sides):
        kind = "row not judged" if problem.row_lost else "note"
        click.echo(f"moe-harness: {kind}: {one_line(str(problem))}", err=True)


def _problems(sides: tuple[Side, Side]) -> list[ImportProblem]:
    return [problem for side in sides for problem in side.problems]


# ---- data ------------------------------------------------------------------------------------------------------------


def _as_json(comparison: Comparison) -> dict[str, Any]:
    ratio = comparison.ratio
    return {
        "case": comparison.case,
        "workload": comparison.workload,
        "baseline": _rounded(_shown(comparison, comparison.baseline)),
        "candidate": _rounded(_shown(comparison, comparison.candidate)),
        "ratio": ratio.value if ratio else None,
        "low": ratio.low if ratio else None,
        "high": ratio.high if ratio else None,
        "p": ratio.p if ratio else None,
        "n": ratio.n if ratio else None,
        "verdict": comparison.verdict.value,
        "reason": clean(comparison.reason),
    }


def _shown(comparison: Comparison, speed: float | None) -> float | None:
    """A speed; of a time to the first token, which is judged as one token over it, the ms."""
    return MS_PER_S / speed if speed and names_a_time(comparison.workload) else speed


def _rounded(speed: float | None) -> float | None:
    return None if speed is None else float(f"{speed:.{_DIGITS}g}")


# ---- a page ----------------------------------------------------------------------------------------------------------


def markdown(found: Sequence[Comparison], given: Sequence[tuple[str, Input]], alpha: float) -> str:
    """What was given, a table, its notes and the closing line, for a page.

    Args:
        found: The rows.
        given: What was compared, by its name.
        alpha: Two-sided error rate; the interval holds 1 - alpha.
    """
    lines = [f"- {name}: {code(path)}: {code(_described(side))}" for name, path, side in _named(given)]
    ratio = _ratio_heading(alpha)
    lines += [
        "",
        f"| workload | settings | baseline t/s | candidate t/s | {ratio} | verdict |",
        "|---|---|--:|--:|--:|---|",
    ]
    for comparison in found:
        cells = [code(comparison.workload), code(comparison.settings), *_figures(comparison), _word(comparison)]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", *(f"- {code(_title(comparison))}: {code(comparison.why)}" for comparison in found)]
    lines += [f"- {code(note)}" for note in shared_notes(found)]
    return "\n".join([*lines, "", f"**{summary(found)}**"])


# ---- a terminal ------------------------------------------------------------------------------------------------------


def _print_table(
    found: Sequence[Comparison], given: Sequence[tuple[str, Input]], console: Console, alpha: float
) -> None:
    for name, path, side in _named(given):
        console.print(Text(f"{name:<9}  {one_line(f'{path}: {_described(side)}')}", style="dim"), soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("workload", no_wrap=True)
    table.add_column("settings", overflow="fold")
    for heading in ("baseline t/s", "candidate t/s", _ratio_heading(alpha)):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for comparison in found:
        style = _STYLES[comparison.verdict]
        cells = [comparison.workload, comparison.settings, *_figures(comparison)]
        table.add_row(*(Text(one_line(cell)) for cell in cells), Text(_word(comparison), style=style))
    console.print()
    console.print(table)
    console.print()
    for comparison in found:
        line = Text.assemble(
            (_word(comparison), _STYLES[comparison.verdict]), f"  {one_line(f'{_title(comparison)}: {comparison.why}')}"
        )
        console.print(line, soft_wrap=True)
    for note in shared_notes(found):
        console.print(Text(one_line(f"- {note}")), soft_wrap=True)
    console.print()
    console.print(Text(summary(found), style="bold"), soft_wrap=True)


def _named(given: Sequence[tuple[str, Input]]) -> list[tuple[str, str, Input]]:
    names = ("baseline", "candidate") if len(given) > 1 else ("both sides",)
    return [(name, path, side) for name, (path, side) in zip(names, given, strict=True)]


def _ratio_heading(alpha: float) -> str:
    return f"ratio [{100 * (1 - alpha):g} %]"


def summary(found: Sequence[Comparison]) -> str:
    """The closing line, e.g. ``3 rows: 1 regressed, 2 inconclusive``."""
    counts = Counter(comparison.verdict for comparison in found)
    told = ", ".join(f"{counts[word]} {word.replace('_', ' ')}" for word in Throughput if counts[word])
    return f"{len(found)} row{'' if len(found) == 1 else 's'}: {told}"


def shared_notes(found: Sequence[Comparison]) -> list[str]:
    """Every note once, with the rows that it is about where it is not about all that were judged."""
    judged = [comparison for comparison in found if comparison.ratio]
    noted = [(comparison, _notes(comparison)) for comparison in judged]
    told = []
    for note in dict.fromkeys(note for _, notes in noted for note in notes):
        about = [comparison for comparison, notes in noted if note in notes]
        told.append(note if len(about) == len(judged) else f"{', '.join(map(_title, about))}: {note}")
    return told


def _notes(comparison: Comparison) -> list[str]:
    mark = [f"{_MARK} {_RELATIVE}"] if comparison.is_relative else []
    return [*mark, *comparison.all_notes(_MOST_LISTED)]


def _title(comparison: Comparison) -> str:
    return " ".join(part for part in (comparison.workload, comparison.settings) if part) or "a row"


def _word(comparison: Comparison) -> str:
    return comparison.verdict.replace("_", " ")


def _figures(comparison: Comparison) -> list[str]:
    figures = (_shown(comparison, speed) for speed in (comparison.baseline, comparison.candidate))
    unit = " ms" if names_a_time(comparison.workload) else ""
    speeds = [speed_text(figure) + unit if figure else "" for figure in figures]
    ratio = comparison.ratio
    mark = _MARK if comparison.is_relative else ""
    return [*speeds, f"{ratio.value:.3f}{mark} [{ratio.low:.3f}, {ratio.high:.3f}]" if ratio else ""]


def _described(given: Input) -> str:
    rows = given.side.rows
    builds = ", ".join(dict.fromkeys(build_word(row.build) for row in rows))
    models = ", ".join(dict.fromkeys(model_word(row.model) for row in rows))
    files = "" if given.files == 1 else f" of {given.files} files"
    return f"{len(rows)} row{'' if len(rows) == 1 else 's'}{files}; {builds}; {models}"
