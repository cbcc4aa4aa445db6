"""What a journal tells: the plan, the jobs' tries, the verdicts - and one final verdict for every planned case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from harness.domain.case import Case
from harness.domain.choice import Choice, LeftToNight
from harness.domain.failure import Failure
from harness.domain.job import Job
from harness.domain.measurement import ProcessRun
from harness.domain.node import NodeFacts
from harness.domain.policy import Policy
from harness.domain.stopping import JobEnd
from harness.domain.verdict import Verdict
from harness.domain.words import Status
from harness.judging.judge import judge
from harness.judging.record import JobRecord
from harness.judging.shares import shared_seconds
from harness.judging.wording import expected_text
from harness.reporting.journal import PlannedCase, RunInfo
from harness.reporting.whole_plan import Shard


@dataclass(frozen=True, slots=True)
class Problem:
    """A line of the journal that could not be used.

    Attributes:
        line: Its number, from 1; 0 for the journal as a whole.
        message: What is wrong with it.
    """

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class EarlierTry:
    """A try that was followed by another one.

    Attributes:
        attempt: Its number, from 1.
        host: Host that it ran on; empty where it never started.
        failure: Why it does not count; ``None`` where nobody told, because the driver died first.
    """

    attempt: int
    host: str
    failure: Failure | None

    @property
    def text(self) -> str:
        """It in one line."""
        where = f" on {self.host}" if self.host else ""
        why = f"{self.failure.slug}, {self.failure.message}" if self.failure else "broken off"
        return f"try {self.attempt}{where}: {why}"


@dataclass(frozen=True, slots=True)
class JobTry:
    """The last try of a job, as far as it was seen.

    Attributes:
        attempt: Number of the try, from 1.
        job: The job; ``None`` if the line that describes it is lost.
        since: Time of the last sign of a change of state, UTC.
        host: Host that it runs on; empty before it started.
        node: Facts of that node.
        runs: Engine processes that ended.
        failure: The job's own failure.
        finished: Whether the try came to its end.
        lost: Processes that the journal counted and whose lines cannot be used.
        end: Why it ended where it went well.
        earlier: The tries before it.
        waiting: What it said last of waiting for another measurement; empty where it did not wait.
    """

    attempt: int
    job: Job | None = None
    since: str = ""
    host: str = ""
    node: NodeFacts | None = None
    runs: tuple[ProcessRun, ...] = ()
    failure: Failure | None = None
    finished: bool = False
    lost: int = 0
    end: JobEnd | None = None
    earlier: tuple[EarlierTry, ...] = ()
    waiting: str = ""

    @property
    def tries_made(self) -> tuple[EarlierTry, ...]:
        """The tries before a next one: the earlier ones, and this one if it came to anything."""
        began = self.host or self.finished
        return (*self.earlier, EarlierTry(self.attempt, self.host, self.failure)) if began else self.earlier

    @property
    def tries(self) -> tuple[str, ...]:
        """All of its tries, a line each, the last one last."""
        end = self.failure.slug if self.failure else "counts" if self.finished else "did not end"
        where = f" on {self.host}" if self.host else ""
        return (*(each.text for each in self.earlier), f"try {self.attempt}{where}: {end}")

    @property
    def record(self) -> JobRecord | None:
        """What there is to judge; ``None`` while the try is not over, or where parts of it are lost."""
        if self.job is None or not self.finished or self.lost:
            return None
        return JobRecord(self.job, self.runs, self.failure, self.node, self.attempt, self.end)


@dataclass(frozen=True)
class JournalState:
    """A journal, read. All reports ask for its final verdicts: no slots, so that they are made once.

    Attributes:
        path: The file.
        run: What its last ``run_started`` says; ``None`` if there is none.
        planned: Cases by id, in plan order.
        jobs: The last try of each job by id.
        verdicts: The last verdict of each case by id.
        problems: Lines that could not be used.
        torn: Lines cut short by the death of their writer.
        finished: Whether the run came to its end.
        resumed: Times at which a broken run was gone on with, UTC.
        set_aside: Nodes that got no more jobs, and why, in words.
        started: Time of its last ``run_started``, UTC; empty if there is none.
        choice: Of a merge gate's run, by what its cases were chosen.
        left: Cases by id that it left to the night; they are not among the planned ones.
        shard: Of which whole plan its cases are a part; ``None``: they are all.
        joined: Of several journals read as one, what their readers should know; ``None``: it is of one run.
    """

    path: Path
    run: RunInfo | None
    planned: Mapping[str, PlannedCase]
    jobs: Mapping[str, JobTry]
    verdicts: Mapping[str, Verdict]
    problems: tuple[Problem, ...]
    torn: int
    finished: bool
    started: str = ""
    resumed: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()
    choice: Choice | None = None
    left: Mapping[str, LeftToNight] = field(default_factory=dict)
    shard: Shard | None = None
    joined: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """The matrix's name."""
        return self.run.matrix if self.run else "unknown-matrix"

    @property
    def policy(self) -> Policy:
        """The run's policy."""
        return self.run.policy if self.run else Policy()

    @property
    def complete_plan(self) -> bool:
        """Whether every case that the run announced has its line: a driver can die while it writes the plan."""
        some = bool(self.planned) or self.shard is not None  # a shard may have nothing to do
        return self.run is not None and some and len(self.planned) >= self.run.cases

    @property
    def undecided(self) -> tuple[str, ...]:
        """Ids of planned cases without a verdict in the journal."""
        return tuple(
            case for case, planned in self.planned.items() if case not in self.verdicts and planned.verdict is None
        )

    def final_verdicts(self) -> tuple[Verdict, ...]:
        """Exactly one verdict per planned case, in plan order; what never finished is an error.

        Their seconds are shares: those of all cases of a job add up to what its processes took.
        """
        return self._final_verdicts

    @cached_property
    def _final_verdicts(self) -> tuple[Verdict, ...]:
        seconds = self._shared_seconds()
        found = (self._final(case_id, planned) for case_id, planned in self.planned.items())
        return tuple(replace(verdict, seconds=seconds.get(verdict.case, verdict.seconds)) for verdict in found)

    def content_keys(self) -> dict[str, dict[str, str]]:
        """What really ran: content key by arm label, by case id."""
        return {case_id: self._content_keys(planned) for case_id, planned in self.planned.items()}

    def _shared_seconds(self) -> dict[str, float]:
        by_job: dict[str, dict[str, Case]] = {}
        for case_id, planned in self.planned.items():
            by_job.setdefault(planned.job, {})[case_id] = planned.case
        return {
            case_id: seconds
            for job_id, cases in by_job.items()
            if (last := self.jobs.get(job_id)) and last.job
            for case_id, seconds in shared_seconds(cases, JobRecord(last.job, last.runs)).items()
        }

    def _final(self, case_id: str, planned: PlannedCase) -> Verdict:
        found, last = self._judged(case_id, planned), self.jobs.get(planned.job)
        return replace(found, tries=last.tries) if last and last.earlier else found

    def _judged(self, case_id: str, planned: PlannedCase) -> Verdict:
        known = self.verdicts.get(case_id) or planned.verdict
        if known:
            return known
        last = self.jobs.get(planned.job)
        record = last.record if last else None
        if record:
            return replace(judge(planned.case, record, self.policy), case=case_id)
        return _never_finished(case_id, planned, last, self.policy)

    def _content_keys(self, planned: PlannedCase) -> dict[str, str]:
        last = self.jobs.get(planned.job)
        if last is None or last.job is None:
            return {}
        by_identity = {
            last.job.arms[run.step.arm].identity: run.content_key
            for run in last.runs
            if run.content_key and run.step.arm < len(last.job.arms)
        }
        return {arm.label: by_identity[arm.identity] for arm in planned.case.arms if arm.identity in by_identity}


def _never_finished(case_id: str, planned: PlannedCase, last: JobTry | None, policy: Policy) -> Verdict:
    runs = last.runs if last else ()
    return Verdict(
        case=case_id,
        status=Status.ERROR,
        reason=f"the run ended before this case did (last seen: {_last_seen(planned.job, last)})",
        expected=expected_text(planned.case.check, policy),
        slug="E-never-finished",
        seconds=sum(run.wall_s for run in runs),
        synthetic=any(arm.model.synthetic for arm in planned.case.arms),
        contrast=planned.case.contrast,
    )


def _last_seen(job: str, last: JobTry | None) -> str:
    if last is None:
        return f"planned for {job}" if job else "planned"
    if last.finished:
        lost = f"the lines of {last.lost} processes are" if last.lost else "the line that describes it is"
        return f"{job} finished at {last.since}, but {lost} lost"
    if last.waiting and not last.runs:
        return f"{job} on {last.host} since {last.since}, {last.waiting}"
    if last.host:
        return f"{job} running on {last.host} since {last.since}, {len(last.runs)} processes done"
    return f"{job} waiting for a node since {last.since}"
