"""A matrix run: the plan in, verdicts out as jobs end, everything in the journal first."""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeAlias

from filelock import FileLock

from harness import __version__
from harness.domain.errors import HarnessError, Infrastructure
from harness.domain.job import Job
from harness.domain.sandboxing import Sandboxing
from harness.domain.verdict import Verdict
from harness.domain.words import Kind, Pitfall, Status
from harness.execution.dispatch import Dispatcher
from harness.execution.events import Ended, JobEvent
from harness.execution.executors import MakeExecutor
from harness.judging.judge import judge
from harness.judging.shares import shared_seconds
from harness.planning.plan import Plan, PlannedCase
from harness.planning.planner import held_against, narrowed
from harness.reporting import journal
from harness.reporting.whole_plan import Shard
from harness.running.forecasts import job_minutes
from harness.running.gate_choice import Chosen
from harness.running.golden_file import Goldens
from harness.running.known_spreads import KnownSpreads
from harness.running.records import Records
from harness.running.resuming import Resumption, restricted

_VERSIONS_OF = ("pytest", "ray", "numpy", "scipy", "xllamacpp", "ik-llama-cpp-python", "gguf")


Watch: TypeAlias = Callable[[JobEvent | None], None]


class MatrixRun:
    """Runs the jobs of a plan and judges their cases.

    Args:
        plan: The selected cases and their jobs.
        executor: Name of where the jobs run.
        make_executor: Makes it, for the first job that is asked for.
        reports: Folder of the journal.
        known: What is known of spreads: the jobs, and so the journal, get it.
        goldens: Where outputs are on record, likewise; ``None``: nothing asks for any.
        chosen: Of a merge gate's run, by what the plan was cut down and what it leaves to the night.
        shard: Of which whole plan it is a part; ``None``: it is all of it.
        sandboxing: Which engines run in a sandbox.
    """

    def __init__(
        self,
        plan: Plan,
        executor: str,
        make_executor: MakeExecutor,
        reports: Path,
        known: KnownSpreads,
        *,
        goldens: Goldens | None = None,
        chosen: Chosen | None = None,
        shard: Shard | None = None,
        sandboxing: Sandboxing = Sandboxing.AUTO,
    ) -> None:
        self._plan = plan
        self._known = known
        self._goldens = goldens
        self._chosen = chosen
        self._shard = shard
        self._sandboxing = sandboxing
        self._executor = executor
        self._policy = plan.policy.judging
        self._journal = journal.JournalWriter(reports)
        self._records = Records(self._journal)
        self._dispatcher = Dispatcher(make_executor)
        self._cases: dict[str, PlannedCase] = {}
        self._jobs: dict[str, Job] = {}
        self._job_of: dict[str, str] = {}
        self._waiting: dict[str, Job] = {}
        self._verdicts: dict[str, Verdict] = {}
        self._tried: Mapping[str, int] = {}
        self._broken: HarnessError | None = None

    @property
    def process_starts(self) -> int:
        """Process starts that the begun cases need at most."""
        return sum(job.process_starts for job in self._waiting.values())

    def begin(self, selected: Collection[str], *, keep_jobs: bool = False) -> None:
        """Write the plan of the selected cases. Several processes of one run may call it: the first one writes.

        Args:
            selected: Ids of the cases.
            keep_jobs: Keep the whole plan's jobs even where fewer would do for these cases: processes that share the
                cases out by job must agree on the jobs.
        """
        plan = restricted(self._plan, selected) if keep_jobs else narrowed(self._on_live_nodes(), selected)
        plan = replace(plan, jobs=tuple(self._informed(job) for job in plan.jobs))
        self._cases = {case.id: case for case in plan.cases}
        self._jobs = {job.id: job for job in plan.jobs}
        self._waiting = dict(self._jobs)
        self._job_of = {case: job.id for job in plan.jobs for case in job.cases}
        self._verdicts = {case.id: _decided(case) for case in plan.cases if case.status is not None}
        with FileLock(f"{self._journal.path}.lock"):
            if self._journal.path.stat().st_size == 0:
                self._write_plan(plan)

    def go_on(self, selected: Collection[str], broken: Resumption, *, write: bool) -> None:
        """Go on with a broken run in its journal instead of beginning one.

        Args:
            selected: Ids of the cases.
            broken: The broken run, of whose plan this one is.
            write: Say so in the journal; of several processes only one does.
        """
        plan = restricted(self._plan, selected)
        jobs = [self._informed(job) for job in plan.jobs if job.id in broken.again]
        self._cases = {case.id: case for case in plan.cases}
        self._jobs = {job.id: job for job in jobs}
        self._waiting = dict(self._jobs)
        self._job_of = {case: job.id for job in plan.jobs for case in job.cases}
        self._verdicts = {case: verdict for case, verdict in broken.kept.items() if case in self._cases}
        self._tried = broken.again
        if write:
            self._journal.run_resumed(self._executor, _versions(), list(self._jobs))
            for case in broken.unwritten:
                self._journal.verdict(broken.kept[case])
            for job in jobs:
                self._journal.job_submitted(job, broken.again[job.id] + 1)

    def run_all(self, watch: Watch) -> Iterator[str]:
        """Run every job and yield the ids of cases as they are decided, those that planning decided first.

        Args:
            watch: Called with every event, and with ``None`` while nothing happens: it may draw.
        """
        yield from list(self._verdicts)
        yield from self._run(list(self._waiting), watch)

    def verdict(self, case: str) -> Verdict:
        """The verdict on a case; its job is run now if it has not been.

        Raises:
            KeyError: If the case was not begun.
            HarnessError: If jobs can't be run, or the journal can't be written; for every later case too.
        """
        if case not in self._verdicts:
            if self._broken is not None:
                raise self._broken
            try:
                for _ in self._run([self._job_of[case]]):
                    pass
            except HarnessError as error:
                self._broken = error
                raise
        return self._verdicts[case]

    def cancel(self) -> None:
        """End the processes of the running jobs: their cases are judged by what was measured."""
        self._dispatcher.cancel()

    def close(self) -> None:
        """End every process and close the journal."""
        self._dispatcher.close()
        self._journal.close()

    def _on_live_nodes(self) -> Plan:
        """The plan held against the nodes of a cluster: they were not known when it was made."""
        if self._plan.nodes is not None or not self._plan.jobs:
            return self._plan
        try:
            return held_against(self._plan, self._dispatcher.nodes())
        except Infrastructure:
            return self._plan  # the first job meets it again, with the plan in the journal

    def _informed(self, job: Job) -> Job:
        job = replace(self._known.informed(job), sandboxing=self._sandboxing)
        job = self._chosen.limited(job) if self._chosen else job
        return self._goldens.informed(job) if self._goldens else job

    def _run(self, jobs: Collection[str], watch: Watch = lambda _: None) -> Iterator[str]:
        batch = [self._waiting.pop(job) for job in jobs]
        self._records.add(batch)
        self._dispatcher.add(batch, self._tried, self._thought_s(batch))
        for event in self._dispatcher.events():
            if event is not None:
                self._records.take(event)
            watch(event)
            if isinstance(event, Ended):
                yield from self._judge(event.job)

    def _thought_s(self, jobs: Collection[Job]) -> dict[str, float]:
        """What jobs take at most, as far as calibrations tell: the longest go first."""
        minutes = {job.id: job_minutes(job, self._known.process_seconds(job)) for job in jobs}
        return {job: 60 * each for job, each in minutes.items() if each is not None}

    def _judge(self, job: str) -> Iterator[str]:
        record = self._records.close(job)
        cases = {case: self._cases[case].case for case in record.job.cases}
        seconds = shared_seconds(cases, record)
        for case, judged in cases.items():
            verdict = replace(judge(judged, record, self._policy), seconds=seconds[case])
            self._verdicts[case] = verdict
            self._journal.verdict(verdict)
        yield from record.job.cases

    def _write_plan(self, plan: Plan) -> None:
        info = journal.RunInfo(plan.matrix_name, self._executor, len(plan.cases), _versions(), self._policy)
        self._journal.run_started(info)
        if self._shard:
            self._journal.shard(self._shard)
        if self._chosen:
            self._journal.chosen(self._chosen.choice)
            for left in self._chosen.left:
                self._journal.left_to_night(left)
        for planned in plan.cases:
            decided = self._verdicts.get(planned.id)
            self._journal.planned(journal.PlannedCase(planned.case, self._job_of.get(planned.id, ""), decided))
        for job in plan.jobs:
            self._journal.job_submitted(job)


def _decided(planned: PlannedCase) -> Verdict:
    """The verdict on a case that planning already knows cannot run."""
    assert planned.status is not None  # noqa: S101 - the caller chose it so
    synthetic = any(arm.model.synthetic for arm in planned.case.arms)
    reason = f"{planned.status}: {planned.reason}"
    alien = planned.case.kind is Kind.PITFALL and planned.status is Status.NOT_APPLICABLE
    return Verdict(
        planned.id,
        planned.status,
        reason,
        pitfall=Pitfall.NOT_APPLICABLE if alien else None,
        synthetic=synthetic,
        contrast=planned.case.contrast,
    )


def _versions() -> dict[str, str]:
    found = {"moe-harness": __version__, "python": platform.python_version()}
    for name in _VERSIONS_OF:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
