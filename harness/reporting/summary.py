"""The closing table: what was found, worst first, in plain text that fits a CI log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from io import StringIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.domain.verdict import Estimate, Verdict
from harness.domain.words import Equivalence, Status
from harness.judging.wording import NO_FLOOR, arm_text, assumption_text, speed_text
from harness.reporting.clean import clean, one_line
from harness.reporting.last_words import last_words
from harness.reporting.outcomes import counts_line, gone_pitfalls

CI_WIDTH = 120

_JUDGED = 3
"""Effects of an attribution that are judged; they come first."""
_MAX_NAME = 16
_MOST_LOAD_LINES = 10
"""Of what is told of loading a case; JUnit, page and journal have all."""

_ORDER = (
    Status.FAIL,
    Status.ERROR,
    Status.INCONCLUSIVE,
    Status.NOT_JUDGED,
    Status.UNSUPPORTED,
    Status.NOT_APPLICABLE,
    Status.PASS,
)
_IMPOSSIBLE = (Status.UNSUPPORTED, Status.NOT_APPLICABLE)
_CHANGED = (Equivalence.GREEDY, Equivalence.NEAR_TIE, Equivalence.DISTRIBUTION, Equivalence.LOSSY_DECLARED)
"""Outputs that pass and are not equal to the bit: by how much they change is told."""
_STYLES = {Status.FAIL: "bold red", Status.ERROR: "red", Status.PASS: "green"}


def print_summary(
    console: Console, verdicts: Sequence[Verdict], notes: Sequence[str] = (), told: Collection[Status] = ()
) -> None:
    """Print the table, reasons of what did not pass or changed outputs, attributions, void data, warnings and counts.

    Args:
        console: Where to; its width decides the columns' widths.
        verdicts: One per case.
        notes: Lines about the journal itself, e.g. unreadable lines.
        told: Statuses of which the reader has seen the differences of outputs already.
    """
    ordered = sorted(verdicts, key=lambda verdict: (status_rank(verdict.status), -verdict.seconds, verdict.case))
    if ordered:
        console.print(_table(ordered))
    for text in _below(ordered, notes, told):
        console.print(Text(text), soft_wrap=True)


def summary_text(
    verdicts: Sequence[Verdict],
    notes: Sequence[str] = (),
    width: int = CI_WIDTH,
    told: Collection[Status] = (),
) -> str:
    """The summary as plain text of a fixed width, without colours; arguments as of `print_summary`."""
    buffer = StringIO()
    console = Console(file=buffer, width=width, force_terminal=False, color_system=None, legacy_windows=False)
    print_summary(console, verdicts, notes, told)
    return "".join(f"{line.rstrip()}\n" for line in buffer.getvalue().splitlines())


def _below(ordered: Sequence[Verdict], notes: Sequence[str], told: Collection[Status]) -> Iterator[str]:
    """What stands below the table."""
    yield from _impossible([verdict for verdict in ordered if verdict.status in _IMPOSSIBLE])
    for verdict in ordered:
        if verdict.status in _IMPOSSIBLE:
            continue
        if verdict.status is not Status.PASS or verdict.effects or verdict.equivalence in _CHANGED:
            yield _told(f"{verdict.status}: {verdict.case}", verdict.reason, last_words(verdict))
        if verdict.status is Status.PASS and not verdict.effects and verdict.void:
            yield _told(f"void data: {verdict.case}", verdict.void)
    for verdict in differences([verdict for verdict in ordered if verdict.status not in told]):
        yield f"difference: {one_line(verdict.case)}\n{indented_detail(verdict)}"
    yield from map(_load_text, loads(ordered))
    for scope, count in scopes(ordered):
        yield _told(f"outputs of {count} case{'s' * (count > 1)}", scope)
    for verdict in gone_pitfalls(ordered):
        yield _told(f"warning: {verdict.case}", verdict.reason)
    for note in notes:
        yield _told("journal", note)
    if any(verdict.synthetic for verdict in ordered):
        yield "* synthetic weights: speeds are approximate, content says nothing"
    yield counts_line(ordered)


def status_rank(status: Status) -> int:
    """Where a status stands, from the worst, 0, on."""
    return _ORDER.index(status)


def differences(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Those with a difference of outputs to show, each once: speeds that were not judged for it have it too."""
    first: dict[str, Verdict] = {}
    for verdict in verdicts:
        if verdict.scope and verdict.detail and verdict.status is not Status.PASS:
            first.setdefault(verdict.detail, verdict)
    return list(first.values())


def loads(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Those with something to tell of how builds loaded the model, each once: the workloads of an arm share it."""
    first: dict[str, Verdict] = {}
    for verdict in verdicts:
        if verdict.load:
            first.setdefault(verdict.load, verdict)
    return list(first.values())


def scopes(verdicts: Sequence[Verdict]) -> list[tuple[str, int]]:
    """What output checks covered and what they do not show, each text with the number of its cases."""
    return list(Counter(verdict.scope for verdict in verdicts if verdict.scope).items())


def indented_detail(verdict: Verdict) -> str:
    """A verdict's detail below a line of its own."""
    return indented(verdict.detail)


def indented(text: str) -> str:
    """A text below a line of its own."""
    return "\n".join(f"    {line}".rstrip() for line in clean(text).splitlines())


def _load_text(verdict: Verdict) -> str:
    lines = verdict.load.splitlines()
    more = [f"and {len(lines) - _MOST_LOAD_LINES} more lines"] if len(lines) > _MOST_LOAD_LINES else []
    return f"loaded: {one_line(verdict.case)}\n" + indented("\n".join([*lines[:_MOST_LOAD_LINES], *more]))


def _impossible(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Each reason once: one that a whole class or build has is not to hide what was found."""
    alike: dict[tuple[Status, str], list[Verdict]] = {}
    for verdict in verdicts:
        alike.setdefault((verdict.status, verdict.reason), []).append(verdict)
    for (status, reason), same in alike.items():
        more = f" and {len(same) - 1} more" if len(same) > 1 else ""
        yield _told(f"{status}: {same[0].case}{more}", reason)


def _told(head: str, *texts: str) -> str:
    return "\n    ".join(map(one_line, filter(None, [head, *texts])))


def _table(verdicts: Sequence[Verdict]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("case", overflow="fold", ratio=1)
    table.add_column("t/s or ms (spread)", no_wrap=True)
    table.add_column(Text("ratio or figure [interval]"), no_wrap=True)  # as a text alone the brackets would be markup
    table.add_column("s", justify="right", no_wrap=True)
    for verdict in verdicts:
        table.add_row(
            Text(verdict_words(verdict), style=_STYLES.get(verdict.status, "yellow")),
            Text(_case(verdict)),
            Text(_speeds(verdict)),
            Text(clean(_figures(verdict))),
            Text(f"{verdict.seconds:.0f}"),
        )
    return table


def _case(verdict: Verdict) -> str:
    """The id, and the name of its contrast: what ``--moe-select`` takes."""
    name = f" ({verdict.contrast})" if verdict.contrast else ""
    return one_line(verdict.case + ("*" if verdict.synthetic else "") + name)


def verdict_words(verdict: Verdict) -> str:
    """The status, and the word that says more where there is one: what only was measured is not approved of."""
    measured = "measured" if verdict.status is Status.PASS and verdict.expected == NO_FLOOR else ""
    finer = str(verdict.pitfall or verdict.throughput or verdict.equivalence or measured)
    words = [str(verdict.status), finer if finer != verdict.status else "", "inert" if verdict.inert else ""]
    return " ".join(filter(None, words))


def _speeds(verdict: Verdict) -> str:
    return "\n".join(
        arm_text(arm)
        + (" ms" if arm.ms is not None else "")
        + (f" ({100 * arm.spread:.1f} %)" if arm.spread is not None else "")
        for arm in verdict.arms
    )


def _figures(verdict: Verdict) -> str:
    """The one figure; of an attribution the whole change, the two factors and their interaction, a line each."""
    if not verdict.effects:
        assumption = assumption_text(verdict.estimate) if verdict.estimate else ""
        return "\n".join(filter(None, [_figure(verdict.estimate), assumption]))
    *judged, whole = (*verdict.effects[:_JUDGED], verdict.effects[-1])
    return "\n".join(f"{_figure(effect.ratio)} {_short(effect.name)}" for effect in (whole, *judged) if effect.ratio)


def _short(name: str) -> str:
    return name if len(name) <= _MAX_NAME else name[: _MAX_NAME - 2] + ".."


def _figure(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    if estimate.unit == "ratio":
        return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"
    value, low, high = (speed_text(each) for each in (estimate.value, estimate.low, estimate.high))
    return f"{value} {estimate.unit} [{low}, {high}]"
