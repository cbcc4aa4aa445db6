"""A folder of reports that can't be used, is in use, or is taken away: one message, and no measurement is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from mini_matrix import CASES

from harness.domain.errors import Infrastructure
from harness.reporting import junit
from harness.reporting.journal import JournalWriter
from harness.reporting.replay import read_journal
from harness.running.matrix_run import MatrixRun

LOCAL = ("-m", "moe", "--moe-executor=local")


def unusable(folder: Path, how: str) -> Path:
    """A place where no journal can be made, for root too."""
    place = folder / "place"
    if how == "file":
        place.write_text("")
    elif how == "below a file":
        place.write_text("")
        place /= "below"
    elif how == "dangling link":
        place.symlink_to(folder / "nowhere" / "else")
    elif how == "journal is a folder":
        (place / "journal.jsonl").mkdir(parents=True)
    else:
        place = folder / ("x" * 300)
    return place


@pytest.mark.parametrize("workers", ["0", "1"])
@pytest.mark.parametrize("how", ["file", "below a file", "dangling link", "journal is a folder", "long name"])
def test_reports_that_cannot_be_written_are_a_usage_error(project: pytest.Pytester, how: str, workers: str) -> None:
    place = unusable(project.path, how)
    result = project.runpytest(*LOCAL, f"--moe-reports={place}", "-n", workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: E-journal-unwritable: *"])
    shown = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in shown
    assert "INTERNALERROR" not in shown


def test_two_runs_do_not_share_a_folder(project: pytest.Pytester) -> None:
    reports = project.mkdir("moe-reports")
    with FileLock(reports / "run.lock"):
        result = project.runpytest(*LOCAL)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: E-reports-busy: *--moe-reports*"])
    assert project.runpytest(*LOCAL, "--moe-select=fa=0/tg4").ret == 0


@pytest.fixture
def disk_that_fills(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every write of the journal after the tenth process fails."""
    written: list[str] = []
    append = JournalWriter._append

    def fill(self: JournalWriter, event: str, **fields: object) -> None:
        if written.count("process") == 5:
            raise Infrastructure("E-journal-write", "No space left on device")
        written.append(event)
        append(self, event, **fields)

    monkeypatch.setattr(JournalWriter, "_append", fill)
    return written


def test_a_disk_that_fills_ends_the_run_and_keeps_what_was_written(
    project: pytest.Pytester, disk_that_fills: list[str]
) -> None:
    result = project.runpytest(*LOCAL)
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    result.stdout.fnmatch_lines(["*E-journal-write*No space left*", f"{CASES} cases: {CASES} error"])
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    jobs = read_journal(project.path / "moe-reports").jobs.values()
    assert [len(job.runs) for job in jobs] == [5]


def test_reports_that_cannot_be_written_in_the_end_do_not_hide_the_verdicts(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise Infrastructure("E-report-write", "No space left on device")

    monkeypatch.setattr(junit, "write_junit", full)
    result = project.runpytest(*LOCAL, "--moe-select=fa=0/tg4")
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    result.stdout.fnmatch_lines(["ERROR: E-report-write: No space left on device", "1 case: 1 pass"])
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


def test_a_journal_that_is_deleted_during_the_run_is_put_back(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = MatrixRun._judge

    def delete(self: MatrixRun, job: str) -> Iterator[str]:
        self._journal.path.unlink()
        return judge(self, job)

    monkeypatch.setattr(MatrixRun, "_judge", delete)
    result = project.runpytest(*LOCAL, "--moe-select=fa=0/tg4")
    assert result.ret == 0
    assert read_journal(project.path / "moe-reports").finished


def test_a_run_without_a_terminal_reporter(project: pytest.Pytester) -> None:
    assert project.runpytest(*LOCAL, "--moe-select=fa=0/tg4", "-p", "no:terminal").ret == 0
    assert (project.path / "moe-reports" / "junit.xml").is_file()
