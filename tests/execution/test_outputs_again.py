"""Wrong outputs in a job that really runs: asked for again in fresh processes, and their speed is not measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from job_support import ANY, QUICK, WORKLOADS, job_of, wheel_arm

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.case import Case, ContrastCheck, Expectation, OutputCheck
from harness.domain.job import BURN_IN, Job
from harness.domain.measurement import ProcessRun, Step
from harness.domain.model import Model
from harness.domain.node import NodeFacts
from harness.domain.policy import Policy
from harness.domain.stopping import AfterOutputs, JobEnd, RunWholeSchedule, StoppingRule
from harness.domain.tolerance import ContrastClass, Figures, Tolerance
from harness.domain.words import Kind, Status
from harness.domain.workload import OutputProfile, Prompt
from harness.engines.flags import complete
from harness.execution.events import Finished, ProcessDone, Progress
from harness.execution.run_job import run_job
from harness.judging.judge import judge
from harness.judging.record import JobRecord
from harness.judging.stopping import SequentialStopping
from harness.models import corrupting, corruptions

pytest.importorskip("ik_llama_cpp")
pytest.importorskip("xllamacpp")

TEXT = "The river had risen in the night, and by the morning the lower meadow was a lake with a fence around it. " * 2
ASKED = OutputProfile("few", (Prompt("river", TEXT, answer=TEXT), Prompt("short", "Once", answer=TEXT)), 8, 32, 16)
ROUND = [Step(0, BURN_IN, outputs=True), Step(1, BURN_IN, outputs=True)]
SCORED = [Step(0, 0), Step(1, 0)]


@dataclass
class Scripted(RunWholeSchedule):
    """A rule that says what was written down for it, and notes how many processes it had seen each time."""

    following: list[AfterOutputs]
    asked: list[int] = field(default_factory=list)

    def after_outputs(self, job: Job, runs: Sequence[ProcessRun], node: NodeFacts) -> AfterOutputs:
        del job, node
        self.asked.append(len(runs))
        return self.following.pop(0)


@pytest.fixture(autouse=True)
def own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOE_LOCK_DIR", str(tmp_path / "lock"))


@pytest.fixture
def pair(tiny_model: Path) -> Job:
    """Two arms that answer alike but for rounding."""
    return replace(job_of(wheel_arm(tiny_model), wheel_arm(tiny_model, fmoe=0)), outputs=ASKED)


def ran(job: Job, rule: StoppingRule, stop_after: int = 99) -> tuple[list[ProcessRun], Finished, list[str]]:
    events, done = [], []
    for event in run_job(job, 1, rule, lambda: len(done) >= stop_after):
        events.append(event)
        if isinstance(event, ProcessDone):
            done.append(event.run)
    finished = events[-1]
    assert isinstance(finished, Finished)
    return done, finished, [event.message for event in events if isinstance(event, Progress)]


def test_outputs_are_asked_for_again_before_anything_is_scored(pair: Job) -> None:
    """All arms, each in a fresh process that does nothing else; recorded as answers like the first."""
    rule = Scripted([AfterOutputs.REPEAT, AfterOutputs.GO_ON])
    runs, finished, said = ran(pair, rule)
    assert [run.step for run in runs] == [*ROUND, *ROUND, *SCORED]
    assert rule.asked == [2, 4]
    assert finished.end is JobEnd.SCHEDULE
    assert [len(run.samples) for run in runs] == [2, 2, 0, 0, 2, 2]
    assert [run.outputs for run in runs[:2]] == [run.outputs for run in runs[2:4]], "fresh processes answer alike"
    assert any(text.endswith("process 6 of 6") for text in said)


def test_no_speed_is_measured_where_the_rule_says_so(pair: Job) -> None:
    rule = Scripted([AfterOutputs.STOP])
    runs, finished, _ = ran(pair, rule)
    assert [run.step for run in runs] == ROUND
    assert (finished.failure, finished.end) == (None, JobEnd.OUTPUTS)


def test_a_repetition_is_made_whatever_the_budget(pair: Job) -> None:
    """A finding needs it: it counts in the budget, and is not left out for want of time."""
    brief = replace(pair, design=replace(QUICK, minutes=1e-6))
    runs, _, _ = ran(brief, Scripted([AfterOutputs.REPEAT, AfterOutputs.STOP]))
    assert [run.step for run in runs] == [*ROUND, *ROUND]


def test_a_repetition_can_be_stopped(pair: Job) -> None:
    runs, finished, _ = ran(pair, Scripted([AfterOutputs.REPEAT]), stop_after=3)
    assert [run.step for run in runs] == [*ROUND, ROUND[0]]
    assert finished.failure is not None
    assert finished.failure.slug == "E-interrupted"


def test_jobs_without_outputs_ask_nothing_of_them(pair: Job) -> None:
    rule = Scripted([])
    ran(replace(pair, outputs=None), rule)
    assert rule.asked == []


def test_a_broken_model_is_found_twice_and_its_speed_is_not_judged(tiny_model: Path, tmp_path: Path) -> None:
    """A row of NaN weights, through real processes, rule and judge: both rounds are told, nothing is scored."""
    broken, _ = corrupting.write_corrupted(tiny_model, tmp_path / "broken", corruptions.Kind.NAN_ROW)
    build = Build("mainline", Fork.LLAMA_CPP, wheel="xllamacpp")
    arms = tuple(
        Arm(build, Model(name, path=str(path)), complete(build, {}))
        for name, path in (("whole", tiny_model), ("broken", broken))
    )
    known = Tolerance(ContrastClass.FLAGS, Figures(3e-3, 3e-3, 1e-3, 5e-3, 5e-3, 0.05, 0.4), "a calibration")
    job = replace(job_of(*arms), outputs=ASKED, tolerances=(known,))
    runs, finished, _ = ran(job, SequentialStopping(Policy()))
    assert [run.step for run in runs] == [*ROUND, *ROUND]
    assert finished.end is JobEnd.OUTPUTS
    record = JobRecord(job, tuple(runs), end=finished.end)
    outputs = judge(Case(Kind.EQUIVALENCE, arms, ASKED, ANY, OutputCheck("c", "model")), record, Policy())
    assert outputs.status is Status.FAIL
    assert "; again in fresh processes " in outputs.reason
    contrast = ContrastCheck("c", "model", Expectation.NO_REGRESSION)
    speed = judge(Case(Kind.THROUGHPUT, arms, WORKLOADS[0], ANY, contrast), record, Policy())
    assert (speed.status, speed.slug) == (Status.NOT_JUDGED, "E-wrong-output")
