"""The commands ``report`` and ``junit merge``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1] / "judging"))

from judging_support import BASELINE, CANDIDATE, NODE, PP, arms_runs, contrast, floor

from harness.cli.compare import compare
from harness.cli.junit import junit
from harness.cli.report import report
from harness.domain.case import Case
from harness.domain.errors import BadInput
from harness.domain.job import Design, Job
from harness.domain.node import NodeClass
from harness.reporting.journal import JournalWriter, PlannedCase, RunInfo

JOB = Job((BASELINE, CANDIDATE), (PP,), None, NodeClass("any"), Design(blocks=8), ())


def journal(folder: Path, *cases: Case, finished: bool = True) -> Path:
    with JournalWriter(folder) as writer:
        writer.run_started(RunInfo("small", "local", cases=len(cases)))
        for case in cases:
            writer.planned(PlannedCase(case, JOB.id))
        writer.job_submitted(JOB, 1)
        writer.job_started(JOB.id, 1, NODE, "box")
        for each in arms_runs([100, 101, 99, 100] * 2, [80, 81, 79, 80] * 2):
            writer.process(JOB.id, 1, each)
        if finished:
            writer.job_finished(JOB.id, 1, None)
            writer.run_finished()
    return writer.path


def test_report_makes_the_projections_beside_the_journal(tmp_path: Path) -> None:
    journal(tmp_path, floor(50))
    result = CliRunner().invoke(report, [str(tmp_path)])
    assert result.exit_code == 0
    assert "1 case: 1 pass" in result.output
    assert (tmp_path / "summary.txt").read_text() == result.output
    assert b"<testsuites" in (tmp_path / "junit.xml").read_bytes()


def test_report_exits_with_the_finding(tmp_path: Path) -> None:
    path = journal(tmp_path / "in", floor(50), contrast())
    result = CliRunner().invoke(report, [str(path), "--out", str(tmp_path / "out"), "--format", "json"])
    assert result.exit_code == 1
    told = json.loads(result.output)
    assert [verdict["status"] for verdict in told["verdicts"]] == ["pass", "fail"]
    assert (tmp_path / "out" / "junit.xml").exists()


def test_report_of_a_killed_run_is_undecided(tmp_path: Path) -> None:
    journal(tmp_path, floor(50), finished=False)
    result = CliRunner().invoke(report, [str(tmp_path)])
    assert result.exit_code == 3
    assert "the run did not come to its end" in result.output
    assert "running on box since" in result.output


def test_report_twice_writes_the_same_bytes(tmp_path: Path) -> None:
    path = journal(tmp_path, floor(50), contrast())
    for out in ("a", "b"):
        CliRunner().invoke(report, [str(path), "--out", str(tmp_path / out)])
    for name in ("junit.xml", "summary.txt", "report.html"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_report_without_a_journal_is_bad_input(tmp_path: Path) -> None:
    result = CliRunner().invoke(report, [str(tmp_path)])
    assert isinstance(result.exception, BadInput)


def test_junit_merge_writes_each_case_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        CliRunner().invoke(report, [str(journal(tmp_path / name, floor(50), contrast()))])
    inputs = [str(tmp_path / name / "junit.xml") for name in ("a", "b")]
    result = CliRunner().invoke(junit, ["merge", str(tmp_path / "out.xml"), *inputs])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("2 cases, 1 failures, 0 errors")


@pytest.mark.parametrize("damaged", ["planned", "job_submitted"])
def test_a_flag_that_is_no_finite_number_is_a_damaged_line(tmp_path: Path, damaged: str) -> None:
    path, sound = journal(tmp_path / "bad", contrast()), journal(tmp_path / "sound", contrast())
    lines = path.read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if f'"event": "{damaged}"' in line)
    assert '["fa", 1]' in lines[at]
    lines[at] = lines[at].replace('["fa", 1]', '["fa", Infinity]')
    path.write_text("".join(lines))
    told = f"line {at + 1}: ValueError: the flag fa of ik is inf"

    result = CliRunner().invoke(report, [str(path), "--format", "json"], catch_exceptions=False)
    assert result.exit_code == 3
    assert any(
        told == f"line {each['line']}: {each['message']}"[: len(told)] for each in json.loads(result.output)["problems"]
    )
    with pytest.raises(BadInput, match=f"E-nothing-readable.*{told}"):
        CliRunner().invoke(compare, [str(path), str(sound)], catch_exceptions=False)
