"""Run one job on this machine: prepare, start the engine processes of its schedule, report each. Never raises.

What goes wrong becomes a ``Failure`` in an event. Only being told to stop (a cancelled task, a closed generator,
Ctrl-C) passes through, after the running engine has been killed.
"""

from __future__ import annotations

import errno
import platform
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, closing

from harness.domain.errors import BadInput, HarnessError, Infrastructure
from harness.domain.failure import Failure, FailureKind
from harness.domain.halting import Stopped
from harness.domain.job import Job
from harness.domain.node import NodeFacts
from harness.domain.stopping import JobEnd, StoppingRule
from harness.execution.aside import told_while
from harness.execution.engine_process import EngineRunner
from harness.execution.events import Finished, JobEvent, Progress, Started
from harness.execution.hostlock import describe_holder, measurement_lock
from harness.execution.node import probe_node
from harness.execution.preparing import Prepared, prepare
from harness.execution.process import Supervisor
from harness.execution.schedule import Schedule
from harness.execution.telemetry.vendors import open_gpus
from harness.models.usage import cache_held

_LOCK_WAIT_S = 3600.0
_LOCK_SLICE_S = 1.0
_WAITING = "waiting for the host"
_MACHINE_ERRNOS = frozenset(
    {
        *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.ESTALE),
        *(errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE),
    }
)
"""Disk full or gone, memory, processes or descriptors used up."""


def run_job(
    job: Job,
    attempt: int,
    rule: StoppingRule,
    should_stop: Callable[[], bool] = lambda: False,
    environment: Mapping[str, str] | None = None,
) -> Iterator[JobEvent]:
    """Run a job and yield its events.

    Args:
        job: The job.
        attempt: Number of this try, from 1.
        rule: Ends the schedule early once everything is decided.
        should_stop: Asked several times a second; true ends the job.
        environment: Variables that its engines get, unless their arm has its own.

    Yields:
        ``Started`` first, ``Finished`` last.
    """
    node = probe_node()
    yield Started(job.id, attempt, node, platform.node())
    failure: Failure | None = None
    end: JobEnd | None = None
    try:
        _check_place(job, node)
        yield Progress(job.id, attempt, _WAITING)
        with ExitStack() as stack:
            for doing in _host_taken(stack, job, should_stop):
                yield Progress(job.id, attempt, doing, preparing=True, waiting=True)
            supervisor = stack.enter_context(Supervisor())
            yield Progress(job.id, attempt, "preparing models", preparing=True)
            stack.enter_context(cache_held())
            arms = yield from _prepared(job, attempt, should_stop)
            gpus = stack.enter_context(closing(open_gpus(node.gpus)))
            vram = tuple(gpu.vram_bytes for gpu in node.gpus)
            runner = EngineRunner(job, arms, supervisor, gpus, should_stop, vram=vram, environment=environment)
            for arm in range(len(arms)):
                yield from (Progress(job.id, attempt, doing, preparing=True) for doing in runner.ready(arm))
            schedule = Schedule(job, attempt, runner, node, should_stop)
            yield from schedule.run(rule)
            end = schedule.end
    except HarnessError as error:
        failure = Failure(_kind_of(error), str(error), error.slug)
    except Stopped:
        pass  # told below, as of a job that was stopped while it measured
    except (OSError, MemoryError) as error:
        failure = _of_the_machine(error) or _fault(error)
    except Exception as error:
        if type(error).__name__ == "TaskCancelledError":  # Ray's; named here so that only one module imports Ray
            raise
        failure = _fault(error)
    if failure is None and should_stop():
        failure = Failure(FailureKind.INTERRUPTED, "the job was stopped before its end", "E-interrupted")
    yield Finished(job.id, attempt, failure, end)


def _prepared(
    job: Job, attempt: int, should_stop: Callable[[], bool]
) -> Generator[JobEvent, None, tuple[Prepared, ...]]:
    """Prepare the arms, telling meanwhile what is fetched and made."""
    preparing = told_while(lambda report, stop: prepare(job, stop, report), should_stop)
    with closing(preparing):
        while True:
            try:
                yield Progress(job.id, attempt, next(preparing), preparing=True)
            except StopIteration as ended:
                arms: tuple[Prepared, ...] = ended.value
                return arms


def _kind_of(error: HarnessError) -> FailureKind:
    """A supervisor that is killed from outside tells of the end of its node before anybody else does."""
    if isinstance(error, BadInput):
        return FailureKind.INPUT_MISSING
    return FailureKind.NODE_LOST if error.slug == "E-supervisor-lost" else FailureKind.INFRASTRUCTURE


def _of_the_machine(error: OSError | MemoryError) -> Failure | None:
    """What this machine lacks; ``None`` where the operating system refuses what we should not have asked."""
    if isinstance(error, MemoryError):
        return Failure(FailureKind.INFRASTRUCTURE, "the machine has no memory left for the harness", "E-node-memory")
    if error.errno not in _MACHINE_ERRNOS:
        return None
    where = f" at {error.filename}" if error.filename else ""
    return Failure(FailureKind.INFRASTRUCTURE, f"{error.strerror}{where}", "E-node-exhausted", traceback.format_exc())


def _fault(error: Exception) -> Failure:
    """A fault of ours must not lose what other jobs measure."""
    return Failure(FailureKind.HARNESS, f"unexpected {error!r}", "E-harness-fault", traceback.format_exc())


def _host_taken(stack: ExitStack, job: Job, should_stop: Callable[[], bool]) -> Iterator[str]:
    """Wait for the lock of this host, in slices: a job that waits must still be stoppable.

    Tells who holds it, and in the end how long that took.
    """
    said = holder = ""
    began = time.monotonic()
    give_up = began + _LOCK_WAIT_S
    while True:
        try:
            stack.enter_context(measurement_lock(_LOCK_SLICE_S, job.id))
        except Infrastructure as error:
            if error.slug != "E-host-busy" or should_stop() or time.monotonic() > give_up:
                raise
        else:
            if said:
                yield f"waited {time.monotonic() - began:.0f} s for the host, on which measured {holder}"
            return
        holder = describe_holder()
        doing = f"{_WAITING}, on which measures {holder}"
        if doing != said:
            said = doing
            yield doing


def _check_place(job: Job, node: NodeFacts) -> None:
    unmet = job.node_class.unmet(node)
    if unmet:
        raise BadInput(
            "E-wrong-node",
            f"this node is not of class '{job.node_class.name}': {unmet}",
            hint="run it on a node of the class, or change [node_classes] of the matrix",
            where=job.id,
        )
