"""What a page tells of one case beside its row, and of the job that it shares with others."""

from __future__ import annotations

import math
import shlex
from typing import Any

from harness.domain.arm import Arm
from harness.domain.case import PitfallCheck
from harness.domain.job import Job
from harness.domain.stopping import JobEnd
from harness.domain.verdict import Effect
from harness.domain.words import Kind
from harness.domain.workload import OutputProfile
from harness.judging.quads import quads_of
from harness.judging.samples import Implausible, NothingKept
from harness.judging.voids import voided_blocks
from harness.pages.machine import node_data, state_data
from harness.pages.memory import memory_data
from harness.pages.placement import placement_data
from harness.pages.rows import estimate_texts
from harness.pages.shown import Shown
from harness.pages.texts import Texts
from harness.pages.traces import failure_text, processes_data, trace_data
from harness.reporting.clean import one_line
from harness.reporting.plain_words import signed
from harness.reporting.state import JobTry

_ENDS = {
    JobEnd.DECIDED: "every workload was decided",
    JobEnd.SCHEDULE: "the schedule was over",
    JobEnd.BUDGET: "its minutes were over",
    JobEnd.OUTPUTS: "the outputs are wrong, no speed was measured",
}
_TIMED_PAIRS = (Kind.THROUGHPUT, Kind.PITFALL)


def case_detail(shown: Shown, journal: str, texts: Texts) -> dict[str, Any]:
    """What is shown once a case is opened.

    Args:
        shown: The case.
        journal: File name of its journal, for commands.
        texts: Where its long texts go.
    """
    verdict, check = shown.verdict, shown.case.check
    return {
        "expected": verdict.expected,
        "slug": verdict.slug,
        "job": shown.job,
        "places": list(shown.places),
        "labels": [arm.label for arm in shown.case.arms],
        "speeds": [_speed(arm.label, arm.tps, arm.ms, arm.spread, arm.processes) for arm in verdict.arms],
        "effects": [_effect(effect) for effect in verdict.effects],
        "quads": _quads(shown),
        "source": [check.source, check.instead] if isinstance(check, PitfallCheck) else [],
        "detail": texts.number(verdict.detail),
        "scope": texts.number(verdict.scope),
        "load": texts.number(verdict.load),
        "void": texts.number(verdict.void),
        "commands": [
            shlex.join(["moe-harness", "replay", verdict.case, journal]),
            shlex.join(["moe-harness", "explain", verdict.case, journal]),
        ],
    }


def job_detail(last: JobTry, job: Job) -> dict[str, Any]:
    """What is shown of a job with each of its cases: processes, memory, placement, environment.

    Args:
        last: Its last try.
        job: What was declared.
    """
    arms = [[run for run in last.runs if run.step.arm == index] for index in range(len(job.arms))]
    design, failure, void = job.design, last.failure, voided_blocks(last.runs)
    budget = "" if design.minutes is None else f", {design.minutes:g} minutes"
    return {
        "tries": [one_line(each) for each in last.tries],
        "host": last.host,
        "since": last.since.partition(".")[0].replace("T", " "),
        "end": _ENDS[last.end] if last.end else "",
        "failure": failure_text(failure) if failure else "",
        "lost": last.lost,
        "finished": last.finished,
        "design": f"at most {design.blocks} process starts of each arm{budget}; in each {design.warmup} warm-ups, "
        f"{design.repetitions} repetitions kept",
        "spreads": {spread.workload: f"{100 * spread.quad_sd:.2g} %, {spread.source}" for spread in job.spreads},
        "node": node_data(last.node),
        "arms": [_arm(arm, runs[0].content_key if runs else "") for arm, runs in zip(job.arms, arms, strict=True)],
        "processes": processes_data(job, last.runs, void),
        "traces": {workload.name: trace_data(job, last.runs, workload, void) for workload in job.workloads},
        "state": state_data(arms),
        "memory": [memory_data(runs) for runs in arms],
        "placement": placement_data(arms),
        "engines": [dict(runs[0].engine) if runs else {} for runs in arms],
    }


def _arm(arm: Arm, content_key: str) -> dict[str, Any]:
    model = arm.model
    return {
        "label": arm.label,
        "build": f"{arm.build.name} ({arm.build.fork})",
        "model": " ".join(filter(None, (model.name, model.quant, "synthetic" if model.synthetic else ""))),
        "environment": " ".join(f"{name}={value}" for name, value in arm.environment),
        "flags": {name: str(value) for name, value in arm.flags},
        "identity": arm.identity,
        "content": content_key,
    }


def _speed(label: str, tps: float, ms: float | None, spread: float | None, processes: int) -> list[Any]:
    figure = f"{tps:.5g} t/s" if ms is None else f"{ms:.5g} ms"
    return [label, figure, "" if spread is None else f"{100 * spread:.1f} %", processes]


def _effect(effect: Effect) -> list[str]:
    return [effect.name, *estimate_texts(effect.ratio), str(effect.throughput or "")]


def _quads(shown: Shown) -> list[str]:
    """The change of each whole quad of a pair, in order of time; none where it can't be told."""
    case, workload = shown.case, shown.case.workload
    if len(case.arms) != 2 or case.kind not in _TIMED_PAIRS or workload is None:  # noqa: PLR2004 - a pair
        return []
    if isinstance(workload, OutputProfile) or -1 in shown.places:
        return []
    baseline, candidate = (shown.runs_of(place) for place in shown.places)
    try:
        void = voided_blocks(shown.runs)
        found = quads_of(baseline, candidate, workload.name, void, shown.policy.ceiling_tps)
    except (Implausible, NothingKept):
        return []
    return [signed(math.exp(value)) for value in found.log_ratios]
