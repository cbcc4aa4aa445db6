"""The page of one or several journals: one file that needs nothing beside itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template, select_autoescape
from markupsafe import Markup

from harness.domain.verdict import Verdict
from harness.domain.words import Status
from harness.history.series import Series
from harness.pages.detail import case_detail, job_detail
from harness.pages.embedding import inline_json, packed, script_source
from harness.pages.nights import nights_data
from harness.pages.rows import row_data
from harness.pages.shown import Shown, shown_cases
from harness.pages.texts import Texts
from harness.reporting.clean import one_line
from harness.reporting.outcomes import gone_pitfalls
from harness.reporting.projections import notes
from harness.reporting.state import JournalState
from harness.reporting.summary import scopes, status_rank

_SCRIPTS = (
    "elements.js",
    "rows.js",
    "filters.js",
    "table.js",
    "plots.js",
    "forest.js",
    "nights.js",
    "detail.js",
    "start.js",
)
"""In the order in which they stand in the page: each uses those before it."""


def report_page(states: Sequence[JournalState], nights: Mapping[str, Sequence[Series]] = MappingProxyType({})) -> str:
    """Make the page.

    Args:
        states: The journals that are shown as one run, at least one.
        nights: What a history has on their cells, by case id.
    """
    cases = shown_cases(states)
    verdicts = [shown.verdict for shown in cases]
    script, plotly = _own_script(), plotly_script()
    return _template().render(
        name=", ".join(dict.fromkeys(one_line(state.name) for state in states)),
        runs=[_run_facts(state) for state in states],
        problems=[(_journal_names(states)[index], one_line(note)) for index, note in _notes(states)],
        finished=all(state.finished for state in states),
        left=[(one_line(left.case), one_line(left.reason)) for state in states for left in state.left.values()],
        gone=[one_line(f"{verdict.case}: {verdict.reason}") for verdict in gone_pitfalls(verdicts)],
        counts=_counts(verdicts),
        scopes=[(one_line(scope), count) for scope, count in scopes(verdicts)],
        synthetic=sum(verdict.synthetic for verdict in verdicts),
        sources=f"{script_source(script)} {script_source(plotly)}",
        style=Markup(_asset("page.css")),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own files
        plotly=packed_plotly(),
        data=Markup(inline_json(_data(states, cases, nights))),  # noqa: S704 - what `inline_json` is for
    )


def _data(
    states: Sequence[JournalState], cases: Sequence[Shown], nights: Mapping[str, Sequence[Series]]
) -> dict[str, Any]:
    """All that the page's script reads; jobs once, whichever cases share them."""
    texts, names = Texts(), _journal_names(states)
    tries = {f"{shown.journal}/{shown.job}": shown.last for shown in cases if shown.last}
    jobs = {key: job_detail(last, last.job) for key, last in tries.items() if last.job}
    rows = []
    for shown in cases:
        detail = case_detail(shown, states[shown.journal].path.name, texts)
        known = nights.get(shown.verdict.case, ())
        rows.append({**row_data(shown), "detail": {**detail, **({"nights": nights_data(known)} if known else {})}})
    return {
        "journals": names,
        "statuses": [str(status) for status in sorted(Status, key=status_rank)],
        "cases": rows,
        "jobs": jobs,
        "texts": texts.listed(),
    }


def _journal_names(states: Sequence[JournalState]) -> list[str]:
    """What tells journals apart, from their paths; of one journal its file's name."""
    if len(states) == 1:
        return [one_line(states[0].path.name)]
    return [one_line(f"{state.path.parent.name}/{state.path.name}") for state in states]


def _notes(states: Sequence[JournalState]) -> list[tuple[int, str]]:
    return [(index, note) for index, state in enumerate(states) for note in notes(state)]


def _run_facts(state: JournalState) -> Mapping[str, str]:
    """How a run was made, for the head of the page."""
    nodes = {tried.node.described: tried.host for tried in state.jobs.values() if tried.node}
    told = {
        "executor": state.run.executor if state.run else "",
        "versions": ", ".join(f"{name} {version}" for name, version in state.run.versions.items()) if state.run else "",
        "nodes": "; ".join(f"{host}: {node}" if host else node for node, host in nodes.items()),
        "began": state.started.partition(".")[0].replace("T", " "),
        "policy": f"alpha {state.policy.alpha:g}, margin "
        + ("by the known spread" if state.policy.auto_margin else f"{100 * state.policy.margin:g} %"),
    }
    return {name: one_line(value) for name, value in told.items() if value}


def _counts(verdicts: Sequence[Verdict]) -> list[tuple[str, int]]:
    counts = Counter(verdict.status for verdict in verdicts)
    return [(str(status), counts[status]) for status in sorted(counts, key=status_rank)]


@cache
def _template() -> Template:
    loader = PackageLoader("harness.pages", "assets")
    environment = Environment(
        loader=loader,
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2")


def _asset(name: str) -> str:
    return files("harness.pages").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _own_script() -> str:
    body = "\n".join(_asset(name) for name in _SCRIPTS)
    return f'"use strict";\n(() => {{\n{body}}})();\n'


@cache
def plotly_script() -> str:
    """The plotting library, as its package brings it."""
    return files("plotly").joinpath("package_data", "plotly.min.js").read_text(encoding="utf-8")


@cache
def packed_plotly() -> str:
    """The same, packed: most pages are read without a plot, and unpack it never."""
    return packed(plotly_script())
