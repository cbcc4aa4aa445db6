"""The summary of a job in Markdown: worst first, within what GitHub shows of it, and what was cut is said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from harness.domain.verdict import Verdict
from harness.domain.words import Status
from harness.github.figures import change_cell, speeds_cell
from harness.github.night import Found, Night
from harness.reporting.clean import capped
from harness.reporting.markdown import code, fenced
from harness.reporting.outcomes import counts_line, gone_pitfalls
from harness.reporting.summary import differences, scopes, verdict_words

MOST_BYTES = 1024 * 1024
"""GitHub refuses a step's summary that is longer, and then shows nothing of it."""

_FOR_THE_END = 1024
_MOST_REASON = 400
_MOST_DETAIL_BYTES = 16 * 1024
_HEAD = ("| verdict | case | t/s | change | node | reason |", "|---|---|---|---|---|---|")
_WITHOUT_INTEREST = (Status.PASS, Status.NOT_APPLICABLE)


def job_summary(night: Night, most_bytes: int = MOST_BYTES) -> str:
    """Counts, what did not pass, differences of outputs, then what passed, folded away.

    Args:
        night: What the journals tell.
        most_bytes: Length of the whole in UTF-8; what comes last is cut first.
    """
    page = _Page(most_bytes - _FOR_THE_END)
    page.add("heading", _headings(night))
    page.add(
        "problem", [f"- **not read**: {code(str(problem), _MOST_REASON)}" for problem in night.problems], by_line=True
    )
    bad = [each for each in night.found if each.verdict.status not in _WITHOUT_INTEREST]
    rest = [each for each in night.found if each.verdict.status in _WITHOUT_INTEREST]
    if bad:
        page.add("heading", ["", *_HEAD])
        page.add("case that did not pass", map(_row, bad), by_line=True)
    for verdict in differences([each.verdict for each in bad]):
        detail = capped(verdict.detail, _MOST_DETAIL_BYTES)
        page.add("difference of outputs", ["", f"### {code(verdict.case)}", "", *fenced(detail)])
    page.add("note", _notes(night), by_line=True)
    if rest:
        page.add("heading", ["", f"<details><summary>{_told_of(rest)}</summary>", "", *_HEAD])
        page.add("case that passed or was not for this machine", map(_row, rest), by_line=True)
        page.close("", "</details>")
    return page.text()


class _Page:
    """Lines up to a number of bytes, and a count of what did not fit."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._lines: list[str] = []
        self._cut: Counter[str] = Counter()
        self._closing: list[str] = []

    def add(self, kind: str, lines: Iterable[str], *, by_line: bool = False) -> None:
        """Take lines together, or one by one; after the first that does not fit nothing of its kind is taken."""
        for part in ([line] for line in lines) if by_line else [list(lines)]:
            size = sum(len(line.encode()) + 1 for line in part)
            if self._cut[kind] or size > self._room:
                self._cut[kind] += 1
            else:
                self._room -= size
                self._lines += part

    def close(self, *lines: str) -> None:
        """Lines for which there is always room."""
        self._closing += lines

    def text(self) -> str:
        """The page."""
        cut = [f"{count} x {kind}" for kind, count in self._cut.items() if count and kind != "heading"]
        told = ["", f"**Cut, the page would be too long**: {', '.join(cut)}. The journal has all."] if cut else []
        return "\n".join([*self._lines, *self._closing, *told]) + "\n"


def _headings(night: Night) -> list[str]:
    by_matrix: dict[str, list[Verdict]] = {}
    for each in night.found:
        by_matrix.setdefault(each.matrix, []).append(each.verdict)
    if not by_matrix:
        return ["## nothing was measured"]
    return [f"## {code(matrix, 100)}: {counts_line(verdicts)}" for matrix, verdicts in sorted(by_matrix.items())]


def _row(found: Found) -> str:
    verdict = found.verdict
    weights = " (synthetic)" if verdict.synthetic else ""
    return (
        f"| {verdict_words(verdict)} | {code(verdict.case)}{weights} | {speeds_cell(verdict)} | {change_cell(verdict)} "
        f"| {code(verdict.node)} | {code(verdict.reason, _MOST_REASON)} |"
    )


def _notes(night: Night) -> Iterator[str]:
    gone = [f"warning: {verdict.case}: {verdict.reason}" for verdict in gone_pitfalls(night.verdicts)]
    outputs = [f"outputs of {count} case{'s' * (count > 1)}, {scope}" for scope, count in scopes(night.verdicts)]
    told = [*gone, *night.notes, *outputs]
    if told:
        yield ""
        yield from (f"- {code(text, _MOST_REASON)}" for text in told)


def _told_of(rest: Sequence[Found]) -> str:
    counts = Counter(each.verdict.status for each in rest)
    return ", ".join(f"{counts[status]} {status}" for status in _WITHOUT_INTEREST if counts[status])
