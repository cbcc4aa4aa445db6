"""Facts of the machine and of a job's end survive the journal, and journals from before them are still read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from judging_support import record, run

from harness.domain.measurement import Conditions, GpuState, ProcessRun
from harness.domain.stopping import JobEnd
from harness.reporting.codec import decode, encode
from harness.reporting.journal import JOURNAL_NAME, JournalWriter
from harness.reporting.replay import read_journal

JOB = record([]).job
GPU = GpuState("GPU-1", "580.1", used=True, samples=9, sm_mhz=1470.0, slowdowns=("sw_power_cap",), foreign_processes=2)
STATE = Conditions(
    niceness=0,
    cpus=(6, 7),
    threads=2,
    load_before=0.25,
    numa_nodes=(1,),
    mhz=2600.0,
    model_cached=0.5,
    foreign_load=0.125,
    queue_wait_s=0.75,
    involuntary_switches=3,
    gpus=(GPU,),
)


def write(folder: Path, end: JobEnd | None) -> None:
    with JournalWriter(folder) as journal:
        journal.job_submitted(JOB)
        journal.process(JOB.id, 1, replace(run(0, 0, 100), conditions=STATE))
        journal.job_finished(JOB.id, 1, None, end)


@pytest.mark.parametrize("end", [*JobEnd, None])
def test_the_end_of_a_job_is_read_back(tmp_path: Path, end: JobEnd | None) -> None:
    write(tmp_path, end)
    found = read_journal(tmp_path).jobs[JOB.id].record
    assert found is not None
    assert found.end is end


def test_the_state_of_the_machine_is_read_back_without_loss(tmp_path: Path) -> None:
    write(tmp_path, None)
    (process,) = read_journal(tmp_path).jobs[JOB.id].runs
    assert process.conditions == STATE


def test_journals_from_before_are_read(tmp_path: Path) -> None:
    """Four facts of the machine, no end, no measures against noise in the design."""
    write(tmp_path, JobEnd.BUDGET)
    events = [json.loads(line) for line in (tmp_path / JOURNAL_NAME).read_text().splitlines()]
    for event in events:
        event.pop("end", None)
        if event["event"] == "process":
            known = ("niceness", "cpus", "threads", "load_before")
            event["run"]["conditions"] = {name: event["run"]["conditions"][name] for name in known}
        if event["event"] == "job_submitted":
            for name in ("quiet", "minutes", "calibration"):
                del event["spec"]["design"][name]
    (tmp_path / JOURNAL_NAME).write_text("".join(json.dumps(event) + "\n" for event in events))
    state = read_journal(tmp_path)
    assert state.problems == ()
    found = state.jobs[JOB.id].record
    assert found is not None
    assert found.end is None
    assert found.job == JOB
    assert found.runs[0].conditions == Conditions(0, (6, 7), 2, 0.25)


def test_a_process_is_plain_json() -> None:
    process = replace(run(0, 0, 100), conditions=STATE)
    assert decode(ProcessRun, json.loads(json.dumps(encode(process)))) == process
