"""The table of field reports is whole, its tests exist, and its page is made of it."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TypeGuard

import pytest
from field_report_page import AREAS, Report, page, reports

ROOT = Path(__file__).parents[2]
IDS = "9645fa3b35996316bc64827a9fa1eac288af839dee2bb5cc493553ec93950022"
"""SHA-256 of the ids of all reports that were collected, sorted, a line each."""
REPORTS = reports()


@cache
def names_of(path: str) -> frozenset[str]:
    """The tests of a module, without running it."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_each_report_is_there_once() -> None:
    """116 of them, and no other."""
    counted = Counter(report.id for report in REPORTS)
    assert [name for name, times in counted.items() if times > 1] == []
    assert len(counted) == 116
    assert hashlib.sha256("\n".join(sorted(counted)).encode()).hexdigest() == IDS


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.id)
def test_a_report_says_what_it_must(report: Report) -> None:
    """What, whence, what is done, and a test that exists or the reason why there is none."""
    assert report.area in AREAS
    assert report.sources
    assert report.said.endswith(".")
    assert report.does.endswith(".")
    assert report.tests or report.why_not
    assert report.why_not.endswith(".") == bool(report.why_not)
    assert len(set(report.tests)) == len(report.tests)
    for test in report.tests:
        path, _, name = test.partition("::")
        assert name.startswith("test_")
        assert name in names_of(path), test


@pytest.mark.parametrize(
    "test",
    [
        "tests/execution/test_field_failures.py::test_a_reported_failure_has_its_kind_and_its_words",
        "tests/judging/test_field_speeds.py::test_a_reported_change_is_found_in_the_speed_that_changed",
    ],
)
def test_a_report_that_names_a_table_of_cases_is_in_it(test: str) -> None:
    """And each case of it is named by its report: ``ID`` or ``ID, what else``."""
    tree = ast.parse((ROOT / test.partition("::")[0]).read_text(encoding="utf-8"))
    keys = [key.value for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys if is_text(key)]
    ids = {report.id for report in REPORTS}
    assert {report.id for report in REPORTS if test in report.tests} == {key.split(",")[0] for key in keys} & ids


def is_text(node: ast.expr | None) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_the_page_is_of_the_table() -> None:
    """Generated."""
    said = "run: python tests/docs/field_report_page.py > docs/reference/field-reports.md"
    assert (ROOT / "docs" / "reference" / "field-reports.md").read_text(encoding="utf-8") == page(), said
