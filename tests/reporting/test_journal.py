"""The journal: what is written comes back, whatever happens to its writer."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging_support import (
    ANY,
    BASELINE,
    CANDIDATE,
    NODE,
    PP,
    PROFILE,
    answers,
    arms_runs,
    contrast,
    equivalence,
    floor,
    memory,
    output,
    pitfall,
    record,
    run,
)

from harness.domain.case import Case
from harness.domain.errors import BadInput, Infrastructure
from harness.domain.failure import Failure, FailureKind
from harness.domain.job import Design, Job
from harness.domain.measurement import ProcessRun
from harness.domain.policy import Policy, Trade
from harness.domain.verdict import ArmSpeed, Estimate, Verdict
from harness.domain.words import Equivalence, Pitfall, Status, Throughput
from harness.judging.judge import judge
from harness.reporting.codec import decode, decode_case, encode, encode_case
from harness.reporting.journal import JOURNAL_NAME, JournalWriter, PlannedCase, RunInfo
from harness.reporting.replay import read_journal

CASES = (contrast(), equivalence(), pitfall(), floor(50), floor(None), memory(100))
JOB = Job((BASELINE, CANDIDATE), (PP,), PROFILE, ANY, Design(), tuple(case.id for case in CASES[:2]))
RUNS = arms_runs([100, 101, 99, 100], [40, 41, 39, 40])
DECIDED = Verdict(pitfall().id, Status.UNSUPPORTED, "unsupported: no rtr in this build", slug="E-unsupported")
LOST = Failure(FailureKind.NODE_LOST, "heartbeat lost", "E-node-lost")


@pytest.mark.parametrize("case", CASES, ids=lambda case: type(case.check).__name__)
def test_cases_come_back_as_they_were(case: Case) -> None:
    assert decode_case(json.loads(json.dumps(encode_case(case)))) == case
    assert decode_case(encode_case(case)).id == case.id


@pytest.mark.parametrize("value", [JOB, NODE, LOST, *RUNS[:1], run(0, -1, None, outputs=answers(), failure=LOST)])
def test_values_come_back_as_they_were(value: object) -> None:
    assert decode(type(value), json.loads(json.dumps(encode(value), allow_nan=False))) == value


def test_a_policy_comes_back_with_its_trades_and_an_older_one_without() -> None:
    policy = Policy(auto_margin=True, trades=(Trade("pp*", 0.1, "tg*", 0.03),))
    assert decode(Policy, json.loads(json.dumps(encode(policy)))) == policy
    older = {"alpha": 0.01, "margin": 0.05, "ceiling_tps": 1e6, "inconclusive": "skip"}
    assert decode(Policy, older) == Policy(alpha=0.01, margin=0.05)


FLOATS = st.floats(allow_nan=False)
ESTIMATES = st.builds(
    Estimate, FLOATS, FLOATS, FLOATS, st.integers(0, 99), st.sampled_from(["t/s", "ratio"]), st.none() | FLOATS
)
VERDICTS = st.builds(
    Verdict,
    case=st.text(),
    status=st.sampled_from(Status),
    reason=st.text(),
    throughput=st.none() | st.sampled_from(Throughput),
    equivalence=st.none() | st.sampled_from(Equivalence),
    pitfall=st.none() | st.sampled_from(Pitfall),
    estimate=st.none() | ESTIMATES,
    expected=st.text(),
    arms=st.lists(st.builds(ArmSpeed, st.text(), FLOATS, st.none() | FLOATS, st.integers(0, 9)), max_size=3).map(tuple),
    slug=st.text(),
    detail=st.text(),
    node=st.text(),
    seconds=FLOATS,
    synthetic=st.booleans(),
)


@given(VERDICTS)
def test_any_verdict_survives_the_round_trip(verdict: Verdict) -> None:
    assert decode(Verdict, json.loads(json.dumps(encode(verdict), allow_nan=False))) == verdict


def test_infinite_margins_and_lone_surrogates_survive_as_far_as_they_can() -> None:
    strange = output(margins=(float("inf"), 1.0), text="a\ud800b")
    back = decode(type(strange), json.loads(json.dumps(encode(strange), allow_nan=False)))
    assert back.margins == (float("inf"), 1.0)
    assert back.text.encode().startswith(b"a")


def write(folder: Path, *, finished: bool = True, verdicts: bool = True) -> Path:
    """A small complete run: one job of two cases, one case decided by planning."""
    with JournalWriter(folder, clock=lambda: datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)) as journal:
        journal.run_started(RunInfo("small", "local", cases=3, versions={"harness": "0.1.0"}))
        for case in CASES[:2]:
            journal.planned(PlannedCase(case, JOB.id))
        journal.planned(PlannedCase(pitfall(), "", DECIDED))
        journal.job_submitted(JOB, 1)
        journal.job_started(JOB.id, 1, NODE, "box7")
        runs = (run(0, -1, 100, outputs=answers()), run(1, -1, 100, outputs=answers()), *RUNS)
        for each in runs:
            journal.process(JOB.id, 1, each)
        if finished:
            journal.job_finished(JOB.id, 1, None)
        if verdicts:
            for case in CASES[:2]:
                journal.verdict(judge(case, record(runs, outputs=PROFILE), Policy()))
        if finished:
            journal.run_finished()
    return journal.path


def test_a_whole_journal_tells_the_run(tmp_path: Path) -> None:
    state = read_journal(write(tmp_path).parent)
    assert (state.name, state.finished, state.torn, state.problems, state.complete_plan) == ("small", True, 0, (), True)
    assert [verdict.status for verdict in state.final_verdicts()] == [Status.FAIL, Status.PASS, Status.UNSUPPORTED]
    assert state.content_keys()[CASES[0].id] == {"ik+rtr=0": "content-0", "ik+rtr=1": "content-1"}


def test_every_line_has_schema_event_time_and_place(tmp_path: Path) -> None:
    events = [json.loads(line) for line in write(tmp_path).read_text().splitlines()]
    assert {event["schema"] for event in events} == {1}
    assert {event["t"] for event in events} == {"2026-01-02T03:04:05.000006+00:00"}
    places = {event["event"] for event in events if "case" not in event and not {"job", "try"} <= event.keys()}
    assert places == {"run_started", "run_finished"}


def test_missing_verdicts_are_judged_again_and_equal(tmp_path: Path) -> None:
    with_verdicts = read_journal(write(tmp_path / "a")).final_verdicts()
    assert read_journal(write(tmp_path / "b", verdicts=False)).final_verdicts() == with_verdicts


def test_what_never_finished_is_an_error_that_tells_where_it_was(tmp_path: Path) -> None:
    state = read_journal(write(tmp_path, finished=False, verdicts=False))
    verdict = state.final_verdicts()[0]
    assert (verdict.status, verdict.slug) == (Status.ERROR, "E-never-finished")
    assert f"last seen: {JOB.id} running on box7 since 2026-01-02T03:04:05" in verdict.reason


def test_cut_at_every_byte_every_planned_case_is_accounted_for(tmp_path: Path) -> None:
    content = write(tmp_path / "whole").read_bytes()
    whole = {verdict.case: verdict for verdict in read_journal(tmp_path / "whole").final_verdicts()}
    plan_end = content.index(b'"event": "job_submitted"')
    cut = tmp_path / JOURNAL_NAME
    line_starts = [0, *(at + 1 for at, byte in enumerate(content) if byte == ord("\n"))]
    for size in _cuts(len(content), line_starts):
        cut.write_bytes(content[:size])
        state = read_journal(cut)
        verdicts = state.final_verdicts()
        assert state.torn <= 1
        assert [verdict.case for verdict in verdicts] == list(state.planned)
        assert all(v.slug == "E-never-finished" or v == whole[v.case] for v in verdicts)
        if size >= plan_end:
            assert len(verdicts) == len(whole)
        elif len(state.planned) < len(whole):
            assert not state.complete_plan


def _cuts(size: int, line_starts: list[int]) -> Iterator[int]:
    """Every byte near a line's ends, and every seventh between: all kinds of place, in a tenth of the time."""
    near = {start + offset for start in line_starts for offset in range(-12, 13)}
    return (at for at in range(size + 1) if at in near or at % 7 == 0)


def test_a_tiny_journal_cut_at_every_byte(tmp_path: Path) -> None:
    with JournalWriter(tmp_path) as journal:
        journal.run_started(RunInfo("m", "local", cases=1))
        journal.planned(PlannedCase(floor(None), "job-1"))
        journal.job_started("job-1", 1, None, "box")
        journal.job_finished("job-1", 1, LOST)
        journal.run_finished()
    content = journal.path.read_bytes()
    for size in range(len(content) + 1):
        journal.path.write_bytes(content[:size])
        state = read_journal(tmp_path)
        assert len(state.final_verdicts()) == len(state.planned)
        assert all(verdict.status is Status.ERROR for verdict in state.final_verdicts())


@pytest.mark.parametrize(
    "garbage",
    [
        b"{not json",
        b"[1, 2]",
        b"\x00\x00\x00",
        b"\xff\xfe",
        b'{"a": 1}',
        b'{"schema": 1}',
        b'{"schema": 1, "event": "new"}',
        b'{"schema": 1, "event": "verdict", "t": "", "case": [], "verdict": 3}',
        b"[" * 100_000,
    ],
)
def test_corrupt_lines_are_named_and_skipped(tmp_path: Path, garbage: bytes) -> None:
    path = write(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], garbage + b"\n", *lines[2:]]))
    state = read_journal(path)
    assert [problem.line for problem in state.problems] == [3]
    assert len(state.final_verdicts()) == 3


def test_a_lost_process_line_is_never_judged_over(tmp_path: Path) -> None:
    """Were the crash of a candidate the lost line, judging the rest would call it a pass."""
    path = write(tmp_path, verdicts=False)
    lines = path.read_bytes().splitlines(keepends=True)
    crash = next(at for at, line in enumerate(lines) if b'"event": "process"' in line)
    path.write_bytes(b"".join([*lines[:crash], b"garbage\n", *lines[crash + 1 :]]))
    verdict = read_journal(path).final_verdicts()[0]
    assert verdict.slug == "E-never-finished"
    assert "the lines of 1 processes are lost" in verdict.reason


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"schema": 1', b'"schema": 2'))
    with pytest.raises(BadInput) as caught:
        read_journal(path)
    assert caught.value.slug == "E-journal-schema"


def test_no_journal_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        read_journal(tmp_path)
    assert (caught.value.slug, caught.value.where) == ("E-no-journal", str(tmp_path / JOURNAL_NAME))


def test_a_retry_starts_its_record_anew(tmp_path: Path) -> None:
    with JournalWriter(tmp_path) as journal:
        journal.run_started(RunInfo("m", "local", cases=1))
        journal.planned(PlannedCase(contrast(), JOB.id))
        for attempt, failure in ((1, LOST), (2, None)):
            journal.job_submitted(JOB, attempt)
            journal.job_started(JOB.id, attempt, NODE, "box")
            for each in RUNS if attempt == 2 else RUNS[:3]:
                journal.process(JOB.id, attempt, replace(each, outputs=()))
            journal.job_finished(JOB.id, attempt, failure)
    last = read_journal(tmp_path).jobs[JOB.id]
    assert (last.attempt, len(last.runs), last.failure, last.finished) == (2, len(RUNS), None, True)


def test_a_retry_that_ends_before_it_starts_replaces_the_first_try(tmp_path: Path) -> None:
    with JournalWriter(tmp_path) as journal:
        journal.run_started(RunInfo("m", "ray", cases=1))
        journal.planned(PlannedCase(contrast(), JOB.id))
        journal.job_submitted(JOB)
        journal.job_started(JOB.id, 1, NODE, "box")
        journal.process(JOB.id, 1, RUNS[0])
        journal.job_finished(JOB.id, 1, LOST)
        journal.job_finished(JOB.id, 2, LOST)
        journal.process(JOB.id, 1, RUNS[1])
    state = read_journal(tmp_path)
    assert (state.jobs[JOB.id].attempt, state.jobs[JOB.id].runs) == (2, ())
    assert "after 2 tries" in state.final_verdicts()[0].reason
    assert len(state.problems) == 1


@pytest.mark.parametrize("alone", [contrast(), floor(50), memory(100)], ids=lambda case: str(case.kind))
def test_journals_before_jobs_said_it_tell_by_their_cases_whether_one_arm_is_timed(tmp_path: Path, alone: Case) -> None:
    """The same journal is judged the same way by a newer harness."""
    job = replace(JOB, cases=(alone.id,))
    with JournalWriter(tmp_path) as journal:
        journal.planned(PlannedCase(alone, job.id))
        journal.job_submitted(job)
    lines = [json.loads(line) for line in journal.path.read_text().splitlines()]
    del lines[-1]["spec"]["timed_alone"]
    journal.path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    known = read_journal(tmp_path).jobs[job.id].job
    assert known is not None
    assert known.timed_alone is (alone == floor(50))


def test_a_second_run_into_the_folder_takes_back_old_verdicts(tmp_path: Path) -> None:
    write(tmp_path)
    with JournalWriter(tmp_path) as journal:
        journal.run_started(RunInfo("small", "local", cases=3))
        journal.planned(PlannedCase(contrast(), JOB.id))
    state = read_journal(tmp_path)
    assert state.final_verdicts()[0].slug == "E-never-finished"
    assert not state.finished


def test_a_writer_contains_the_torn_line_of_its_predecessor(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_bytes(path.read_bytes() + b'{"schema": 1, "event": "verd')
    with JournalWriter(tmp_path) as journal:
        journal.run_finished()
    state = read_journal(path)
    assert (len(state.problems), state.finished) == (1, True)


def full_disk(descriptor: int, data: bytes) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_infrastructure_and_keeps_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    with JournalWriter(tmp_path) as journal:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full_disk)
            with pytest.raises(Infrastructure, match="No space left") as caught:
                journal.run_finished()
        assert caught.value.where == str(tmp_path / JOURNAL_NAME)
        journal.verdict(DECIDED)
    assert read_journal(tmp_path).problems == ()


def test_a_short_write_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole: Callable[[int, bytes], int] = os.write
    with JournalWriter(tmp_path) as journal, monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: whole(descriptor, data[:10]))
        journal.run_started(RunInfo("m", "local", cases=0))
    assert read_journal(tmp_path).name == "m"


def test_an_unwritable_place_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput) as caught:
        JournalWriter(tmp_path / "file" / "folder")
    assert caught.value.slug == "E-journal-unwritable"


def test_a_link_in_the_place_of_the_journal_is_not_written_through(tmp_path: Path) -> None:
    """A checkout may come from anybody: the plan's words would stand in any file of the user that it points to."""
    target = tmp_path / "profile"
    target.write_text("kept\n")
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "journal.jsonl").symlink_to(target)
    with pytest.raises(BadInput, match=r"E-journal-unwritable.*symbolic link"):
        JournalWriter(tmp_path / "reports")
    assert target.read_text() == "kept\n"


WRITER = """
import sys
from pathlib import Path
from harness.reporting.journal import JournalWriter
with JournalWriter(Path(sys.argv[1])) as journal:
    for attempt in range(200):
        journal.job_started("job-" + sys.argv[2], attempt, None, "x" * 5000)
"""


def test_several_processes_may_append(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(each)], cwd=root) for each in range(3)
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    state = read_journal(tmp_path)
    assert state.problems == ()
    assert {job.attempt for job in state.jobs.values()} == {199}


def test_process_runs_with_many_samples_are_one_line(tmp_path: Path) -> None:
    big: ProcessRun = run(0, 0, [float(speed) for speed in range(1, 2001)])
    with JournalWriter(tmp_path) as journal:
        journal.process("job-1", 1, big)
    assert journal.path.read_bytes().count(b"\n") == 1
    assert read_journal(tmp_path).jobs["job-1"].runs == (big,)
