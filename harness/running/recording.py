"""Recording outputs as references: each arm once, held against what is on record before anything is replaced."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from harness import __version__
from harness.domain.case import OutputCheck
from harness.domain.errors import BadInput
from harness.domain.golden import Asked, Record
from harness.domain.measurement import ProcessRun
from harness.domain.verdict import Verdict
from harness.domain.words import Equivalence
from harness.domain.workload import OutputProfile
from harness.execution.events import JobEvent
from harness.execution.executors import executor_factory
from harness.judging.outputs_golden import NO_BASELINE, foreign, unfit
from harness.judging.stopping import SequentialStopping
from harness.planning.goldens import recordings
from harness.planning.jobs import plan_jobs
from harness.planning.plan import Plan, PlannedCase
from harness.reporting.journal import JournalWriter
from harness.reporting.replay import read_journal
from harness.reporting.state import JobTry
from harness.running.golden_file import Goldens
from harness.running.interrupts import Interrupts
from harness.running.known_spreads import KnownSpreads
from harness.running.matrix_run import MatrixRun
from harness.running.options import claim_reports

_EXECUTOR = "local"


class Change(StrEnum):
    """What a recording would do to the folder."""

    NEW = "new"
    SAME = "same"
    """Equal to the bit: the older record stays."""
    CHANGED = "changed"
    """Of the same model and prompts, and not equal to the bit."""
    OTHER = "other"
    """What is on record can't be compared: of another model or other prompts, damaged, or of a newer version."""
    FAILED = "failed"
    """Nothing that could be recorded came."""

    @property
    def replaces(self) -> bool:
        """Whether something that is on record would be lost."""
        return self in (Change.CHANGED, Change.OTHER)


@dataclass(frozen=True, slots=True)
class Recording:
    """What came of one arm.

    Attributes:
        key: Where it belongs.
        change: What it would do.
        why: How it compares with what is on record, or what went wrong.
        record: What there is to write.
        equivalence: How it compares, in one word; ``None`` where it can't be.
        detail: Where they differ.
    """

    key: str
    change: Change
    why: str
    record: Record | None = None
    equivalence: Equivalence | None = None
    detail: str = ""


def recording_plan(plan: Plan) -> Plan:
    """The plan of what has to be recorded for the selected cases of a matrix.

    Raises:
        BadInput: ``E-no-reference``: none of them asks for a reference.
    """
    cases = recordings(plan.cases)
    if not cases:
        hint = "a check of outputs asks for one with reference = true"
        raise BadInput("E-no-reference", f"nothing selected in matrix {plan.matrix_name} has a reference", hint=hint)
    return replace(plan, cases=cases, every_case=cases, jobs=plan_jobs(cases, plan.policy))


def record_outputs(
    plan: Plan, goldens: Goldens, known: KnownSpreads, reports: Path, watch: Callable[[JobEvent | None], None]
) -> tuple[Recording, ...]:
    """Run the arms on this machine and compare them with what is on record. Nothing is written.

    Args:
        plan: Of `recording_plan`.
        goldens: The folder.
        known: What is known of this machine.
        reports: Folder of the journal.
        watch: Shown every event, and ``None`` while nothing happens.

    Raises:
        BadInput: The folder of the reports is in use or can't be written.
        KeyboardInterrupt: It was told to stop: nothing is known of the rest.
    """
    lock = claim_reports(reports)
    interrupts, stop = Interrupts(), threading.Event()
    try:
        make_executor = executor_factory(_EXECUTOR, SequentialStopping(plan.policy.judging))
        run = MatrixRun(plan, _EXECUTOR, make_executor, reports, known, goldens=goldens)
        interrupts.call(stop.set)
        verdicts = _verdicts(run, plan, watch, stop)
        with JournalWriter(reports) as journal:
            journal.run_finished()
        if stop.is_set():
            raise KeyboardInterrupt
    finally:
        interrupts.restore()
        lock.release()
    tries = read_journal(reports).jobs
    return tuple(_recording(planned, verdicts[planned.id], tries) for planned in plan.cases)


def write_all(found: tuple[Recording, ...], goldens: Goldens, *, replacing: bool) -> tuple[str, ...]:
    """Write what is new, and what replaces something if that is wanted.

    Returns:
        The keys that were written.
    """
    written = []
    for each in found:
        wanted = each.change is Change.NEW or (replacing and each.change.replaces)
        if wanted and each.record is not None:
            goldens.write(each.key, each.record)
            written.append(each.key)
    return tuple(written)


def _verdicts(
    run: MatrixRun, plan: Plan, watch: Callable[[JobEvent | None], None], stop: threading.Event
) -> dict[str, Verdict]:
    def look(event: JobEvent | None) -> None:
        if stop.is_set():
            run.cancel()
        watch(event)

    try:
        run.begin(plan.ids(), keep_jobs=True)
        return {case: run.verdict(case) for case in run.run_all(look)}
    finally:
        run.close()


def _recording(planned: PlannedCase, verdict: Verdict, tries: Mapping[str, JobTry]) -> Recording:
    check, profile = planned.case.check, planned.case.workload
    assert isinstance(check, OutputCheck)  # noqa: S101 - recordings are checks of outputs
    assert isinstance(profile, OutputProfile)  # noqa: S101 - and ask prompts
    tried, run = _answered(check.reference, tries)
    fault = unfit(run.outputs, planned.case.arms[0], profile) if run else verdict.reason
    if fault or run is None or tried is None or tried.node is None:
        return Recording(check.reference, Change.FAILED, fault or verdict.reason, detail=verdict.detail)
    record = Record(
        planned.case.arms[0],
        Asked.of(profile),
        run,
        tried.node,
        datetime.now(UTC).isoformat(timespec="seconds"),
        __version__,
    )
    golden = tried.job.golden_of(check.reference) if tried.job else None
    before = golden.record if golden else None
    if verdict.slug == "E-reference-missing":
        return Recording(check.reference, Change.NEW, "nothing was recorded before", record)
    if verdict.equivalence is Equivalence.BITWISE or (before and before.run.outputs == run.outputs):
        return Recording(check.reference, Change.SAME, verdict.reason, record, verdict.equivalence)
    if verdict.equivalence is None:
        other = foreign(golden, profile, [run]) if golden else None
        reason = other.why.removeprefix(NO_BASELINE) if other else verdict.reason
        why = f"cannot be compared with what is on record ({reason})"
        return Recording(check.reference, Change.OTHER, why, record, None, verdict.detail)
    return Recording(check.reference, Change.CHANGED, verdict.reason, record, verdict.equivalence, verdict.detail)


def _answered(key: str, tries: Mapping[str, JobTry]) -> tuple[JobTry | None, ProcessRun | None]:
    """The first process that answered the prompts of a key, and its job's try."""
    for tried in tries.values():
        for reference in tried.job.references if tried.job else ():
            if reference.check.reference == key:
                runs = (run for run in tried.runs if run.step.arm == reference.arm and run.step.outputs)
                return tried, next((run for run in runs if run.outputs and not run.failure), None)
    return None, None
