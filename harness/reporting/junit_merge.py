"""Merge JUnit files: every case once, with its properties."""
# mypy: allow-untyped-calls
# (junitparser says that it is typed, but half of its methods have no annotations)

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import TypeAlias

import junitparser
from junitparser import xunit2

from harness.domain.errors import BadInput

_Key: TypeAlias = tuple[str, str]


def merge_junit(paths: Sequence[Path]) -> xunit2.JUnitXml:
    """Merge files into one document; suites of one name become one.

    A case that several files have, by class name and name, is kept in its worst outcome, so that an old pass cannot
    hide a failure; among equals the later file's.

    Args:
        paths: The files, in order.

    Raises:
        BadInput: If a file cannot be read or is no JUnit.
    """
    chosen: dict[_Key, tuple[str, junitparser.TestCase]] = {}
    suites: dict[str, xunit2.TestSuite] = {}
    for path in paths:
        for suite in _read(path):
            _carry_properties(suite, suites.setdefault(suite.name or "", xunit2.TestSuite(suite.name or "")))
            for case in suite:
                _choose(chosen, suite.name or "", case)
    for suite_name, merged in suites.items():
        merged.add_testcases([deepcopy(case) for home, case in chosen.values() if home == suite_name])
    document = xunit2.JUnitXml()
    for merged in suites.values():
        document.append(merged)
    document.update_statistics()
    return document


def severity(case: junitparser.TestCase) -> int:
    """Order outcomes: error over failure over pass over skipped."""
    if case.is_error:
        return 3
    if case.is_failure:
        return 2
    return 0 if case.is_skipped else 1


def _choose(chosen: dict[_Key, tuple[str, junitparser.TestCase]], suite: str, case: junitparser.TestCase) -> None:
    key = (case.classname or "", case.name or "")
    known = chosen.get(key)
    if known is None or severity(case) >= severity(known[1]):
        chosen[key] = (known[0] if known else suite, case)


def _carry_properties(source: junitparser.TestSuite, target: xunit2.TestSuite) -> None:
    known = {(each.name, each.value) for each in target.properties()}
    for each in source.properties():
        if (each.name, each.value) not in known:
            target.add_property(each.name, each.value)


def _read(path: Path) -> junitparser.JUnitXml:
    try:
        return xunit2.JUnitXml.fromfile(str(path))
    except OSError as error:
        raise BadInput("E-no-junit", f"the file cannot be read: {error.strerror or error}", where=f"{path}") from error
    except (SyntaxError, ValueError, junitparser.JUnitXmlError) as error:
        raise BadInput("E-not-junit", f"the file is no JUnit XML: {error}", where=f"{path}") from error
