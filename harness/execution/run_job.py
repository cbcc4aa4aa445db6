"""Run one job on this machine: prepare, start the engine processes of its schedule, report each. Never raises.

What goes wrong becomes a ``Failure`` in an event. Only being told to stop (a cancelled task, a closed generator,
Ctrl-C) passes through, after the running engine has been killed.
"""

from __future__ import annotations

import os
import platform
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

from harness.domain.errors import BadInput, HarnessError, Infrastructure
from harness.domain.failure import Failure, FailureKind
from harness.domain.job import Job
from harness.domain.measurement import Conditions, ProcessRun, Samples, Step
from harness.domain.node import NodeFacts
from harness.domain.stopping import StoppingRule
from harness.domain.workload import Workload
from harness.engines.engine import Command, Engine, Exit, Order, Report
from harness.execution.cores import cores_for
from harness.execution.events import Finished, JobEvent, ProcessDone, Progress, Started
from harness.execution.hostlock import measurement_lock
from harness.execution.node import probe_node
from harness.execution.preparing import Prepared, prepare
from harness.execution.process import ProcessResult, ProcessSpec, Supervisor, clean_environment

_SECONDS_PER_NS = 1e-9
_REASONS = frozenset({FailureKind.OUT_OF_MEMORY, FailureKind.REFUSED, FailureKind.INPUT_MISSING})
"""What a load that failed can turn out to be. Anything else is another failure, not the reason of this one."""
_LOCK_WAIT_S = 3600.0
_LOCK_SLICE_S = 1.0


def run_job(
    job: Job, attempt: int, rule: StoppingRule, should_stop: Callable[[], bool] = lambda: False
) -> Iterator[JobEvent]:
    """Run a job and yield its events.

    Args:
        job: The job.
        attempt: Number of this try, from 1.
        rule: Ends the schedule early once everything is decided.
        should_stop: Asked several times a second; true ends the job.

    Yields:
        ``Started`` first, ``Finished`` last.
    """
    node = probe_node()
    yield Started(job.id, attempt, node, platform.node())
    failure: Failure | None = None
    try:
        _check_place(job, node)
        yield Progress(job.id, attempt, "waiting for the host")
        with ExitStack() as stack:
            _take_host(stack, job, should_stop)
            supervisor = stack.enter_context(Supervisor())
            yield Progress(job.id, attempt, "preparing models")
            yield from _Schedule(job, attempt, prepare(job), supervisor, should_stop).run(rule)
    except HarnessError as error:
        failure = Failure(_kind_of(error), str(error), error.slug)
    except Exception as error:
        if type(error).__name__ == "TaskCancelledError":  # Ray's; named here so that only one module imports Ray
            raise
        # A fault of ours must not lose what other jobs measure.
        failure = Failure(FailureKind.HARNESS, f"unexpected {error!r}", "E-harness-fault", traceback.format_exc())
    if failure is None and should_stop():
        failure = Failure(FailureKind.INTERRUPTED, "the job was stopped before its end", "E-interrupted")
    yield Finished(job.id, attempt, failure)


def _kind_of(error: HarnessError) -> FailureKind:
    """A supervisor that is killed from outside tells of the end of its node before anybody else does."""
    if isinstance(error, BadInput):
        return FailureKind.INPUT_MISSING
    return FailureKind.NODE_LOST if error.slug == "E-supervisor-lost" else FailureKind.HARNESS


def _take_host(stack: ExitStack, job: Job, should_stop: Callable[[], bool]) -> None:
    """Wait for the lock of this host, in slices: a job that waits must still be stoppable."""
    give_up = time.monotonic() + _LOCK_WAIT_S
    while True:
        try:
            stack.enter_context(measurement_lock(_LOCK_SLICE_S, job.id))
        except Infrastructure as error:
            if error.slug != "E-host-busy" or should_stop() or time.monotonic() > give_up:
                raise
        else:
            return


def _check_place(job: Job, node: NodeFacts) -> None:
    unmet = job.node_class.unmet(node)
    if unmet:
        raise BadInput(
            "E-wrong-node",
            f"this node is not of class '{job.node_class.name}': {unmet}",
            hint="run it on a node of the class, or change [node_classes] of the matrix",
            where=job.id,
        )


class _Schedule:
    """A job on its way through its schedule.

    An arm that failed is not started again: a contrast is lost with it, but the other arm's own cases are not.
    """

    def __init__(
        self,
        job: Job,
        attempt: int,
        arms: Sequence[Prepared],
        supervisor: Supervisor,
        should_stop: Callable[[], bool],
    ) -> None:
        self._job = job
        self._attempt = attempt
        self._arms = arms
        self._supervisor = supervisor
        self._should_stop = should_stop
        self._runs: list[ProcessRun] = []
        self._failed: set[int] = set()

    def run(self, rule: StoppingRule) -> Iterator[JobEvent]:
        """Start process after process until the schedule or the rule ends it."""
        steps = list(self._job.schedule())
        wanted = self._job.workloads
        for index, step in enumerate(steps):
            if self._should_stop():
                return
            if step.arm in self._failed:
                continue
            if step.scored and step.block != steps[index - 1].block:
                wanted = self._undecided(rule)
                if not wanted:
                    return
            yield self._progress(step, index, len(steps))
            done = self._start(step, wanted)
            self._runs.append(done)
            if done.failure is not None:
                self._failed.add(step.arm)
            yield ProcessDone(self._job.id, self._attempt, done)

    def _undecided(self, rule: StoppingRule) -> tuple[Workload, ...]:
        names = rule.undecided(self._job, self._runs)
        return tuple(workload for workload in self._job.workloads if workload.name in names)

    def _progress(self, step: Step, index: int, total: int) -> Progress:
        label = self._arms[step.arm].order.arm.label
        return Progress(self._job.id, self._attempt, f"{label}, process {index + 1} of {total}")

    def _start(self, step: Step, workloads: tuple[Workload, ...]) -> ProcessRun:
        prepared = self._arms[step.arm]
        order = replace(prepared.order, workloads=workloads, outputs=self._job.outputs if step.outputs else None)
        conditions = Conditions(
            niceness=os.getpriority(os.PRIO_PROCESS, 0),
            cpus=cores_for(order.threads) if self._job.design.quiet.pinned else (),
            threads=order.threads,
            load_before=os.getloadavg()[0],
        )
        refusal = prepared.engine.refusal(order)
        if refusal:
            failure = Failure(FailureKind.UNSUPPORTED, refusal, "E-unsupported")
            return ProcessRun(step, prepared.content_key, (), (), 0.0, None, 0, conditions, {}, failure)
        result = self._supervise(prepared.engine.command(order), order, conditions)
        report = prepared.engine.read(order, _exit_of(result))
        report = self._with_reason(prepared.engine, order, conditions, report, _exit_of(result))
        return self._process_run(step, prepared, report, result, conditions)

    def _with_reason(self, engine: Engine, order: Order, conditions: Conditions, report: Report, ended: Exit) -> Report:
        """The report with the reason of its failure, where the engine says it only when asked: it fails again."""
        command = engine.asking_why(order, ended) if report.failure else None
        if command is None or self._should_stop():
            return report
        told = engine.read(order, _exit_of(self._supervise(command, order, conditions))).failure
        return replace(report, failure=told) if told and told.kind in _REASONS else report

    def _supervise(self, command: Command, order: Order, conditions: Conditions) -> ProcessResult:
        spec = ProcessSpec(
            argv=command.argv,
            env=clean_environment({**dict(order.arm.environment), **command.environment}),
            stdin=command.stdin,
            timeout_s=self._job.design.timeout_s,
            cpus=conditions.cpus or None,
        )
        return self._supervisor.run(spec, should_stop=self._should_stop)

    def _process_run(
        self, step: Step, prepared: Prepared, report: Report, result: ProcessResult, conditions: Conditions
    ) -> ProcessRun:
        warmup = self._job.design.warmup
        return ProcessRun(
            step=step,
            content_key=prepared.content_key,
            samples=tuple(Samples(row.workload, row.tokens, row.samples_ns, warmup) for row in report.rows),
            outputs=report.outputs,
            wall_s=result.wall_ns * _SECONDS_PER_NS,
            load_s=report.load_s,
            max_rss_bytes=result.max_rss_bytes,
            conditions=conditions,
            engine={**report.engine, **({"opaque": prepared.opaque} if prepared.opaque else {})},
            failure=_ended_by_us(result) or report.failure,
        )


def _exit_of(result: ProcessResult) -> Exit:
    return Exit(result.exit_code, result.signal, result.timed_out, result.stdout, result.stderr)


def _ended_by_us(result: ProcessResult) -> Failure | None:
    """What the supervisor did to the engine explains its end better than what the engine left behind."""
    if result.stopped:
        return Failure(FailureKind.INTERRUPTED, "the engine was stopped before its end", "E-interrupted")
    if result.output_limited:
        message = f"the engine wrote more than allowed ({result.stdout_bytes} + {result.stderr_bytes} bytes)"
        return Failure(FailureKind.UNPARSABLE, message, "E-output-limit", result.stderr)
    return None
