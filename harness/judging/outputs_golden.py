"""An arm against what is on record of it, or of another arm: refused where the record is of something else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.domain.arm import Arm
from harness.domain.case import OutputCheck
from harness.domain.golden import MODEL, TENSORS, TOKENIZER, UPDATE, Asked, Golden, Record
from harness.domain.job import Job
from harness.domain.measurement import ProcessRun
from harness.domain.node import NodeFacts
from harness.domain.outputs import Output
from harness.domain.words import Status
from harness.domain.workload import OutputProfile
from harness.judging.outputs import judge_outputs
from harness.judging.outputs_allowed import allowed_of
from harness.judging.outputs_rounds import together
from harness.judging.outputs_verdict import OutputsVerdict
from harness.judging.quants import limits_of

NO_BASELINE = "no baseline: "
"""What such a reason begins with."""


def goldens_of_job(job: Job, runs: Sequence[ProcessRun], node: NodeFacts | None) -> tuple[OutputsVerdict, ...]:
    """What the answers so far say of each arm that is held against a record; nothing of those that gave none.

    Args:
        job: The job.
        runs: Its processes so far.
        node: Where it runs.
    """
    found = []
    for reference in job.references:
        answering = [run for run in runs if run.step.arm == reference.arm and run.step.outputs]
        if answering and job.outputs is not None:
            arm = job.arms[reference.arm]
            found.append(against_golden(job, arm, reference.check, job.outputs, answering, node))
    return tuple(found)


def against_golden(  # noqa: PLR0917 - what a verdict on outputs rests on
    job: Job,
    arm: Arm,
    check: OutputCheck,
    profile: OutputProfile,
    runs: Sequence[ProcessRun],
    node: NodeFacts | None,
) -> OutputsVerdict:
    """Compare an arm's answers with what is on record.

    Args:
        job: Has the records.
        arm: The arm.
        check: The check, with the key of the record.
        profile: What is asked today.
        runs: The arm's processes, in order; those that answered no prompts are passed over.
        node: Where they ran.
    """
    golden = job.golden_of(check.reference) or missing(check.reference)
    answering = [run for run in runs if run.step.outputs]
    if golden.record is None:
        return _refused(golden.slug, golden.problem)
    fault = foreign(golden, profile, answering)
    if fault is not None:
        return replace(fault, why=f"{fault.why}; {golden.update} shows what would change")
    record = golden.record
    allowed = allowed_of(record.arm, arm, check, job.tolerances, node, recorded_on=record.node)
    limits = limits_of(record.arm.model)
    return together([judge_outputs(record.run.outputs, run.outputs, profile, limits, allowed) for run in answering])


def unfit(outputs: Sequence[Output], arm: Arm, profile: OutputProfile) -> str:
    """Why answers can't be recorded; empty if they can: held against themselves they pass."""
    itself = judge_outputs(outputs, outputs, profile, limits_of(arm.model), allowed_of(arm, arm, None, (), None))
    return "" if itself.status is Status.PASS else itself.why


def missing(key: str, update: str = UPDATE) -> Golden:
    """What stands for a record that is not there, with the command that makes it."""
    return Golden(key, None, "E-reference-missing", f"nothing is recorded as {key}: {update} records it", update)


def foreign(golden: Golden, profile: OutputProfile, runs: Sequence[ProcessRun]) -> OutputsVerdict | None:
    """Why a record is of something else than what ran, as a verdict; ``None`` where it is of the same.

    Args:
        golden: Something that was recorded.
        profile: What is asked today.
        runs: Processes that answered it.
    """
    record = golden.record
    if record is None:
        return _refused(golden.slug, golden.problem)
    if asked := record.asked.differs_from(Asked.of(profile)):
        return _other(golden.key, "E-reference-prompts", f"something else was asked: {asked}")
    for run in runs:
        for fact, slug, what in (
            (TOKENIZER, "E-reference-tokenizer", "tokenizer"),
            (MODEL, "E-reference-model", "model file"),
        ):
            then, now = record.run.engine.get(fact, ""), run.engine.get(fact, "")
            if not now or then != now:
                return _other(golden.key, slug, f"its {what} is not today's: {_told(record, run)}")
    return None


def _told(record: Record, run: ProcessRun) -> str:
    """Which model was recorded, and which one ran."""
    then, now = (_model(each) for each in (record.run, run))
    return f"{record.arm.model.name} with {then}, recorded {record.when[:10]}, against {now}"


def _model(run: ProcessRun) -> str:
    digest = run.engine.get(MODEL, "")
    return f"tensors {run.engine.get(TENSORS) or 'unknown'} (sha256 {digest[:12] or 'unknown'})"


def _other(key: str, slug: str, why: str) -> OutputsVerdict:
    return _refused(slug, f"{key} is no reference for this run, {why}")


def _refused(slug: str, why: str) -> OutputsVerdict:
    return OutputsVerdict(Status.ERROR, None, f"{NO_BASELINE}{why}", slug=slug)
