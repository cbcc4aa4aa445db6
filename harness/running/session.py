"""The part of a pytest session that concerns the matrix: which process does what, and when."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from filelock import FileLock

from harness.domain.errors import Infrastructure
from harness.domain.verdict import Verdict
from harness.execution.executor import Executor
from harness.planning.plan import Plan
from harness.planning.planner import decided_beside, held_against, with_decided
from harness.reporting.journal import JOURNAL_NAME, JournalWriter
from harness.reporting.replay import read_journal
from harness.reporting.state import JournalState
from harness.running.matrix_run import MatrixRun
from harness.running.options import RunOptions, claim_reports
from harness.running.resuming import Resumption, resumption


class MatrixSession:
    """What one pytest process (driver, xdist controller or xdist worker) does for the matrix.

    Args:
        options: What was asked for.
        worker: This is an xdist worker: it waits for jobs of its own and leaves reports to the controller.
        decided: To a worker, what its controller found out about cases: none of a cluster's nodes can take them.
    """

    def __init__(
        self, options: RunOptions, *, worker: bool, decided: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self.options = options
        self.worker = worker
        self.decided: Mapping[str, Sequence[str]] = decided or {}
        self.known = options.known_spreads()
        self.plan: Plan = options.plan()
        self.sharded = options.sharded(self.plan)
        if self.sharded is not None:
            self.plan = self.sharded.plan
        self.broken = self._broken_run()
        # A gate chose once, by what was known then; its broken run has what it chose.
        self.chosen = options.chosen(self.plan, self.known) if self.broken is None else None
        if self.broken is not None:
            self.plan = self.broken.plan
        elif self.chosen is not None:
            self.plan = self.chosen.plan
        if self.decided:
            self.plan = with_decided(self.plan, self.decided)
        self.known = options.known_spreads()
        self.goldens = options.goldens()
        self._make_executor = options.executor_factory(self.plan.policy.judging)
        self._run: MatrixRun | None = None
        self._shared: Executor | None = None
        self._claim: FileLock | None = None
        self._began = False
        self._end: JournalState | None = None

    @property
    def reports(self) -> Path:
        """Folder of the run's reports."""
        return self.options.reports

    @property
    def journal(self) -> Path:
        """The run's journal, which may not exist."""
        return self.reports / JOURNAL_NAME

    @property
    def has_results(self) -> bool:
        """Whether this process is the one that reports on a run, and the run began."""
        return self._began and not self.worker

    def job_groups(self) -> dict[str, str]:
        """Case id to job id in the whole plan: what xdist must keep together."""
        return {case: job.id for job in self.plan.jobs for case in job.cases}

    def share_executor(self) -> str:
        """In an xdist controller: start what the workers will join.

        Returns:
            The address for them; empty where there is nothing to join.
        """
        self._claim = claim_reports(self.reports, self.broken)
        if self.broken is not None:
            self._matrix_run().go_on(self.plan.ids(), self.broken, write=True)
        self._began = True
        if self.options.executor != "ray" or not self.plan.jobs:
            return self.options.ray_address
        if self.options.ray_address:
            self._hold_against_cluster()
            return self.options.ray_address
        self._shared = self._make_executor()
        self._shared.start()
        return self._shared.address

    def _hold_against_cluster(self) -> None:
        """Find out what no node of a cluster can take, once for all workers: they must agree on the plan."""
        if self.broken is not None or self.plan.nodes is not None:
            return
        executor = self._make_executor()
        try:
            executor.start()
            held = held_against(self.plan, executor.nodes())
        except Infrastructure:
            return  # each worker meets it again, and says so for its cases
        finally:
            executor.close()
        self.decided, self.plan = decided_beside(held, self.plan), held

    def begin(self, selected: Collection[str]) -> MatrixRun:
        """Begin to run the selected cases in this process."""
        if not self.worker:
            self._claim = claim_reports(self.reports, self.broken)
        run = self._matrix_run()
        if self.broken is not None:
            run.go_on(selected, self.broken, write=not self.worker)
        else:
            run.begin(selected, keep_jobs=self.worker)
        self._began = True
        return run

    def _broken_run(self) -> Resumption | None:
        """The run to go on with; its controller has put the journal into place for a worker."""
        if self.options.resume is None:
            return None
        return resumption(self.reports if self.worker else self.options.resume, self.plan)

    def _matrix_run(self) -> MatrixRun:
        self._run = MatrixRun(
            self.plan,
            self.options.executor,
            self._make_executor,
            self.reports,
            self.known,
            goldens=self.goldens,
            chosen=self.chosen,
            shard=self.sharded.shard if self.sharded else None,
            sandboxing=self.options.sandboxing,
        )
        return self._run

    @property
    def nothing_chosen(self) -> bool:
        """Whether there is rightly nothing to measure: a gate leaves all to the night, or other shards have all."""
        return (self.chosen is not None or self.sharded is not None) and not self.plan.cases

    def begin_nothing(self) -> None:
        """Say in the journal that nothing is measured, and why."""
        self._claim = self._claim or claim_reports(self.reports)
        self._matrix_run().begin(())
        self._began = True

    def verdict(self, case: str) -> Verdict:
        """The verdict on a case, running its job if need be."""
        if self._run is None:
            raise RuntimeError("a case was asked for before the matrix run began")
        return self._run.verdict(case)

    def close(self) -> None:
        """End every process that this one is responsible for, and the journal."""
        if self._run is not None:
            self._run.close()
            self._run = None
        if self._shared is not None:
            self._shared.close()
            self._shared = None

    def leave(self) -> None:
        """Let another run have the folder of the reports."""
        if self._claim is not None:
            self._claim.release()
            self._claim = None

    def finish(self) -> JournalState:
        """Say in the journal that the run came to its end, if every planned case has its verdict.

        Returns:
            The whole journal: what all reports are made of.
        """
        state = self._end = read_journal(self.journal)
        if state.finished or state.undecided:
            return state
        with JournalWriter(self.reports) as journal:
            journal.run_finished()
        self._end = replace(state, finished=True)
        return self._end

    def end(self) -> JournalState:
        """The journal at the end: as ``finish`` read it, for that takes a while in a long night.

        Raises:
            BadInput: It was not read, and can't be.
        """
        return self._end or read_journal(self.journal)


def in_ci() -> bool:
    """Whether a person watches: CI systems set ``CI``."""
    return bool(os.environ.get("CI"))
