"""JUnit, summary and exit code from verdicts."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from xml.etree import ElementTree as ET

import junitparser
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging_support import arms_runs, contrast, floor, pitfall, record
from junitparser import xunit2

from harness.domain.errors import BadInput, Infrastructure
from harness.domain.policy import Policy
from harness.domain.verdict import Verdict
from harness.domain.words import Pitfall, Status
from harness.judging.judge import judge
from harness.reporting.clean import capped, clean
from harness.reporting.codec import decode, encode
from harness.reporting.junit import MAX_DETAIL_BYTES, classname, hardware_class, make_junit, write_junit, write_whole
from harness.reporting.junit_merge import merge_junit
from harness.reporting.outcomes import counts_line, exit_code
from harness.reporting.summary import summary_text

SLOWER = arms_runs([100, 101, 99, 100] * 2, [80, 80.8, 79.2, 80] * 2)
REGRESSED = judge(contrast(), record(SLOWER), Policy())
PASSED = judge(floor(50), record(SLOWER), Policy())
GONE = judge(pitfall(), record(arms_runs([80, 80.8, 79.2, 80] * 2, [100, 101, 99, 100] * 2)), Policy())
SKIPPED = Verdict("memory/m/a/peak@any", Status.NOT_JUDGED, "speed of wrong output")
ERROR = Verdict("equivalence/m/a..b/greedy32@any", Status.ERROR, "node lost", slug="E-node-lost", detail="log")
ALL = (REGRESSED, PASSED, GONE, SKIPPED, ERROR)

TESTCASE_CHILDREN = {"properties", "failure", "error", "skipped", "system-out", "system-err"}


def write(path: Path, verdicts: tuple[Verdict, ...], name: str = "small") -> Path:
    write_junit(make_junit(name, verdicts, {REGRESSED.case: {"ik+rtr=0": "k0"}}), path)
    return path


def read(path: Path) -> list[xunit2.TestCase]:
    document = xunit2.JUnitXml.fromfile(str(path))
    return [xunit2.TestCase.fromelem(case) for suite in document for case in suite]


def test_outcomes_follow_the_contract(tmp_path: Path) -> None:
    cases = read(write(tmp_path / "junit.xml", ALL))
    found = [[type(result).__name__ for result in case.result] for case in cases]
    assert found == [["Failure"], [], [], ["Skipped"], ["Error"]]
    suite = ET.parse(tmp_path / "junit.xml").getroot()[0]  # noqa: S314 - our own file
    assert [suite.get(name) for name in ("name", "tests", "failures", "errors", "skipped")] == [
        "small",
        "5",
        "1",
        "1",
        "1",
    ]


def test_messages_carry_the_figures(tmp_path: Path) -> None:
    regressed, _, gone, skipped, error = read(write(tmp_path / "junit.xml", ALL))
    assert regressed.result[0].message.startswith("regressed: 100.2 -> 80.13 t/s, ratio 0.800 [")
    assert "Test CPU 9000" in regressed.result[0].message
    assert regressed.result[0].type == "regressed"
    assert skipped.result[0].message.startswith("not_judged: ")
    assert error.result[0].type == "E-node-lost"
    assert "out of date for this build" in gone.system_out


def test_class_name_name_time_and_properties(tmp_path: Path) -> None:
    case = read(write(tmp_path / "junit.xml", ALL))[0]
    assert case.classname == "moe.throughput.tiny-moe-iq4_xs.any.test-9000"
    assert (case.name, case.time) == (REGRESSED.case, 40.0)
    properties = {each.name: each.value for each in case.properties()}
    assert properties["throughput"] == "regressed"
    assert float(properties["low"]) < float(properties["estimate"]) < float(properties["high"]) < 1
    assert float(properties["tps[ik+rtr=1]"]) == pytest.approx(80, rel=1e-2)
    assert properties["content_key[ik+rtr=0]"] == "k0"


def test_the_same_verdicts_give_the_same_bytes(tmp_path: Path) -> None:
    assert write(tmp_path / "a.xml", ALL).read_bytes() == write(tmp_path / "b.xml", ALL).read_bytes()


def test_structure_is_xunit2(tmp_path: Path) -> None:
    root = ET.parse(write(tmp_path / "junit.xml", ALL)).getroot()  # noqa: S314 - our own file
    assert root.tag == "testsuites"
    for suite in root:
        assert {"name", "tests", "failures", "errors", "skipped", "time"} <= suite.attrib.keys()
        for case in suite:
            assert case.attrib.keys() == {"name", "classname", "time"}
            assert {child.tag for child in case} <= TESTCASE_CHILDREN
            assert all(child.attrib.keys() == {"name", "value"} for child in case.iterfind("properties/property"))


@given(st.text(st.characters(), max_size=60), st.text(st.characters(), max_size=60))
def test_any_text_gives_well_formed_xml(text: str, other: str) -> None:
    verdict = Verdict(f"a/{text}/c/d@e", Status.FAIL, text, slug=other, detail=other, expected=text, node=other)
    document = make_junit(text, [verdict], {verdict.case: {other: text}})
    ET.fromstring(document.tostring())  # noqa: S314 - our own text


def test_control_characters_and_terminal_escapes_are_removed_everywhere(tmp_path: Path) -> None:
    evil = "\x1b[31mred\x1b[0m\x1b]0;title\x07\x9b2J\x00\x08\ud800\ufffe\u202e!"
    verdict = Verdict(f"a/b/{evil}@d", Status.FAIL, evil, detail=evil, slug=evil)
    write_junit(make_junit("m", [verdict], {verdict.case: {evil: evil}}), tmp_path / "junit.xml")
    text = (tmp_path / "junit.xml").read_text()
    assert not any(char in text for char in "\x1b\x9b\x00\x08\ufffe\u202e")
    assert clean(evil) == "red!"
    assert "\x1b" not in summary_text([verdict])


def test_details_are_capped_and_keep_their_end(tmp_path: Path) -> None:
    verdict = Verdict("a/b/c/d@e", Status.FAIL, "crashed", detail="é" * 200_000 + "the last words")
    text = read(write(tmp_path / "junit.xml", (verdict,)))[0].result[0].text
    assert len(text.encode()) <= MAX_DETAIL_BYTES
    assert text.endswith("the last words")
    assert "bytes left out" in text
    assert capped("short", 100) == "short"


def test_odd_case_ids_still_have_a_class_name() -> None:
    assert classname("no slashes") == "moe.no slashes"
    assert classname("throughput/qwen3.6/a/b@h200") == "moe.throughput.qwen3_6.h200"


@pytest.mark.parametrize(
    ("node", "word"),
    [
        ("NVIDIA H200", "nvidia-h200"),
        ("2x NVIDIA H200, NVIDIA L4", "2x-nvidia-h200-nvidia-l4"),
        ("Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz (2 cores)", "intel-xeon-gold-6338"),
        ("AMD Ryzen 9 5900X 12-Core Processor (12 cores)", "amd-ryzen-9-5900x"),
    ],
)
def test_the_gpu_or_cpu_is_the_last_level_of_the_class_name(node: str, word: str) -> None:
    """A viewer reads no properties: on which hardware it failed stands where it groups by."""
    assert hardware_class(node) == word
    assert classname("throughput/m/a/b@any", node) == f"moe.throughput.m.any.{word}"


def test_merging_keeps_each_case_once_in_its_worst_outcome(tmp_path: Path) -> None:
    passing = Verdict(REGRESSED.case, Status.PASS, "fine")
    first = write(tmp_path / "a.xml", (REGRESSED, PASSED))
    second = write(tmp_path / "b.xml", (passing, ERROR))
    merged = merge_junit([first, second, first])
    write_junit(merged, tmp_path / "out.xml")
    cases = read(tmp_path / "out.xml")
    assert sorted(case.name for case in cases) == sorted([REGRESSED.case, PASSED.case, ERROR.case])
    kept = next(case for case in cases if case.name == REGRESSED.case)
    assert kept.is_failure
    assert {each.name for each in kept.properties()} >= {"throughput", "content_key[ik+rtr=0]"}
    assert (merged.tests, merged.failures, merged.errors) == (3, 1, 1)


def test_merging_reads_pytests_own_files_and_keeps_suite_properties(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(
        '<testsuite name="pytest" tests="1"><properties><property name="p" value="v"/></properties>'
        '<testcase classname="c" name="n" time="1"><skipped message="unsupported"/></testcase></testsuite>'
    )
    merged = merge_junit([tmp_path / "a.xml", tmp_path / "a.xml"])
    (suite,) = list(merged)
    assert [(each.name, each.value) for each in suite.properties()] == [("p", "v")]
    assert [case.is_skipped for case in suite] == [True]


@pytest.mark.parametrize("content", ["", "<html/>", "<testsuites>"])
def test_merging_refuses_what_is_no_junit(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.xml").write_text(content)
    with pytest.raises(BadInput) as caught:
        merge_junit([tmp_path / "a.xml"])
    assert caught.value.slug == "E-not-junit"


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [((PASSED, GONE), 0), (ALL, 1), ((PASSED, ERROR), 3), ((PASSED, SKIPPED), 3), ((), 3)],
)
def test_exit_codes(verdicts: tuple[Verdict, ...], code: int) -> None:
    assert exit_code(verdicts) == code


def test_an_incomplete_plan_is_no_success() -> None:
    assert exit_code([PASSED], complete=False) == 3


def test_unsupported_and_not_applicable_are_fine() -> None:
    verdicts = [Verdict("c", Status.UNSUPPORTED, ""), Verdict("d", Status.NOT_APPLICABLE, "")]
    assert exit_code(verdicts) == 0


def test_the_summary_puts_failures_first_and_warns_of_gone_pitfalls() -> None:
    text = summary_text(ALL, notes=["line 3: not an event"])
    lines = text.splitlines()
    assert lines[1].startswith("fail regressed")
    assert "0.800 [" in lines[1]
    assert f"warning: {GONE.case}" in text
    assert "journal\n    line 3: not an event" in text
    assert lines[-1] == counts_line(ALL) == "5 cases: 2 pass, 1 fail, 1 error, 1 not_judged"
    assert "synthetic weights" in text
    assert GONE.pitfall is Pitfall.GONE


def test_the_summary_does_not_read_brackets_as_markup() -> None:
    assert "[bold]" in summary_text([Verdict("a/[bold]/c", Status.FAIL, "[red]x[/red]")])


def test_the_table_fits_its_width() -> None:
    long = Verdict("throughput/" + "m" * 100 + "/a/pp512@any", Status.PASS, "fine")
    table = summary_text([long]).splitlines()
    assert max(map(len, table)) <= 120
    assert isinstance(make_junit("x", []), junitparser.JUnitXml)


def test_a_report_that_does_not_fit_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old report stays whole, and no half of the new one lies beside it."""
    report = tmp_path / "report.txt"
    write_whole(report, b"old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fchmod", full)
    with pytest.raises(Infrastructure, match=r"E-report-write: .*No space left"):
        write_whole(report, b"new")
    assert [file.name for file in tmp_path.iterdir()] == ["report.txt"]
    assert report.read_bytes() == b"old"


def test_what_only_was_measured_is_not_shown_as_approved() -> None:
    """Its status stays."""
    measured = judge(floor(None), record(SLOWER), Policy())
    assert measured.status is Status.PASS
    assert "pass measured" in summary_text([measured])
    assert "measured" not in summary_text([PASSED])


def test_an_interval_that_assumes_something_says_so_in_table_and_properties(tmp_path: Path) -> None:
    few = judge(contrast(), record(arms_runs([100, 101, 99, 100], [97, 99, 96, 98])), Policy())
    assert "if quads scatter by 10 %\n" in summary_text([few])
    assert 'name="assumed" value="0.1"' in write(tmp_path / "few.xml", (few,)).read_text()
    assert "if quads scatter" not in summary_text([REGRESSED])
    assert 'name="assumed"' not in write(tmp_path / "all.xml", ALL).read_text()


def test_verdicts_of_old_journals_assume_nothing() -> None:
    old = encode(REGRESSED)
    del old["estimate"]["assumed"]
    assert decode(Verdict, old) == REGRESSED
