"""Nights to tell GitHub of, and names that would like to be more than names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from judging_support import BASELINE, CANDIDATE, NODE, PP, arms_runs, contrast

from harness.domain.case import Case
from harness.domain.job import Design, Job
from harness.domain.node import NodeClass
from harness.domain.verdict import ArmSpeed, Estimate, Verdict
from harness.domain.words import Status, Throughput
from harness.github.night import Found, Night
from harness.reporting.journal import JournalWriter, PlannedCase, RunInfo

EVIL = (
    "@team/all see #12 and https://evil.example/x <img src=x onerror=alert(1)> `tick` ``two`` | cell **b** [a](b)\n"
    "::error::planted\n##[add-mask]x\x1b]0;title\x07\x1b[31mred\u202e ![i](https://evil.example) a@b.example $x$ -->"
)
CASE = "throughput/tiny/old..new/pp256@any"


def failed(
    case: str = CASE, *, ratio: float = 0.8, reason: str = "regressed: 20.0 % slower", **more: object
) -> Verdict:
    return Verdict(
        case,
        Status.FAIL,
        reason,
        throughput=Throughput.REGRESSED,
        estimate=Estimate(ratio, ratio - 0.02, ratio + 0.02, 4, "ratio"),
        arms=(ArmSpeed("old", 100.0, 0.01, 8), ArmSpeed("new", 100.0 * ratio, 0.01, 8)),
        node="GPU X",
        **more,  # type: ignore[arg-type]
    )


def passed(case: str = CASE) -> Verdict:
    return Verdict(case, Status.PASS, "equivalent: 0.1 % faster", throughput=Throughput.EQUIVALENT, node="GPU X")


def night(*verdicts: Verdict, matrix: str = "nightly") -> Night:
    return Night(tuple(Found(matrix, verdict) for verdict in verdicts))


def journal(folder: Path, rate: int, *, node_class: str = "any", matrix: str = "nightly") -> Path:
    """A real journal of one contrast whose candidate does ``rate`` tokens a second, the baseline 100."""
    case: Case = replace(contrast(), node_class=NodeClass(node_class))
    job = Job((BASELINE, CANDIDATE), (PP,), None, NodeClass(node_class), Design(blocks=8), (case.id,))
    with JournalWriter(folder) as writer:
        writer.run_started(RunInfo(matrix, "local", cases=1))
        writer.planned(PlannedCase(case, job.id))
        writer.job_submitted(job, 1)
        writer.job_started(job.id, 1, NODE, "box")
        for each in arms_runs([100, 101, 99, 100] * 2, [rate, rate + 1, rate - 1, rate] * 2):
            writer.process(job.id, 1, each)
        writer.job_finished(job.id, 1, None)
        writer.run_finished()
    return writer.path
