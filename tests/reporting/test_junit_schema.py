"""JUnit files are valid, their times add up, and merging survives what others upload."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from judging_support import arms_runs, contrast, floor, record
from lxml import etree

from harness.domain.errors import BadInput
from harness.domain.policy import Policy
from harness.domain.verdict import ArmSpeed, Estimate, Verdict
from harness.domain.words import Pitfall, Status, Throughput
from harness.judging.judge import judge
from harness.judging.shares import shared_seconds
from harness.reporting import junit_merge
from harness.reporting.junit import MAX_DETAIL_BYTES, hardware_class, make_junit, write_junit
from harness.reporting.junit_merge import merge_junit
from harness.reporting.replay import read_journal

SCHEMA = Path(__file__).with_name("junit_xunit2.rng")
H200 = Path(__file__).parents[1] / "data" / "h200_repack"
EVIL = "\x1b[31mred\x1b]0;title\x07\x00\x08\ud800\ufffe\u202e]]>&<"


def invalid(path: Path) -> str:
    """Why a file is not valid; empty where it is."""
    schema = etree.RelaxNG(etree.parse(SCHEMA))
    return "" if schema.validate(etree.parse(path)) else str(schema.error_log)


def verdicts(number: int, status: Status | None = None) -> list[Verdict]:
    return [
        Verdict(
            f"throughput/m/a{index}..b/pp{EVIL}@any",
            status or list(Status)[index % len(Status)],
            f"regressed: {EVIL}",
            throughput=Throughput.REGRESSED,
            pitfall=Pitfall.GONE,
            estimate=Estimate(0.8, 0.7, 0.9, 4, "ratio"),
            arms=(ArmSpeed(f"a{EVIL}", 100.0, None, 4),),
            detail=EVIL * 3_000,
            node="NVIDIA H200",
            load=EVIL * 3_000,
            seconds=4.0,
        )
        for index in range(number)
    ]


def written(path: Path, found: list[Verdict], name: str = "m") -> Path:
    write_junit(make_junit(name, found, {found[0].case: {EVIL: EVIL}}), path)
    return path


def test_every_outcome_is_valid_with_any_text(tmp_path: Path) -> None:
    path = written(tmp_path / "a.xml", verdicts(14))
    assert invalid(path) == ""
    cases = etree.parse(path).findall(".//testcase")
    assert all(len("".join(case.itertext()).encode()) <= MAX_DETAIL_BYTES for case in cases)
    assert all(len(each.get("value")) <= 4000 for each in etree.parse(path).iter("property"))


def test_the_schema_finds_planted_faults(tmp_path: Path) -> None:
    """What the check is worth: one fault at a time."""
    good = written(tmp_path / "a.xml", verdicts(2)).read_text()
    for old, new in (
        (' time="4.0"', ' time="soon"'),
        ("<testcase ", "<testcase host='x' "),
        ("<failure ", "<broken/><failure "),
        ('errors="0"', 'errors="-1"'),
    ):
        (tmp_path / "b.xml").write_text(good.replace(old, new))
        assert invalid(tmp_path / "b.xml"), (old, new)


@pytest.mark.parametrize("name", ["two_quads.jsonl", "one_quad.jsonl"])
def test_a_real_journals_file_is_valid_and_says_where_it_ran(name: str, tmp_path: Path) -> None:
    state = read_journal(H200 / name)
    path = tmp_path / "junit.xml"
    write_junit(make_junit(state.name, state.final_verdicts(), state.content_keys()), path)
    assert invalid(path) == ""
    ran = [case for case in etree.parse(path).findall(".//testcase") if case.find("error") is None]
    assert all(case.get("classname").endswith(".nvidia-h200") for case in ran)


@pytest.mark.parametrize("name", ["two_quads.jsonl", "one_quad.jsonl"])
def test_times_of_cases_that_share_a_job_add_up_to_its_processes(name: str) -> None:
    state = read_journal(H200 / name)
    ran = sum(run.wall_s for last in state.jobs.values() for run in last.runs)
    assert sum(verdict.seconds for verdict in state.final_verdicts()) == pytest.approx(ran)


def test_a_process_is_shared_by_the_cases_that_rest_on_it() -> None:
    """The floor rests on one arm, the contrast on both."""
    both, one = contrast(), floor(50)
    job = record(arms_runs([100, 100], [80, 80]))
    seconds = shared_seconds({"both": both, "one": one}, job)
    total = sum(run.wall_s for run in job.runs)
    assert seconds["both"] + seconds["one"] == pytest.approx(total)
    assert seconds["both"] == pytest.approx(3 * seconds["one"])


def test_merged_files_are_valid_and_have_every_case_once(tmp_path: Path) -> None:
    files = [written(tmp_path / f"{index}.xml", verdicts(20)) for index in range(3)]
    merged = merge_junit([*files, written(tmp_path / "pass.xml", verdicts(20, Status.PASS))])
    write_junit(merged, tmp_path / "out.xml")
    assert invalid(tmp_path / "out.xml") == ""
    assert (merged.tests, merged.time) == (20, 80.0)
    counted = [len(etree.parse(tmp_path / "out.xml").findall(f".//{tag}")) for tag in ("failure", "error")]
    assert counted == [merged.failures, merged.errors]
    assert gc.isenabled()


def test_an_entity_bomb_and_a_file_of_another_place_are_refused(tmp_path: Path) -> None:
    """Nothing of either is expanded or read."""
    (tmp_path / "secret").write_text("secret words")
    bomb = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "ha"}">' for n in range(12))
    evil = [
        f"<!DOCTYPE testsuites [{bomb}]><testsuites><testsuite name='&e11;'/></testsuites>",
        f"<!DOCTYPE t [<!ENTITY x SYSTEM '{tmp_path / 'secret'}'>]><testsuites><testsuite name='&x;'/></testsuites>",
        "<!DOCTYPE testsuites SYSTEM 'http://127.0.0.1:9/x.dtd'><testsuites/>",
        "<testsuites>" + "<testsuite name='a'>" * 5000 + "</testsuite>" * 5000 + "</testsuites>",
        "<testsuites><testsuite name='a'><testcase name='n' time='soon'/></testsuite></testsuites>",
        "<testsuites><testsuite name='a'><testcase name='n' time='inf'/></testsuite></testsuites>",
    ]
    for text in evil:
        (tmp_path / "a.xml").write_text(text)
        with pytest.raises(BadInput, match="E-not-junit"):
            merge_junit([tmp_path / "a.xml"])


def test_a_file_larger_than_any_report_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(junit_merge, "MAX_FILE_BYTES", 1000)
    (tmp_path / "a.xml").write_text(" " * 1001)
    with pytest.raises(BadInput, match="E-junit-too-large"):
        merge_junit([tmp_path / "a.xml"])


def test_a_file_of_more_elements_than_any_report_is_refused_unparsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred megabytes of nothing but tags would take gigabytes."""
    monkeypatch.setattr(junit_merge, "MAX_TAGS", 1000)
    (tmp_path / "a.xml").write_text("<testsuites>" + "<a>" * 1001)
    with pytest.raises(BadInput, match=r"E-junit-too-large.*tags"):
        merge_junit([tmp_path / "a.xml"])


def test_long_texts_of_other_tools_are_cut_to_their_beginning_and_end(tmp_path: Path) -> None:
    log = f"first words {'x' * 300_000} last words"
    (tmp_path / "a.xml").write_text(
        f"<testsuites><testsuite name='a'><testcase name='n' classname='c' time='1'><system-out>{log}</system-out>"
        "</testcase></testsuite></testsuites>"
    )
    write_junit(merge_junit([tmp_path / "a.xml"]), tmp_path / "out.xml")
    assert invalid(tmp_path / "out.xml") == ""
    text = etree.parse(tmp_path / "out.xml").findtext(".//system-out")
    assert text.startswith("first words")
    assert text.endswith("last words")
    assert len(text.encode()) <= MAX_DETAIL_BYTES


def test_what_report_viewers_read_tells_the_figures_and_where() -> None:
    """They show name, class name, time, and of a result its message, type and text; properties they do not read."""
    runs = arms_runs([100, 101, 99, 100] * 2, [80, 80.8, 79.2, 80] * 2)
    verdict = judge(contrast(), record(runs), Policy())
    (case,) = etree.fromstring(make_junit("m", [verdict]).tostring()).iter("testcase")
    failure = case.find("failure")
    seen = {"group": case.get("classname"), "title": case.get("name"), "annotation": failure.get("message")}
    assert seen["group"].startswith("moe.throughput.")
    assert seen["group"].endswith("." + hardware_class(verdict.node))
    assert seen["title"] == verdict.case
    for word in ("100.2 -> 80.13 t/s", "ratio 0.800 [", "99 % interval", "on Test CPU 9000", "@any"):
        assert word in seen["annotation"]
        assert word in failure.text.splitlines()[0]
