"""Write the page of field reports: ``python tests/docs/field_report_page.py > docs/reference/field-reports.md``."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "field_reports.toml"
AREAS = {
    "output": "Output",
    "flags": "Flags",
    "failure": "Failures",
    "crash": "Crashes",
    "perf": "Speed",
    "correctness": "Outputs that are wrong",
    "method": "Method",
    "build": "Builds",
    "ci": "Machines and CI",
}
_HEAD = """# Field reports

What users of both forks, and of harnesses around them, reported: what the product does about each, and the tests that
show it. Where a test stands beside a reason, it shows a part, and the reason says which part is not there.

Failures are replayed by a stand-in for `llama-bench` (`tests/standin/llama_bench.py`), and changes of speed are judged
from the reported figures: neither those builds nor those GPUs are at hand. The data is `tests/data/field_reports.toml`.

"""
_COLUMNS = "| id | reported | what the product does | shown by | why not, or not yet |\n|---|---|---|---|---|\n"
_FORGES = "https://github.com/"
_FORKS = ("ikawrakow/ik_llama.cpp", "ggml-org/llama.cpp")


@dataclass(frozen=True)
class Report:
    """One report of the table.

    Attributes:
        id: Its name.
        area: What it is about, one of ``AREAS``.
        sources: Addresses, or names of files in a fork.
        said: What was reported.
        does: What the product does about it.
        tests: Tests that show it, ``path::name``.
        why_not: What is not done or not shown, and why; empty where nothing is missing.
    """

    id: str
    area: str
    sources: tuple[str, ...]
    said: str
    does: str
    tests: tuple[str, ...] = ()
    why_not: str = ""


def reports() -> tuple[Report, ...]:
    """The table, in its order."""
    found = tomllib.loads(DATA.read_text(encoding="utf-8"))["reports"]
    lists = {"sources", "tests"}
    return tuple(Report(**{key: tuple(each[key]) if key in lists else each[key] for key in each}) for each in found)


def page() -> str:
    """The whole page."""
    return _HEAD + _summary() + "".join(f"\n## {title}\n\n{_table(area)}" for area, title in AREAS.items())


def _summary() -> str:
    found = reports()
    whole = sum(bool(each.tests) and not each.why_not for each in found)
    partly = sum(bool(each.tests) and bool(each.why_not) for each in found)
    return (
        f"{len(found)} reports: {whole} handled and shown by tests, {partly} shown in part,"
        f" {len(found) - whole - partly} with a reason alone.\n"
    )


def _table(area: str) -> str:
    return _COLUMNS + "".join(_row(each) for each in reports() if each.area == area)


def _row(report: Report) -> str:
    cells = (
        f"`{report.id}`",
        f"{report.said} ({', '.join(map(_source, report.sources))})",
        report.does,
        "<br>".join(_tests(report.tests)),
        report.why_not,
    )
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |\n"


def _source(source: str) -> str:
    """A link with a short name: owner and repository where it is neither of the two forks."""
    if not source.startswith(_FORGES):
        return f"`{source}`"
    owner, name, *rest = source.removeprefix(_FORGES).split("/")
    whose = name if f"{owner}/{name}" in _FORKS else f"{owner}/{name}"
    return f"[{whose}{' ' + rest[-1][:9] if rest else ''}]({source})"


def _tests(tests: tuple[str, ...]) -> Iterator[str]:
    for test in tests:
        path, name = test.split("::")
        yield f"`{path.removeprefix('tests/')}`: {name.removeprefix('test_').replace('_', ' ')}"


if __name__ == "__main__":
    sys.stdout.write(page())
