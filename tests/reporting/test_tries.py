"""What a journal tells beside its measurements: tries, nodes that were set aside, waiting, resumptions."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

from judging_support import ANY, BASELINE, CANDIDATE, NODE, PP, arms_runs, contrast

from harness.domain.failure import Failure, FailureKind
from harness.domain.job import Design, Job
from harness.domain.policy import Policy
from harness.domain.stopping import JobEnd
from harness.execution.events import NodeSetAside, Progress, Started
from harness.judging.judge import judge
from harness.judging.record import JobRecord
from harness.reporting.journal import JournalWriter, PlannedCase, RunInfo
from harness.reporting.projections import write_projections
from harness.reporting.replay import read_journal
from harness.running.records import Records

CASE = contrast()
JOB = Job((BASELINE, CANDIDATE), (PP,), None, ANY, Design(), (CASE.id,))
RUNS = arms_runs([100, 101, 99, 100], [40, 41, 39, 40])
LOST = Failure(FailureKind.NODE_LOST, "heartbeat lost", "E-node-lost")


def _write(folder: Path) -> None:
    """Lost on one node, broken off on the next by the end of the driver, and measured on the third."""
    with JournalWriter(folder) as journal:
        journal.run_started(RunInfo("night", "ray", cases=1))
        journal.planned(PlannedCase(CASE, JOB.id))
        journal.job_submitted(JOB)
        journal.job_started(JOB.id, 1, NODE, "gpu-1")
        journal.job_finished(JOB.id, 1, LOST)
        journal.job_started(JOB.id, 2, NODE, "gpu-2")
        journal.process(JOB.id, 2, RUNS[0])
    with JournalWriter(folder) as journal:
        journal.run_resumed("ray", {}, [JOB.id])
        journal.job_submitted(JOB, 3)
        journal.job_started(JOB.id, 3, NODE, "gpu-3")
        for each in RUNS:
            journal.process(JOB.id, 3, each)
        journal.job_finished(JOB.id, 3, None, JobEnd.SCHEDULE)
        journal.verdict(judge(CASE, JobRecord(JOB, RUNS, end=JobEnd.SCHEDULE), Policy()))
        journal.run_finished()


def test_every_try_is_told_in_summary_and_junit(tmp_path: Path) -> None:
    """With host and reason, the one that counts last; the verdict itself is of that one alone."""
    _write(tmp_path)
    state = read_journal(tmp_path)
    tries = ("try 1 on gpu-1: E-node-lost, heartbeat lost", "try 2 on gpu-2: broken off", "try 3 on gpu-3: counts")
    (verdict,) = state.final_verdicts()
    assert verdict.tries == tries
    assert len(state.jobs[JOB.id].runs) == len(RUNS)
    write_projections(state, tmp_path)
    properties = ET.parse(tmp_path / "junit.xml").getroot().iter("property")  # noqa: S314 - our own
    assert tuple(each.get("value") for each in properties if each.get("name") == "try") == tries
    summary = (tmp_path / "summary.txt").read_text()
    assert f"{JOB.id} was tried 3 times: {'; '.join(tries)}" in summary
    assert "the run broke and was resumed at" in summary


def test_a_resumption_takes_back_what_was_said_of_jobs_that_are_run_again(tmp_path: Path) -> None:
    """Broken once more before they began: their cases never finished, whatever the first run made of them."""
    with JournalWriter(tmp_path) as journal:
        journal.run_started(RunInfo("night", "ray", cases=1))
        journal.planned(PlannedCase(CASE, JOB.id))
        journal.job_submitted(JOB)
        journal.verdict(judge(CASE, JobRecord(JOB, RUNS), Policy()))
        journal.run_finished()
        journal.run_resumed("ray", {}, [JOB.id])
    state = read_journal(tmp_path)
    assert not state.finished
    assert state.undecided == (CASE.id,)
    assert state.final_verdicts()[0].slug == "E-never-finished"


def test_waiting_and_a_node_that_was_set_aside_go_from_events_to_the_summary(tmp_path: Path) -> None:
    """A job that still waits when the run breaks says for whom."""
    with JournalWriter(tmp_path) as journal:
        journal.run_started(RunInfo("night", "ray", cases=1))
        journal.planned(PlannedCase(CASE, JOB.id))
        journal.job_submitted(JOB)
        records = Records(journal)
        records.add([JOB])
        records.take(NodeSetAside(JOB.id, 1, "gpu-1", "3 different jobs failed there"))
        records.take(Started(JOB.id, 1, NODE, "gpu-2"))
        records.take(Progress(JOB.id, 1, "making a model", preparing=True))
        records.take(Progress(JOB.id, 1, "waiting for the host, on which measures X", preparing=True, waiting=True))
    state = read_journal(tmp_path)
    assert state.set_aside == ("gpu-1 was set aside: 3 different jobs failed there",)
    assert "on gpu-2" in state.final_verdicts()[0].reason
    assert "waiting for the host, on which measures X" in state.final_verdicts()[0].reason
    write_projections(state, tmp_path)
    summary = (tmp_path / "summary.txt").read_text()
    assert "gpu-1 was set aside: 3 different jobs failed there" in summary
    assert "waiting for the host, on which measures X" in summary
