"""A decision as plain text: one line where nothing changed, else one screen."""

from __future__ import annotations

from collections.abc import Iterator

from harness.gating.deciding import Decision, headline
from harness.gating.telling import (
    Alike,
    gist,
    is_silent,
    label_text,
    next_commands,
    other_lines,
    problem_line,
    told_cells,
    weighty,
    why_stage,
)
from harness.gating.words import Effect
from harness.reporting.clean import one_line

_MOST_CELLS = 6
_MOST_REASON = 330
_WORDS = {Effect.BLOCK: "BLOCK", Effect.UNDECIDED: "UNDECIDED", Effect.WARN: "warn"}


def screen(decision: Decision) -> str:
    """The decision's text, with its last line break."""
    lines = [headline(decision)] if is_silent(decision) else list(_lines(decision))
    return "\n".join(lines) + "\n"


def _lines(decision: Decision) -> Iterator[str]:
    yield headline(decision)
    yield from (one_line(problem_line(problem)) for problem in weighty(decision))
    told = told_cells(decision)
    for alike in told[:_MOST_CELLS]:
        yield ""
        yield from _cell(alike)
    if len(told) > _MOST_CELLS:
        yield ""
        yield f"and {len(told) - _MOST_CELLS} more findings: --format json has all"
    rest = list(other_lines(decision))
    if rest:
        yield ""
        yield from map(one_line, rest)


def _cell(alike: Alike) -> Iterator[str]:
    each = alike.first
    more = f" and {len(alike.more)} more" if alike.more else ""
    word = each.finding if each.finding is not None else ""
    yield one_line(f"{_WORDS[each.effect]} {word}: {each.cell.id}{more}")
    short = gist(each)
    if short != each.reason:
        yield f"    {one_line(short)}"
    yield f"    {_shortened(one_line(each.reason))}"
    yield f"    {one_line('; '.join(filter(None, [why_stage(each), label_text(each)])))}"
    for purpose, command in next_commands(each).items():
        yield f"    {purpose + ':':<7}{one_line(command)}"


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_REASON else f"{text[:_MOST_REASON]}..."
