"""Merge JUnit files: every case once, with its properties.

The files may be anybody's: shards upload them. None of them is read that declares a document type (only there could it
name entities, of this file or of other places) or that is larger than any report of ours can be, and texts are cut as
in our own.
"""
# mypy: allow-untyped-calls
# (junitparser says that it is typed, but half of its methods have no annotations)

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from xml.parsers import expat

import junitparser
from junitparser import xunit2

from harness import garbage
from harness.domain.errors import BadInput
from harness.reporting.clean import capped, one_line
from harness.reporting.junit import MAX_DETAIL_BYTES, unplaced

MAX_FILE_BYTES = 128 * 2**20
"""Two thousand cases with the longest texts that ours have."""
MAX_TAGS = 2_000_000
"""Of one file: ours have some thirty a case. Elements take far more memory than their text."""
_PIECE = 1 << 16
_MOST_BYTES = 4
"""Of one character."""
_SKIPPED, _PASSED, _FAILED, _ERRED = range(4)
_SEVERITIES: dict[type, int] = {junitparser.Error: _ERRED, junitparser.Failure: _FAILED, junitparser.Skipped: _SKIPPED}

_Key: TypeAlias = tuple[str, str]


def merge_junit(paths: Sequence[Path]) -> xunit2.JUnitXml:
    """Merge files into one document; suites of one name become one.

    A case that several files have, by class name and name, is kept in its worst outcome, so that an old pass cannot
    hide a failure; among equals the later file's. On which hardware one of ours ran makes it no other case: what was
    lost before it ran anywhere has none in its class name.

    Args:
        paths: The files, in order.

    Raises:
        BadInput: If a file cannot be read, is no JUnit, declares a document type or is too large.
    """
    merging = _Merging()
    with garbage.not_looked_for():  # all elements stay, and searching them takes as long as reading them
        for path in paths:
            merging.take(path)
        return merging.document()


@dataclass(frozen=True, slots=True)
class _Taken:
    """A case as it was chosen, with what is asked of it more than once: asking walks through all that it holds.

    Attributes:
        suite: Name of the suite that it stands in.
        severity: Order of outcomes: error over failure over pass over skipped.
        seconds: Its time.
        case: The case.
    """

    suite: str
    severity: int
    seconds: float
    case: junitparser.TestCase


class _Merging:
    """Files on their way to one document. Of a file that was taken only the cases that were chosen stay in memory."""

    def __init__(self) -> None:
        self._chosen: dict[_Key, _Taken] = {}
        self._suites: dict[str, xunit2.TestSuite] = {}

    def take(self, path: Path) -> None:
        """Read one more file."""
        try:
            for suite in _read(path):
                name = suite.name or ""
                _carry_properties(suite, self._suites.setdefault(name, xunit2.TestSuite(name)))
                self._take_cases(name, suite)
        except (junitparser.JUnitXmlError, RecursionError, TypeError, ValueError) as error:
            raise _no_junit(path, f"{error}") from error

    def document(self) -> xunit2.JUnitXml:
        """All that was taken; cases in the order in which they were first seen."""
        document = xunit2.JUnitXml()
        for name, merged in self._suites.items():
            cases = [taken for taken in self._chosen.values() if taken.suite == name]
            merged.extend([taken.case for taken in cases])
            _count(merged, cases)
            merged.skipped = sum(taken.severity == _SKIPPED for taken in cases)
            document.append(merged)
        _count(document, list(self._chosen.values()))
        return document

    def _take_cases(self, suite_name: str, suite: junitparser.TestSuite) -> None:
        # A case that is moved to this shelf lets go of its file, which would stay in memory as a whole otherwise.
        shelf = xunit2.TestSuite()
        for case in list(suite):
            key = (unplaced(case.classname or ""), case.name or "")
            parts = list(case)
            severity = max((_SEVERITIES[type(part)] for part in parts if type(part) in _SEVERITIES), default=_PASSED)
            known = self._chosen.get(key)
            if known is None or severity >= known.severity:
                _cut(parts)
                shelf.append(case)
                self._chosen[key] = _Taken(known.suite if known else suite_name, severity, _seconds(case), case)


def _seconds(case: junitparser.TestCase) -> float:
    seconds = case.time or 0.0
    if not math.isfinite(seconds):
        raise ValueError(f"the time of {one_line(case.name or 'a case')} is {seconds}")
    return seconds


def _count(element: xunit2.JUnitXml | xunit2.TestSuite, cases: Sequence[_Taken]) -> None:
    element.tests = len(cases)
    element.failures = sum(taken.severity == _FAILED for taken in cases)
    element.errors = sum(taken.severity == _ERRED for taken in cases)
    element.time = round(sum(taken.seconds for taken in cases), 3)


def _cut(parts: Sequence[junitparser.junitparser.Result | junitparser.junitparser.System]) -> None:
    """Keep a case's texts as short as our own."""
    for part in parts:
        if part.text and len(part.text) > MAX_DETAIL_BYTES // _MOST_BYTES:
            part.text = capped(part.text, MAX_DETAIL_BYTES)


def _carry_properties(source: junitparser.TestSuite, target: xunit2.TestSuite) -> None:
    known = {(each.name, each.value) for each in target.properties()}
    for each in source.properties():
        if (each.name, each.value) not in known:
            target.add_property(each.name, each.value)


def _read(path: Path) -> junitparser.JUnitXml:
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            message = f"the file has {size / 2**20:.0f} MiB, no report has more than {MAX_FILE_BYTES / 2**20:.0f} MiB"
            raise BadInput("E-junit-too-large", message, hint="leave logs to artifacts", where=f"{path}")
        _refuse_document_type(path)
        _refuse_many_tags(path)
        return xunit2.JUnitXml.fromfile(str(path))
    except OSError as error:
        raise BadInput("E-no-junit", f"the file cannot be read: {error.strerror or error}", where=f"{path}") from error
    except (SyntaxError, ValueError, expat.ExpatError, junitparser.JUnitXmlError) as error:
        raise _no_junit(path, f"{error}") from error


def _no_junit(path: Path, why: str) -> BadInput:
    return BadInput("E-not-junit", f"the file is no JUnit XML: {why}", where=f"{path}")


class _Begun(Exception):  # noqa: N818 - no error: what comes before the first element is over
    """The first element came."""


def _refuse_document_type(path: Path) -> None:
    """Read as far as the first element: a document type can only stand before it.

    Raises:
        BadInput: ``E-not-junit``: there is one.
    """
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise _no_junit(path, "it declares a document type, which no report needs and entities hide in")

    def begun(*_: object) -> None:
        raise _Begun

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = begun
    with path.open("rb") as file:
        try:
            while piece := file.read(_PIECE):
                parser.Parse(piece)
        except _Begun:
            return


def _refuse_many_tags(path: Path) -> None:
    """Count before parsing: a small file can hold more elements than the memory.

    Raises:
        BadInput: ``E-junit-too-large``.
    """
    tags = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            tags += piece.count(b"<")
            if tags > MAX_TAGS:
                message = f"the file has more than {MAX_TAGS} tags, no report has so many"
                raise BadInput("E-junit-too-large", message, where=f"{path}")
