"""Journals of known content, written as a run writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from judging_support import BASELINE, CANDIDATE, NODE, record, run, samples

from harness.domain.case import Case, ContrastCheck, Expectation
from harness.domain.job import Job
from harness.domain.measurement import ProcessRun
from harness.domain.node import NodeClass
from harness.domain.policy import Policy
from harness.domain.words import Kind
from harness.domain.workload import Workload
from harness.judging.judge import judge
from harness.judging.record import JobRecord
from harness.reporting.journal import JournalWriter, PlannedCase, RunInfo
from harness.reporting.replay import read_journal
from harness.reporting.state import JournalState

DEPTHS = (0, 1000, 2000)


def contrast_at(depth: int) -> Case:
    """A contrast of token generation at a depth."""
    check = ContrastCheck("rtr", "rtr", Expectation.NO_REGRESSION)
    return Case(Kind.THROUGHPUT, (BASELINE, CANDIDATE), Workload(0, 100, depth), NodeClass("any"), check)


def process(arm: int, block: int, a_ms: float, b_ms: float) -> ProcessRun:
    """One process whose times lie on a line: a + b for every 1000 tokens of depth, for 100 tokens."""
    timed = []
    for depth in DEPTHS:
        time_s = (a_ms + b_ms * depth / 1000) / 1000
        timed.append(samples(100 / time_s, Workload(0, 100, depth)))
    return replace(run(arm, block, None), samples=tuple(timed))


def depth_record(base: tuple[float, float], candidate: tuple[float, float], blocks: int = 8) -> JobRecord:
    """Arms with known a and b; processes scatter by some per mille."""
    runs = []
    for block in range(blocks):
        wobble = 1 + 0.001 * ((7 * block) % 5 - 2)
        runs += [process(0, block, *(part * wobble for part in base))]
        runs += [process(1, block, *(part / wobble for part in candidate))]
    found = record(runs)
    cases = tuple(contrast_at(depth).id for depth in DEPTHS)
    loads = tuple(Workload(0, 100, depth) for depth in DEPTHS)
    job: Job = replace(found.job, workloads=loads, cases=cases, outputs=None)
    return replace(found, job=job)


def written(folder: Path, cases: Sequence[Case], job: JobRecord, policy: Policy | None = None) -> JournalState:
    """A whole journal of one job."""
    strictness = policy or Policy()
    with JournalWriter(folder) as journal:
        journal.run_started(RunInfo("small", "local", len(cases), {"moe-harness": "0"}, strictness))
        for case in cases:
            journal.planned(PlannedCase(case, job.job.id))
        journal.job_submitted(job.job)
        journal.job_started(job.job.id, 1, NODE, "a-host")
        for each in job.runs:
            journal.process(job.job.id, 1, each)
        journal.job_finished(job.job.id, 1, job.failure)
        for case in cases:
            journal.verdict(judge(case, job, strictness))
        journal.run_finished()
    return read_journal(folder)
