"""Journals and JUnit files that anything was done to: what can be read counts, the rest is told, nothing is raised."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from harness.domain.errors import BadInput, HarnessError
from harness.reporting.junit import make_junit, write_junit
from harness.reporting.junit_merge import merge_junit
from harness.reporting.projections import notes
from harness.reporting.replay import MOST_PROBLEMS, read_journal
from harness.reporting.summary import summary_text

JOURNAL = Path(__file__).parents[1] / "data" / "gate" / "slow.jsonl"
EVENTS = [json.loads(line) for line in JOURNAL.read_text().splitlines()]
EXAMPLES = 40
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["\ud800", "\x1b[2J", "NaN", "-Infinity", "9" * 5000, "../../x", "a\x00b"]),
    st.just([]),
    st.just({}),
    st.lists(st.integers(-1, 1), max_size=3),
)

LINES = st.sampled_from([b"{}", b"[[", b'{"event": 1}', b"\xff", b"\n"])


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Everything in a JSON value that could be another: what holds it, and its key."""
    keys = list(value) if isinstance(value, Mapping) else list(range(len(value))) if isinstance(value, list) else []
    return [place for key in keys for place in [(value, key), *_places(value[key])]]


@st.composite
def journals(draw: st.DrawFn) -> bytes:
    """The journal with values that no harness writes, lines left out, twice or at another place, and a torn end."""
    events = json.loads(json.dumps(EVENTS))
    for _ in range(draw(st.integers(0, 4))):
        event = draw(st.sampled_from(events))
        holder, key = draw(st.sampled_from(_places(event)))
        if draw(st.booleans()) or isinstance(holder, list):
            holder[key] = draw(ODD)
        else:
            del holder[key]
        if not event:
            event["event"] = "verdict"
    order = draw(st.permutations(range(len(events)))) if draw(st.booleans()) else list(range(len(events)))
    kept = order[: draw(st.integers(0, len(order)))] + order[: draw(st.integers(0, 2))]
    text = "".join(f"{json.dumps(events[index])}\n" for index in kept).encode()
    return text[: len(text) - draw(st.integers(0, 40))] + draw(st.binary(max_size=5))


@settings(max_examples=EXAMPLES)
@given(journals())
def test_whatever_was_done_to_a_journal_its_projections_are_made(
    tmp_path_factory: pytest.TempPathFactory, journal: bytes
) -> None:
    """Summary and JUnit too: a value that was taken can be judged and shown."""
    file = tmp_path_factory.getbasetemp() / "any.jsonl"
    file.write_bytes(journal)
    try:
        state = read_journal(file)
        verdicts = state.final_verdicts()
        assert {verdict.case for verdict in verdicts} == set(state.planned)
        summary_text(verdicts, notes(state)).encode()
        write_junit(make_junit(state.name, verdicts, state.content_keys()), file.with_suffix(".xml"))
        etree.parse(file.with_suffix(".xml"))
    except HarnessError:
        return


@settings(max_examples=EXAMPLES)
@given(
    st.binary(max_size=200) | st.lists(st.sampled_from([b"{}", b"[[", b'{"event": 1}', b"\xff", b"\n"])).map(b"".join)
)
def test_any_bytes_are_no_journal_or_an_empty_one(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Nothing but problems is found in them."""
    file = tmp_path_factory.getbasetemp() / "bytes.jsonl"
    file.write_bytes(content)
    state = read_journal(file)
    assert state.run is None
    assert not state.planned


def test_of_a_flood_of_lines_that_cannot_be_used_some_are_named_and_the_others_counted(tmp_path: Path) -> None:
    """The reports of such a journal stay as short as those of another."""
    file = tmp_path / "journal.jsonl"
    file.write_bytes(JOURNAL.read_bytes() + b'{"event": "verdict"}\n' * 5000 + b'{"torn')
    state = read_journal(file)
    assert len(state.problems) == MOST_PROBLEMS + 1
    assert state.problems[-1].message == f"{5001 - MOST_PROBLEMS} more lines can't be used"
    assert state.torn == 1
    assert len(state.final_verdicts()) == len(read_journal(JOURNAL).final_verdicts())


@pytest.fixture(scope="module")
def junit(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A JUnit file of ours."""
    state = read_journal(JOURNAL)
    file = tmp_path_factory.mktemp("junit") / "junit.xml"
    write_junit(make_junit(state.name, state.final_verdicts(), state.content_keys()), file)
    return file.read_text()


PIECES = st.sampled_from(
    [
        *("<", ">", "&", "&#0;", "&#xD800;", "&lt;", '"', "nan", "-1", "1e999", "\x00", "\u202e", " time='x'"),
        *("<testcase/>", "</testcase>", "<failure/>", "<testsuite>", "<![CDATA[", "]]>", "<!--", "<?x?>"),
        "<property name='a'/>",
    ]
)


@settings(max_examples=EXAMPLES)
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 30), PIECES | st.text(max_size=4)), max_size=4))
def test_whatever_was_done_to_a_junit_file_it_is_merged_or_refused(
    tmp_path_factory: pytest.TempPathFactory, junit: str, edits: list[tuple[float, int, str]]
) -> None:
    """What is merged is well-formed again, and no case is in it twice."""
    for share, gone, piece in edits:
        at = int(share * len(junit))
        junit = junit[:at] + piece + junit[at + gone :]
    file = tmp_path_factory.getbasetemp() / "any.xml"
    file.write_bytes(junit.encode("utf-8", "surrogatepass"))
    try:
        merged = merge_junit([file, file])
    except BadInput:
        return
    write_junit(merged, file.with_name("merged.xml"))
    cases = etree.parse(file.with_name("merged.xml")).findall(".//testcase")
    names = [(case.get("classname"), case.get("name")) for case in cases]
    assert len(names) == len(set(names))
