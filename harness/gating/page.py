"""A decision as Markdown, for a job's summary or a comment. What engines and forks wrote stands in code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.gating.deciding import Decision, headline
from harness.gating.effects import Judged
from harness.gating.telling import gist, is_silent, next_commands, other_lines, problem_line, weighty
from harness.gating.words import Effect
from harness.reporting.markdown import code

_MARKS = {"go": "✅", "not_needed": "✅", "blocked": "❌", "undecided": "⚠️"}
_TOLD = (Effect.BLOCK, Effect.UNDECIDED, Effect.WARN)
_MOST_ROWS = 200
_MOST_TEXT = 600
_MOST_COMMANDS = 10


def page(decision: Decision) -> str:
    """The decision's page, at most some 300 KiB, with its last line break."""
    return "\n".join(_lines(decision)) + "\n"


def _lines(decision: Decision) -> Iterator[str]:
    yield f"## {_MARKS[decision.outcome]} Gate {code(decision.policy, _MOST_TEXT)}: {decision.outcome}"
    yield ""
    yield headline(decision)
    if is_silent(decision):
        return
    yield from _listed([problem_line(problem) for problem in weighty(decision)])
    yield from _table(decision.of(*_TOLD))
    yield from _listed(list(other_lines(decision)))


def _table(cells: Sequence[Judged]) -> Iterator[str]:
    if not cells:
        return
    yield ""
    yield "| effect | finding | cell | change | why | stage |"
    yield "|---|---|---|---|---|---|"
    for each in cells[:_MOST_ROWS]:
        short = gist(each)
        told = code(short, _MOST_TEXT) if short != each.reason else ""
        synthetic = "\\*" if each.cell.verdict.synthetic else ""
        yield (
            f"| {each.effect} | {each.finding} | {code(each.cell.id)}{synthetic} | {told}"
            f" | {code(each.reason, _MOST_TEXT)} | {each.staged.stage}: {code(each.staged.why, _MOST_TEXT)} |"
        )
    if len(cells) > _MOST_ROWS:
        yield ""
        yield f"and {len(cells) - _MOST_ROWS} more: the JSON has all"
    if any(each.cell.verdict.synthetic for each in cells[:_MOST_ROWS]):
        yield ""
        yield "\\* synthetic weights: speeds are approximate, content says nothing"
    yield ""
    yield "What to do:"
    yield ""
    for each in cells[:_MOST_COMMANDS]:
        yield "- " + ", ".join(map(code, next_commands(each).values()))


def _listed(texts: Sequence[str]) -> Iterator[str]:
    if texts:
        yield ""
        yield from (f"- {code(text, _MOST_TEXT)}" for text in texts[:_MOST_ROWS])
