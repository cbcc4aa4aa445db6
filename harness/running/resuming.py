"""Go on with a broken run: what its journal has whole is kept, what it does not have is run again."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness.domain.errors import BadInput
from harness.domain.job import Job
from harness.domain.verdict import Verdict
from harness.planning.plan import Plan, PlannedCase
from harness.planning.planner import narrowed
from harness.reporting.codec import encode_case
from harness.reporting.journal import JOURNAL_NAME
from harness.reporting.replay import read_journal
from harness.reporting.state import JobTry, JournalState

_MOST_TOLD = 5


@dataclass(frozen=True, slots=True)
class Resumption:
    """A broken run, held against the plan that goes on with it.

    Attributes:
        journal: Its journal.
        size: Bytes of it when it was read: it must not grow any more.
        plan: The plan of its cases alone, with its jobs.
        kept: Verdicts of the cases that are whole.
        unwritten: Those of them that the journal has the measurements of, and no verdict yet.
        again: Jobs that are run again, with the number of tries that were made of each.
        left_out: Cases of the matrix that the broken run did not have; they are not run.
    """

    journal: Path
    size: int
    plan: Plan
    kept: Mapping[str, Verdict]
    unwritten: frozenset[str]
    again: Mapping[str, int]
    left_out: int

    @property
    def headline(self) -> str:
        """What is kept and what is run, in one line."""
        cases = len(self.plan.cases)
        left = f"; {self.left_out} cases of the matrix are not in it and are not run" if self.left_out else ""
        jobs = "1 job is" if len(self.again) == 1 else f"{len(self.again)} jobs are"
        kept = f"{len(self.kept)} of {cases} cases are whole and kept"
        return f"resumed from {self.journal}: {kept}, {jobs} run again{left}"


def resumption(source: Path, plan: Plan) -> Resumption | None:
    """Read a broken run.

    Args:
        source: Its journal, or the folder that holds it.
        plan: The plan of the matrix, as it is now.

    Returns:
        What there is to go on with; ``None`` where the run broke before its plan was written: it begins anew.

    Raises:
        BadInput: ``E-no-journal``, ``E-journal-schema``; ``E-resume-merged``: it is of several runs;
            ``E-resume-other-plan``: the cases of the journal are not those of the matrix, with the differences.
    """
    file = source / JOURNAL_NAME if source.is_dir() else source
    state = read_journal(file)
    if state.joined is not None:
        hint = "go on with the shard's own journal where it was left, then merge again"
        raise BadInput("E-resume-merged", "this journal was merged of several", hint=hint, where=f"{file}")
    if not state.complete_plan:
        return None
    own = _same_plan(file, state, plan)
    tries = {job.id: state.jobs.get(job.id) for job in own.jobs}
    again = {job: _tries_made(last) for job, last in tries.items() if not _is_whole(last)}
    asked_again = {case for job in own.jobs if job.id in again for case in job.cases}
    kept = {verdict.case: verdict for verdict in state.final_verdicts() if verdict.case not in asked_again}
    return Resumption(
        journal=file,
        size=file.stat().st_size,
        plan=own,
        kept=kept,
        unwritten=frozenset(state.undecided) - asked_again,
        again=again,
        left_out=len(plan.cases) - len(own.cases),
    )


def copy_journal(found: Resumption, reports: Path) -> None:
    """Put the journal of a broken run into the folder of the run that goes on with it, whole or not at all.

    Raises:
        BadInput: ``E-resume-grows``: somebody has written to it since it was read.
        OSError: It can't be copied.
    """
    if found.journal.stat().st_size != found.size:
        raise BadInput(
            "E-resume-grows",
            "the journal has grown since it was read",
            hint="its run is still at work, or another one goes on with it: wait for its end",
            where=f"{found.journal}",
        )
    target = reports / JOURNAL_NAME
    if target.exists() and target.samefile(found.journal):
        return
    part = reports / f".{JOURNAL_NAME}.part"
    shutil.copyfile(found.journal, part)
    part.replace(target)


def _tries_made(last: JobTry | None) -> int:
    """Number of the last try that came to anything."""
    made = last.tries_made if last else ()
    return made[-1].attempt if made else 0


def _is_whole(last: JobTry | None) -> bool:
    """Whether nothing of a job has to be measured again.

    A failure of the job's own means that it could not be measured: its node was lost, it was stopped, no node could
    take it. Only one that the candidate is to blame for is an answer.
    """
    record = last.record if last else None
    return record is not None and (record.failure is None or record.failure.blames_candidate)


# ---- the same plan ---------------------------------------------------------------------------------------------------


def _same_plan(file: Path, state: JournalState, plan: Plan) -> Plan:
    """The plan of the journal's cases, with the journal's jobs."""
    mine = {case.id: case for case in plan.cases}
    differences = list(_differing_cases(state, mine))
    decided = replace(plan, cases=tuple(_as_decided(case, state) for case in plan.cases if case.id in state.planned))
    own = _limited(narrowed(decided, state.planned), state)
    if not differences:
        differences = list(_differing_jobs(state, own))
        if differences:  # a run of several processes keeps the jobs of the whole plan
            whole = _limited(restricted(decided, state.planned), state)
            own, differences = (whole, []) if not list(_differing_jobs(state, whole)) else (own, differences)
    if state.policy != plan.policy.judging:
        differences.append("the policy that verdicts are made by has changed")
    if differences:
        more = f"; and {len(differences) - _MOST_TOLD} more" if len(differences) > _MOST_TOLD else ""
        raise BadInput(
            "E-resume-other-plan",
            f"the journal is of another plan than this matrix: {'; '.join(differences[:_MOST_TOLD])}{more}",
            hint="resume with the matrix it was begun with, or begin a new run: verdicts of two plans do not mix",
            where=f"{file}",
        )
    return own


def restricted(plan: Plan, selected: Collection[str]) -> Plan:
    """The plan of fewer cases with its jobs as they are, without those that answer none of them."""
    wanted = set(selected)
    jobs = [replace(job, cases=tuple(case for case in job.cases if case in wanted)) for job in plan.jobs]
    return replace(
        plan,
        cases=tuple(case for case in plan.cases if case.id in wanted),
        jobs=tuple(job for job in jobs if job.cases),
    )


def _limited(plan: Plan, state: JournalState) -> Plan:
    """The plan with the limits that a merge gate gave its jobs: it shared its minutes out once."""
    if state.choice is None:
        return plan
    limits = {name: each.job.design.minutes for name, each in state.jobs.items() if each.job}

    def limited(job: Job) -> Job:
        own = job.design.minutes
        return replace(job, design=replace(job.design, minutes=limits.get(job.id) if own is None else own))

    return replace(plan, jobs=tuple(map(limited, plan.jobs)))


def _as_decided(mine: PlannedCase, state: JournalState) -> PlannedCase:
    """A case as the broken run planned it: what planning decided then stands."""
    decided = state.planned[mine.id].verdict
    return replace(mine, status=decided.status, reason=decided.reason) if decided else mine


def _differing_cases(state: JournalState, mine: Mapping[str, PlannedCase]) -> Iterator[str]:
    for case_id, planned in state.planned.items():
        now = mine.get(case_id)
        if now is None:
            yield f"{case_id} is not planned any more"
        elif now.case.key != planned.case.key:
            yield f"{case_id} has other arms or another workload"
        elif encode_case(now.case)["check"] != encode_case(planned.case)["check"]:
            yield f"{case_id} has another check"
        elif now.status is not None and planned.verdict is None:
            yield f"{case_id} cannot run any more: {now.reason}"


def _differing_jobs(state: JournalState, own: Plan) -> Iterator[str]:
    now = {case: job for job in own.jobs for case in job.cases}
    for case_id, planned in state.planned.items():
        then, job = state.jobs.get(planned.job), now.get(case_id)
        if (job.id if job else "") != planned.job:
            yield f"{case_id} is measured together with other things"
        elif job and then and then.job and _apart(job, then.job):
            yield f"{case_id} is repeated otherwise: blocks, warm-up, repetitions or limits have changed"


def _apart(one: Job, other: Job) -> bool:
    return one.design != other.design
