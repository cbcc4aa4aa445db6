"""One engine process of a job: its model made ready, started, watched, and made a measurement of."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from harness.domain.failure import Failure, FailureKind
from harness.domain.job import Job
from harness.domain.measurement import Conditions, ProcessRun, Samples, Step
from harness.domain.quiet import PageCache
from harness.domain.workload import Timed
from harness.engines.engine import Command, Engine, Exit, Order, Report
from harness.execution import page_cache
from harness.execution.bubblewrap import Sandbox
from harness.execution.cores import cores_for
from harness.execution.load_plan import with_plan
from harness.execution.model_facts import model_facts
from harness.execution.preparing import Prepared
from harness.execution.process import MAX_STDERR_BYTES, ProcessResult, ProcessSpec, Supervisor, clean_environment
from harness.execution.sandbox import require_sandbox, sandbox_for
from harness.execution.telemetry.gpus import GpuSource
from harness.execution.telemetry.watch import Place, Watch

_SECONDS_PER_NS = 1e-9
_REASONS = frozenset({FailureKind.OUT_OF_MEMORY, FailureKind.REFUSED, FailureKind.INPUT_MISSING})
"""What a load that failed can turn out to be. Anything else is another failure, not the reason of this one."""
_WARM = 0.999
_MAX_LOG_BYTES = 16 * 1024**2
"""Of a log that tells of loading; one of a large model at debug level has some hundred KiB for each workload."""
_GIB = 1024**3


class EngineRunner:
    """Runs the engine processes of one job, one after another.

    Args:
        job: The job.
        arms: Its arms, prepared.
        supervisor: Starts the processes.
        gpus: The GPUs to be watched.
        should_stop: Asked several times a second; true ends the running engine.
        vram: Bytes of memory of each GPU.
        environment: Variables that the engines get, unless their arm has its own.
    """

    def __init__(
        self,
        job: Job,
        arms: Sequence[Prepared],
        supervisor: Supervisor,
        gpus: GpuSource,
        should_stop: Callable[[], bool],
        *,
        vram: Sequence[int] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._job = job
        self._arms = arms
        self._supervisor = supervisor
        self._gpus = gpus
        self._should_stop = should_stop
        self._vram = vram
        self._environment = dict(environment or {})
        self._boxed_by = require_sandbox(job.id).version if job.sandboxed else ""
        self._models = [page_cache.files_of(arm.order.model) for arm in arms]
        self._cpus = [cores_for(arm.order.threads) if job.design.quiet.pinned else () for arm in arms]
        self._read_once: set[Path] = set()
        self._model_facts = cache(model_facts)

    def label(self, arm: int) -> str:
        """An arm's label."""
        return self._arms[arm].order.arm.label

    def ready(self, arm: int) -> Iterator[str]:
        """Bring an arm's model into the state of the page cache that the design asks for.

        Yields:
            What it is about to do, where that can take a while.
        """
        files = self._models[arm]
        with suppress(OSError):  # an engine that misses its model says so itself
            if self._job.design.quiet.page_cache is PageCache.COLD:
                page_cache.drop(files)
            elif self._job.design.quiet.page_cache is PageCache.WARM and self._should_read(files):
                self._read_once.update(files)
                yield f"reading {files[0].name} into the page cache, {page_cache.size_of(files) / _GIB:.1f} GiB"
                page_cache.bring_in(files, self._cpus[arm], self._should_stop)

    def run(self, step: Step, workloads: tuple[Timed, ...]) -> ProcessRun:
        """Run one process to its end.

        Args:
            step: Its place in the schedule.
            workloads: What it measures.
        """
        arm = self._arms[step.arm]
        if step.apart and arm.apart is None:
            return _refused(step, arm, arm.order, arm.silent)
        prepared = arm.apart if step.apart and arm.apart else arm
        timed = () if step.apart else workloads
        outputs = self._job.outputs if step.outputs else None
        order = replace(prepared.order, workloads=timed, outputs=outputs, logs=not (step.scored or step.apart))
        refusal = prepared.engine.refusal(order)
        if refusal:
            return _refused(step, prepared, order, refusal)
        cpus = self._cpus[step.arm]
        watch = Watch(Place(cpus, order.threads, self._models[step.arm]), self._gpus)
        result = self._supervise(prepared.engine, prepared.engine.command(order), order, cpus, watch.started)
        conditions = replace(watch.conditions(result), sandbox=self._boxed_by)
        report = prepared.engine.read(order, _exit_of(result))
        report = self._with_reason(prepared.engine, order, cpus, report, _exit_of(result))
        report = replace(report, load=with_plan(report.load, order, self._vram))
        return self._process_run(step, prepared, report, result, conditions)

    def _should_read(self, files: tuple[Path, ...]) -> bool:
        """Whether parts are missing; where the kernel does not tell, once is enough."""
        share = page_cache.resident_share(files)
        missing = not self._read_once.issuperset(files) if share is None else share < _WARM
        every_file = tuple({path for model in self._models for path in model})
        return missing and page_cache.fits(every_file)

    def _with_reason(self, engine: Engine, order: Order, cpus: tuple[int, ...], report: Report, ended: Exit) -> Report:
        """The report with the reason of its failure, where the engine says it only when asked: it fails again."""
        command = engine.asking_why(order, ended) if report.failure else None
        if command is None or self._should_stop():
            return report
        told = engine.read(order, _exit_of(self._supervise(engine, command, order, cpus))).failure
        return replace(report, failure=told) if told and told.kind in _REASONS else report

    def _supervise(
        self,
        engine: Engine,
        command: Command,
        order: Order,
        cpus: tuple[int, ...],
        on_started: Callable[[int], None] | None = None,
    ) -> ProcessResult:
        environment = clean_environment({**self._environment, **dict(order.arm.environment), **command.environment})
        spec = ProcessSpec(
            argv=command.argv,
            env=environment,
            stdin=command.stdin,
            timeout_s=self._job.design.timeout_s,
            cpus=cpus or None,
            max_stderr_bytes=_MAX_LOG_BYTES if order.logs else MAX_STDERR_BYTES,
            sandbox=self._sandbox(engine, command, order, environment),
        )
        return self._supervisor.run(spec, on_started=on_started, should_stop=self._should_stop)

    def _sandbox(
        self, engine: Engine, command: Command, order: Order, environment: Mapping[str, str]
    ) -> Sandbox | None:
        """What one command of an engine runs in: it sees the engine's files and the model's."""
        if not self._job.sandboxed:
            return None
        files, model = engine.locate(), page_cache.files_of(order.model)
        return sandbox_for(order.arm.build, command.argv, environment, files=files, model=model)

    def _process_run(
        self, step: Step, prepared: Prepared, report: Report, result: ProcessResult, conditions: Conditions
    ) -> ProcessRun:
        warmup = self._job.design.warmup
        return ProcessRun(
            step=step,
            content_key=prepared.content_key,
            samples=tuple(
                Samples(row.workload, row.tokens, row.samples_ns, warmup if row.warms_up else 0) for row in report.rows
            ),
            outputs=report.outputs,
            wall_s=result.wall_ns * _SECONDS_PER_NS,
            load_s=report.load_s,
            max_rss_bytes=result.max_rss_bytes,
            conditions=conditions,
            engine={
                **report.engine,
                **({"opaque": prepared.opaque} if prepared.opaque else {}),
                **(self._model_facts(prepared.order.model) if report.outputs else {}),
            },
            failure=_ended_by_us(result) or report.failure,
            load=report.load,
        )


def _refused(step: Step, prepared: Prepared, order: Order, why: str) -> ProcessRun:
    failure = Failure(FailureKind.UNSUPPORTED, why, "E-unsupported")
    return ProcessRun(step, prepared.content_key, (), (), 0.0, None, 0, _never_ran(order), {}, failure)


def _never_ran(order: Order) -> Conditions:
    return Conditions(os.getpriority(os.PRIO_PROCESS, 0), (), order.threads, os.getloadavg()[0])


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
