"""A run as a Markdown page: for a pull request, a wiki, a chat. What engines wrote stays text there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.domain.verdict import Verdict
from harness.domain.words import Status
from harness.reporting.markdown import code, fenced
from harness.reporting.outcomes import counts_line
from harness.reporting.summary import differences, loads, scopes, verdict_words


def markdown_page(name: str, verdicts: Sequence[Verdict], notes: Sequence[str] = ()) -> str:
    """Counts, a table, the reasons of what did not pass, differences of outputs and what their checks do not show.

    Args:
        name: The matrix's name.
        verdicts: One per case.
        notes: Lines about the journal itself.
    """
    return "\n".join(_lines(name, verdicts, notes)) + "\n"


def _lines(name: str, verdicts: Sequence[Verdict], notes: Sequence[str]) -> Iterator[str]:
    yield f"# {code(name)}"
    yield ""
    yield counts_line(verdicts)
    yield ""
    yield "| verdict | case | reason |"
    yield "|---|---|---|"
    for verdict in verdicts:
        synthetic = "\\*" if verdict.synthetic else ""
        yield f"| {verdict_words(verdict)} | {code(verdict.case)}{synthetic} | {code(verdict.reason)} |"
    for verdict in differences(sorted(verdicts, key=lambda each: each.status is not Status.FAIL)):
        yield from ("", f"## {code(verdict.case)}", "", *fenced(verdict.detail))
    for verdict in loads(verdicts):
        yield from ("", f"## loaded: {code(verdict.case)}", "", *fenced(verdict.load))
    yield from _listed([f"outputs of {count} case{'s' * (count > 1)}, {scope}" for scope, count in scopes(verdicts)])
    yield from _listed(notes)
    if any(verdict.synthetic for verdict in verdicts):
        yield ""
        yield "\\* synthetic weights: speeds are approximate, content says nothing"


def _listed(texts: Sequence[str]) -> Iterator[str]:
    if texts:
        yield ""
        yield from (f"- {code(text)}" for text in texts)
