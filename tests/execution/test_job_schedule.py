"""A job's processes as they really start: quads are whole, alike on both arms, and end by rule or budget."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from job_support import QUICK, job_of, standin_arm

from harness.domain.job import Job
from harness.domain.measurement import ProcessRun
from harness.domain.node import NodeFacts
from harness.domain.stopping import AfterOutputs, JobEnd, RunWholeSchedule, StoppingRule
from harness.execution.events import Finished, ProcessDone, Progress
from harness.execution.run_job import run_job

QUADS = replace(QUICK, blocks=6)


@dataclass
class Scripted:
    """A rule that answers from a list and notes how many processes it had seen each time."""

    answers: list[tuple[str, ...]]
    seen: list[int] = field(default_factory=list)
    following: list[AfterOutputs] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)

    def after_outputs(self, job: Job, runs: Sequence[ProcessRun], node: NodeFacts) -> AfterOutputs:
        del job, node
        self.asked.append(len(runs))
        return self.following.pop(0)

    def undecided(self, job: Job, runs: Sequence[ProcessRun]) -> tuple[str, ...]:
        del job
        self.seen.append(len(runs))
        return self.answers.pop(0)


@pytest.fixture(autouse=True)
def own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOE_LOCK_DIR", str(tmp_path / "lock"))


def arms(folder: Path, model: Path, count: int = 2, **told: object) -> Job:
    names = ("a", "b", "c", "d")[:count]
    return job_of(*(standin_arm(folder / name, model, "rows", **told) for name in names), design=QUADS)


def run(job: Job, rule: StoppingRule) -> tuple[list[ProcessRun], Finished]:
    events = list(run_job(job, 1, rule))
    (finished,) = [event for event in events if isinstance(event, Finished)]
    assert finished.failure is None
    return [event.run for event in events if isinstance(event, ProcessDone)], finished


def names(process: ProcessRun) -> list[str]:
    return [samples.workload for samples in process.samples]


def test_nothing_drops_out_inside_a_quad(tmp_path: Path, tiny_model: Path) -> None:
    """The rule is asked before each quad; what it says holds for all four processes of it."""
    rule = Scripted([("pp32", "tg4"), ("tg4",), ()])
    runs, finished = run(arms(tmp_path, tiny_model), rule)
    assert rule.seen == [2, 6, 10]
    scored = [process for process in runs if process.step.scored]
    assert [(process.step.block, process.step.arm) for process in scored] == [
        *((0, 0), (0, 1), (1, 1), (1, 0)),
        *((2, 1), (2, 0), (3, 0), (3, 1)),
    ]
    assert [names(process) for process in scored] == [["pp32", "tg4"]] * 4 + [["tg4"]] * 4
    assert finished.end is JobEnd.DECIDED


def test_a_rule_that_is_never_content_gets_the_whole_schedule(tmp_path: Path, tiny_model: Path) -> None:
    runs, finished = run(arms(tmp_path, tiny_model), RunWholeSchedule())
    assert len([process for process in runs if process.step.scored]) == 12
    assert finished.end is JobEnd.SCHEDULE


@pytest.mark.parametrize("count", [1, 4])
def test_other_numbers_of_arms_are_asked_about_block_by_block(tmp_path: Path, tiny_model: Path, count: int) -> None:
    rule = Scripted([("pp32", "tg4"), ("pp32",), ()])
    runs, _ = run(arms(tmp_path, tiny_model, count), rule)
    assert rule.seen == [count, 2 * count, 3 * count]
    assert all(names(process) == ["pp32"] for process in runs if process.step.block == 1)


def test_the_budget_ends_a_job_after_a_whole_quad(tmp_path: Path, tiny_model: Path) -> None:
    """A budget that the first quad has used up: that quad is whole, no other is begun, and the end says why."""
    job = arms(tmp_path, tiny_model)
    runs, finished = run(replace(job, design=replace(QUADS, minutes=1e-6)), RunWholeSchedule())
    assert [process.step.block for process in runs] == [-1, -1, 0, 0, 1, 1]
    assert finished.end is JobEnd.BUDGET


def test_an_ample_budget_changes_nothing_but_the_words(tmp_path: Path, tiny_model: Path) -> None:
    job = arms(tmp_path, tiny_model)
    events = list(run_job(replace(job, design=replace(QUADS, blocks=2, minutes=30)), 1, RunWholeSchedule()))
    assert events[-1] == Finished(job.id, 1, end=JobEnd.SCHEDULE)
    said = [event.message for event in events if isinstance(event, Progress)]
    assert re.search(r"process 6 \(\d\.\d of 30 min\)$", said[-1])


def test_both_arms_warm_up_alike(tmp_path: Path, tiny_model: Path) -> None:
    runs, _ = run(arms(tmp_path, tiny_model), Scripted([("pp32", "tg4"), ()]))
    assert [process.step.arm for process in runs if not process.step.scored] == [0, 1]
    assert {(samples.discarded, len(samples.all_ns)) for process in runs for samples in process.samples} == {(1, 3)}


def test_a_job_whose_arms_all_failed_ends(tmp_path: Path, tiny_model: Path) -> None:
    """Nobody is left to measure: the rule is not asked a hundred times."""
    job = job_of(*(standin_arm(tmp_path / name, tiny_model, "oom", tps=tps) for name, tps in (("a", 1), ("b", 2))))
    rule = Scripted([("pp32",)])
    runs, finished = run(replace(job, design=replace(QUADS, blocks=1000)), rule)
    assert len(runs) == 2
    assert len(rule.seen) == 1
    assert finished.end is None
