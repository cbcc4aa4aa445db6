"""Journals as they are after reading, of one case or of thousands, without the time that writing and reading takes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from judging_support import ANY, BASELINE, CANDIDATE, NODE, PP, arms_runs, contrast, floor

from harness.domain.arm import Arm
from harness.domain.case import Case
from harness.domain.job import Design, Job
from harness.domain.measurement import ProcessRun
from harness.domain.policy import Policy
from harness.domain.verdict import Verdict
from harness.domain.words import Status
from harness.domain.workload import Workload
from harness.history.series import BuildRange, BuildRef, Change, ChangeKind, MissingNight, NightPoint, Series
from harness.reporting.journal import PlannedCase, RunInfo
from harness.reporting.state import JobTry, JournalState

STATUSES = (Status.PASS, Status.PASS, Status.PASS, Status.INCONCLUSIVE, Status.FAIL, Status.ERROR)
RUNS = arms_runs([100, 101, 99, 100] * 2, [80, 81, 79, 80] * 2)


def job_of(arms: tuple[Arm, ...] = (BASELINE, CANDIDATE), workloads: tuple[Workload, ...] = (PP,)) -> Job:
    return Job(arms, workloads, None, ANY, Design(blocks=8), ())


def journal_of(
    cases: Sequence[Case],
    verdicts: Mapping[str, Verdict] | None = None,
    tries: Sequence[JobTry] = (),
    *,
    name: str = "small",
    policy: Policy | None = None,
) -> JournalState:
    """A journal of some cases of one job; those without a verdict are judged by what ran."""
    jobs = tries or [JobTry(1, job_of(), "2026-12-01T10:00:00.5+00:00", "box", NODE, RUNS, finished=True)]
    by_id = {each.job.id: each for each in jobs if each.job}
    homes = {tuple(arm.identity for arm in each.job.arms): key for key, each in by_id.items() if each.job}
    first = next(iter(by_id))
    return JournalState(
        path=Path("moe-reports/journal.jsonl"),
        run=RunInfo(name, "local", len(cases), {"moe-harness": "1.0"}, policy or Policy()),
        planned={
            case.id: PlannedCase(case, homes.get(tuple(arm.identity for arm in case.arms), first)) for case in cases
        },
        jobs=by_id,
        verdicts=verdicts or {},
        problems=(),
        torn=0,
        finished=True,
        started="2026-12-01T10:00:00.5+00:00",
    )


def small_journal() -> JournalState:
    """A regression, a floor that is met and one whose speed is only shown."""
    return journal_of([contrast(), floor(50), replace(floor(None), arms=(CANDIDATE,))])


def large_journal(count: int) -> JournalState:
    """So many contrasts, ten of a job: each arm has flags of its own, and every status is among the verdicts."""
    (model,) = journal_of([contrast()]).final_verdicts()
    verdicts: dict[str, Verdict] = {}
    cases: list[Case] = []
    tries: list[JobTry] = []
    for number in range(-(-count // 10)):
        arms = tuple(_numbered(arm, number) for arm in (BASELINE, CANDIDATE))
        workloads = tuple(itertools.chain(*((Workload(64 << size, 0), Workload(0, 16 << size)) for size in range(5))))
        job = job_of(arms, workloads)
        tries.append(JobTry(1, job, "2026-12-01T10:00:00.5+00:00", "box", NODE, _measured(workloads), finished=True))
        for workload in workloads[: count - len(cases)]:
            case = replace(contrast(workload=workload), arms=arms)
            status = STATUSES[len(cases) % len(STATUSES)]
            verdicts[case.id] = replace(model, case=case.id, status=status, reason=f"{model.reason}, number {number}")
            cases.append(case)
    return journal_of(cases, verdicts, tries, name=f"large-{count}")


def _numbered(arm: Arm, number: int) -> Arm:
    return replace(arm, flags=arm.flags.merged({"amb": number}), shown=("amb", "rtr"))


def _measured(workloads: Sequence[Workload]) -> tuple[ProcessRun, ...]:
    return tuple(
        replace(
            run, samples=tuple(replace(run.samples[0], workload=each.name, tokens=each.tokens) for each in workloads)
        )
        for run in RUNS
    )


def nights_of(case: str) -> tuple[Series, ...]:
    """Thirty nights of a ratio: a step down at the twentieth, one missing, one far off, one of an assumed scatter."""
    first = date(2026, 11, 1)
    builds = (BuildRef("base", "aaaaaaa"), BuildRef("new", "bbbbbbb"))
    points = []
    for day in (day for day in range(30) if day != 9):
        value = (1.0 if day < 20 else 0.9) * (1 + 0.004 * ((day * 7) % 5 - 2)) * (0.8 if day == 5 else 1)
        night = first + timedelta(days=day)
        time = datetime.combine(night, datetime.min.time(), UTC)
        far = day == 5
        assumed = 0.1 if day == 1 else None
        points.append(
            NightPoint(night, time, value, value / 1.02, value * 1.02, assumed, 3, Status.PASS, "", "box", builds, far)
        )
    step = Change(
        kind=ChangeKind.STEP,
        last_before=date(2026, 11, 20),
        first_after=date(2026, 11, 21),
        earliest=date(2026, 11, 21),
        latest=date(2026, 11, 22),
        before=1.0,
        after=0.9,
        ratio=0.9,
        low=0.89,
        high=0.91,
        p=1e-9,
        first_seen=date(2026, 11, 24),
        builds=(BuildRange("candidate", builds[0], builds[1], builds[0], builds[1]),),
        node_changed=False,
        worse=True,
    )
    missing = (MissingNight(first + timedelta(days=9), "error"),)
    return (Series(case, "ratio", "box", "", tuple(points), missing, (step,)),)
