"""Run an ``ab`` and sum it up. Nothing is printed here."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness.domain.errors import EXIT_FINDING, EXIT_INTERRUPTED, EXIT_OK, EXIT_UNDECIDED, BadInput
from harness.domain.verdict import Verdict
from harness.domain.words import Kind, Status, Throughput
from harness.execution.events import JobEvent
from harness.execution.executors import executor_factory
from harness.judging.shortfall import without_policy
from harness.judging.stopping import SequentialStopping
from harness.pages.writing import write_reports
from harness.reporting.journal import JournalWriter
from harness.reporting.replay import read_journal
from harness.running.ab import AbPlan
from harness.running.ab_advice import Advice, advice
from harness.running.ab_board import Board
from harness.running.interrupts import Interrupts
from harness.running.matrix_run import MatrixRun
from harness.running.options import claim_reports, known_spreads

_EXECUTOR = "local"


@dataclass(frozen=True, slots=True)
class AbResult:
    """How it ended.

    Attributes:
        plan: What was asked.
        board: What was measured, and how long it took.
        verdicts: By workload, in their order.
        advice: For undecided workloads, how much longer they would take.
        outputs: On the outputs; ``None`` where they were not compared.
        stopped: Somebody stopped it: what was measured until then was judged.
        reports: Folder of its journal.
    """

    plan: AbPlan
    board: Board
    verdicts: Mapping[str, Verdict]
    advice: Mapping[str, Advice]
    outputs: Verdict | None
    stopped: bool
    reports: Path

    @property
    def not_compared(self) -> tuple[str, ...]:
        """Workloads about whose speed nothing can be said: something failed, or what came is no measurement."""
        return tuple(name for name, verdict in self.verdicts.items() if verdict.throughput is None)

    @property
    def nothing_compared(self) -> bool:
        """Whether that is so of all of them."""
        return bool(self.verdicts) and len(self.not_compared) == len(self.verdicts)

    @property
    def exit_code(self) -> int:
        """130 where it was stopped; 1 for a loss of speed, a crash or wrong outputs; 3 where something is undecided."""
        if self.stopped:
            return EXIT_INTERRUPTED
        if any(verdict.status is Status.FAIL for verdict in [*self.verdicts.values(), *filter(None, [self.outputs])]):
            return EXIT_FINDING
        decided = (Throughput.IMPROVED, Throughput.EQUIVALENT)
        return EXIT_OK if all(verdict.throughput in decided for verdict in self.verdicts.values()) else EXIT_UNDECIDED


def run_ab(plan: AbPlan, reports: Path, draw: Callable[[Board, bool], None]) -> AbResult:
    """Measure and judge.

    Args:
        plan: What to run.
        reports: Folder of the journal; made if it is not there.
        draw: Shown the board after every event, and five times a second while there is none; told whether a quad or the
            job has ended.

    Raises:
        BadInput: ``E-niceness``, ``E-reports-busy``, ``E-journal-unwritable``.
        Infrastructure: If the journal can't be written.
        KeyboardInterrupt: On a second Ctrl-C.
    """
    _require_normal_priority()
    board = Board(plan.job, plan.arms.names, plan.plan.policy.judging)
    lock = claim_reports(reports)
    interrupts = Interrupts()
    try:
        run = MatrixRun(
            plan.plan,
            _EXECUTOR,
            executor_factory(_EXECUTOR, SequentialStopping(plan.plan.policy.judging)),
            reports,
            known_spreads(),
        )
        stop = threading.Event()
        interrupts.call(stop.set)
        verdicts = _verdicts(run, plan, board, draw, stop)
        interrupts.ignore()
        _write_reports(reports, whole=not stop.is_set())
    finally:
        interrupts.restore()
        lock.release()
    return _result(plan, board, verdicts, reports, stopped=stop.is_set())


def _require_normal_priority() -> None:
    """Speed is judged at niceness 0 only: better said now than after the measurement."""
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    if niceness:
        message = f"this runs at niceness {niceness}; speed is judged at 0 only"
        raise BadInput("E-niceness", message, hint="run it without `nice`, or from a shell that is not niced")


def _result(plan: AbPlan, board: Board, verdicts: Mapping[str, Verdict], reports: Path, *, stopped: bool) -> AbResult:
    cases = [planned.case for planned in plan.plan.cases]
    timed = {
        case.workload_name: replace(verdicts[case.id], reason=without_policy(verdicts[case.id].reason))
        for case in cases
        if case.kind is Kind.THROUGHPUT
    }
    outputs = next((verdicts[case.id] for case in cases if case.kind is Kind.EQUIVALENCE), None)
    undecided = [row for row in board.rows if timed[row.workload].throughput is Throughput.INCONCLUSIVE]
    found = {row.workload: told for row in undecided if (told := advice(board, row))}
    return AbResult(plan, board, timed, found, outputs, stopped, reports)


def _verdicts(
    run: MatrixRun, plan: AbPlan, board: Board, draw: Callable[[Board, bool], None], stop: threading.Event
) -> dict[str, Verdict]:
    def watch(event: JobEvent | None) -> None:
        if stop.is_set():
            run.cancel()
        draw(board, board.take(event))

    try:
        run.begin(plan.plan.ids(), keep_jobs=True)
        return {case: run.verdict(case) for case in run.run_all(watch)}
    finally:
        run.close()


def _write_reports(reports: Path, *, whole: bool) -> None:
    if whole:
        with JournalWriter(reports) as journal:
            journal.run_finished()
    write_reports(read_journal(reports), reports)
