"""Differences of outputs where people read them: terminal, JUnit, summary, Markdown; bounded, and never markup."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from judging_support import ANY, BASELINE, CANDIDATE, NODE, PP, arms_runs, contrast, run
from outputs_support import WIDE, answers_of, logits_of, output_of

from harness.cli.report import report
from harness.domain.case import Case, OutputCheck
from harness.domain.job import Design, Job
from harness.domain.outputs import Output
from harness.domain.policy import Policy
from harness.domain.verdict import Verdict
from harness.domain.words import Equivalence, Kind, Status
from harness.judging.judge import judge
from harness.judging.record import JobRecord
from harness.judging.textdiff import show_divergence, word_diff
from harness.reporting.journal import JournalWriter, PlannedCase, RunInfo
from harness.reporting.junit import make_junit
from harness.reporting.page import markdown_page
from harness.reporting.summary import summary_text

EVIL = "\x1b[31m</script> **bold** ```\n# head |\u202e\x00 & [x](y)"
SAME = Case(Kind.EQUIVALENCE, (BASELINE, CANDIDATE), WIDE, ANY, OutputCheck("same", "rtr"))
JOB = Job((BASELINE, CANDIDATE), (PP,), WIDE, ANY, Design(blocks=8), (SAME.id, contrast().id))


def wordy(output: Output, text: str) -> Output:
    """The same with texts: what it generated, and one for each token."""
    pieces = tuple((token, f" t{token}" if token % 2 else f" {EVIL[token % len(EVIL)]}") for token in range(400))
    return replace(output, text=text, pieces=pieces)


def junit_of(verdict: Verdict) -> ET.Element:
    return ET.fromstring(make_junit("m", [verdict]).tostring())  # type: ignore[no-untyped-call]  # noqa: S314 - our own


GOOD = tuple(wordy(each, f"the quick brown fox {EVIL} jumps") for each in answers_of())
WRONG = tuple(
    wordy(output_of(each.prompt, 2 * logits_of(f"p{place + 1}")), f"the quick red fox {EVIL[::-1]}")
    for place, each in enumerate(GOOD)
)
RUNS = (run(0, -1, 100, outputs=GOOD), run(1, -1, 100, outputs=WRONG), *arms_runs([100.0] * 8, [90.0] * 8))
RECORD = JobRecord(JOB, RUNS, None, NODE)
DIFFERENT = judge(SAME, RECORD, Policy())
SPEED = judge(contrast(), RECORD, Policy())


def test_the_first_line_tells_all() -> None:
    assert (DIFFERENT.status, DIFFERENT.equivalence) == (Status.FAIL, Equivalence.DIFFERENT)
    first = DIFFERENT.reason
    assert re.match(r"different: mean KLD [\d.]+ \(tolerance [\d.]+\), .*decode mean [\d.]+ \([\d.]+\), ", first)
    assert re.search(
        r"max [\d.]+ \([\d.]+\), [\d,]+ of [\d,]+ positions flip above [\d.]+ nat, worst prompt 'p\d+' at ", first
    )
    assert len(first) < 600


def test_the_detail_shows_where_what_was_before_what_both_thought_and_both_texts() -> None:
    detail = DIFFERENT.detail
    for part in (
        "hard flips",
        "same top token",
        "\n  after      ",
        "\n- baseline   ",
        "the candidate gives it",
        "  words  ",
    ):
        assert part in detail
    assert "the quick [-brown-]{+red+} fox" in detail
    assert len(detail) < 6000
    assert detail.count("prompt 'p") == 3
    assert all(char.isprintable() or char == "\n" for char in detail)


def test_summary_and_report_show_a_difference_once_and_its_scope() -> None:
    text = summary_text([DIFFERENT, SPEED])
    assert text.count("difference: equivalence/") == 1
    assert "[-brown-]{+red+}" in text
    assert (
        "outputs of 2 cases\n    compared: 16 prompts, 256 greedy tokens, distributions at 1,024 prompt + 256 forced"
        in text
    )
    assert "not covered: tokens beyond the 20 most probable (divergences are lower bounds), longer contexts" in text
    assert "\x1b" not in text
    assert "difference: " not in summary_text([DIFFERENT, SPEED], told=(Status.FAIL, Status.NOT_JUDGED))
    assert "outputs of 2 cases" in summary_text([DIFFERENT, SPEED], told=(Status.FAIL, Status.NOT_JUDGED))


def test_junit_has_the_line_as_message_and_the_rest_as_text() -> None:
    root = junit_of(DIFFERENT)
    failure = root.find(".//failure")
    assert failure is not None
    assert failure.get("message", "").startswith("different: mean KLD ")
    assert "[-brown-]{+red+}" in (failure.text or "")
    assert "not covered: " in (failure.text or "")
    assert root.find(".//property[@name='scope']") is not None


def test_a_pass_inside_tolerances_has_its_figures() -> None:
    """How much outputs change is what a reader wants to know of it; of equal ones there is nothing to tell."""
    figures = "mean KLD 0.0085 (tolerance 0.014), 12 of 16 prompts diverge (16 prompts, 1,536 positions)"
    case, speed = "equivalence/a/b/c@d", Verdict("contrast/a/b/pp@d", Status.PASS, "equivalent, faster")
    for word in (Equivalence.GREEDY, Equivalence.NEAR_TIE, Equivalence.DISTRIBUTION, Equivalence.LOSSY_DECLARED):
        found = Verdict(case, Status.PASS, f"{word}: {figures}", equivalence=word, void="process 3: throttled")
        lines = summary_text([found, speed]).splitlines()
        at = lines.index(f"pass: {case}")
        assert lines[at + 1] == f"    {word}: {figures}"
        assert "    process 3: throttled" in lines
    equal = Verdict(case, Status.PASS, f"bitwise: {figures}", equivalence=Equivalence.BITWISE)
    assert "mean KLD" not in summary_text([equal])


def test_inert_is_a_word_beside_the_others() -> None:
    inert = Verdict("equivalence/a/b/c@d", Status.PASS, "inert", equivalence=Equivalence.BITWISE, inert=True, scope="s")
    assert "pass bitwise inert" in summary_text([inert])
    root = junit_of(inert)
    assert root.find(".//property[@name='inert']") is not None


def test_markdown_is_text_whatever_the_engines_wrote() -> None:
    detail = f"{EVIL}\n````\nmore"
    verdict = Verdict(f"a/{EVIL}/c@d", Status.FAIL, EVIL, detail=detail, scope=EVIL)
    page = markdown_page(EVIL, [verdict], [EVIL])
    outside = re.sub(r"(?s)\n`````text\n.*?\n`````\n", "\n", page)
    assert outside != page, "fenced by more backticks than it holds"
    alive = re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "", outside)
    assert alive != outside, "what is told of it stands in spans of code"
    assert not re.search(r"(?<!\\)[<>`*\[\]@]|://", alive)
    assert not re.search(r"(?m)^# head", outside)
    assert "\x1b" not in page


def test_a_report_in_markdown_from_a_journal(tmp_path: Path) -> None:
    with JournalWriter(tmp_path) as writer:
        writer.run_started(RunInfo("small", "local", cases=2))
        for case in (SAME, contrast()):
            writer.planned(PlannedCase(case, JOB.id))
        writer.job_submitted(JOB, 1)
        writer.job_started(JOB.id, 1, NODE, "box")
        for each in RUNS:
            writer.process(JOB.id, 1, each)
        writer.job_finished(JOB.id, 1, None)
        writer.run_finished()
    result = CliRunner().invoke(report, [str(tmp_path), "--format", "markdown"])
    assert result.exit_code == 1, result.output
    assert "| fail different | `equivalence/" in result.output
    assert "[-brown-]{+red+}" in result.output
    assert (tmp_path / "summary.txt").read_text().count("difference: ") == 1
    assert DIFFERENT.detail.splitlines()[1] in result.output, "judged again from the journal, the same figures"


@pytest.mark.parametrize(
    ("ours", "theirs", "shown"),
    [
        ("the quick brown fox", "the quick red fox", "the quick [-brown-]{+red+} fox"),
        ("a b", "a b c", "a b{+ c+}"),
        ("", "x", "{+x+}"),
        ("a\tb", "a\nb", "a[-\\t-]{+\\n+}b"),
        ("one two " * 30, "one two " * 30 + "three", "...one two one two one two {+three+}"),
        ("x y " + "z " * 40, "x w " + "z " * 40, "x [-y-]{+w+} z z z z...z z z z..."),
    ],
)
def test_word_diffs(ours: str, theirs: str, shown: str) -> None:
    assert word_diff(ours, theirs) == shown


def test_texts_of_any_length_stay_short() -> None:
    assert len(show_divergence("x" * 10_000 + "\U0001f600" * 10_000, "x" * 10_000 + "\x00" * 10_000)) < 2000
