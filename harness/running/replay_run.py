"""Run a plan that came out of a journal, on this machine, into a journal of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from harness.execution.events import JobEvent
from harness.execution.executors import executor_factory
from harness.judging.stopping import SequentialStopping
from harness.planning.plan import Plan
from harness.reporting.journal import JournalWriter
from harness.reporting.projections import write_projections
from harness.reporting.replay import read_journal
from harness.reporting.state import JournalState
from harness.running.interrupts import Interrupts
from harness.running.known_spreads import KnownSpreads
from harness.running.matrix_run import MatrixRun
from harness.running.options import claim_reports

_EXECUTOR = "local"


def run_again(plan: Plan, known: KnownSpreads, reports: Path, watch: Callable[[JobEvent | None], None]) -> JournalState:
    """Run all cases of a plan as its jobs say, and write the reports.

    Args:
        plan: Of `replay_plan`.
        known: What is known of this machine; what a journal knew of another one is left behind.
        reports: Folder of the journal.
        watch: Shown every event, and ``None`` while nothing happens.

    Raises:
        BadInput: The folder of the reports is in use or can't be written.
        KeyboardInterrupt: It was told to stop; what was measured is in the journal.
    """
    lock = claim_reports(reports)
    interrupts, stop = Interrupts(), threading.Event()
    try:
        make_executor = executor_factory(_EXECUTOR, SequentialStopping(plan.policy.judging))
        interrupts.call(stop.set)
        run = MatrixRun(plan, _EXECUTOR, make_executor, reports, known)

        def look(event: JobEvent | None) -> None:
            if stop.is_set():
                run.cancel()
            watch(event)

        try:
            run.begin(plan.ids(), keep_jobs=True)
            for _ in run.run_all(look):
                pass
        finally:
            run.close()
        with JournalWriter(reports) as journal:
            journal.run_finished()
        state = read_journal(reports)
        write_projections(state, reports)
        if stop.is_set():
            raise KeyboardInterrupt
        return state
    finally:
        interrupts.restore()
        lock.release()
