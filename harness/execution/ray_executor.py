"""The Ray executor: jobs as streaming tasks, on a cluster or on one embedded in the driver. The only importer of Ray.

Set by hand because Ray's defaults spoil measurements: niceness +15, an out-of-memory score of 1000, silent retries.
A task that no node can take would wait for ever: every job is checked against the live nodes before it is submitted.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ray
from ray.exceptions import (
    GetTimeoutError,
    NodeDiedError,
    OutOfMemoryError,
    RayError,
    TaskCancelledError,
    WorkerCrashedError,
)

from harness.domain.errors import BadInput, Infrastructure
from harness.domain.failure import Failure, FailureKind
from harness.domain.job import Job
from harness.domain.node import GIB, NodeClass, NodeFacts
from harness.domain.stopping import StoppingRule
from harness.execution.cluster_watch import ClusterWatch
from harness.execution.events import Finished, JobEvent, Started
from harness.execution.node import probe_node
from harness.execution.run_job import run_job

SLOT = "bench"
"""Custom resource: one per node (or per GPU of a host that is split); a measurement takes a whole one."""

RAM_GIB = "ram_gib"
VRAM_GIB = "vram_gib"

_QUIET_START = {
    "RAY_worker_niceness": "0",
    "RAY_worker_oom_score_adjustment": "0",
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}
_NODE_ID = "ray.io/node-id"
_CONNECT_S = 5.0
_MAX_PORT = 65535
_GET_S = 10.0
_CANCEL_GRACE_S = 5.0
_LEAVE_S = 20.0
_OTHER_VERSION = "its worker calls the job by another id: install the same version of moe-harness on all nodes"


@dataclass(slots=True)
class _Running:
    """One submitted try and the stream of its events."""

    job: Job
    attempt: int
    stream: Any
    node_id: str = ""
    cancelled: bool = False


def embedded_resources(node: NodeFacts) -> dict[str, float]:
    """What a node offers: one slot, and whole GiB of main and GPU memory."""
    resources = {SLOT: 1.0, RAM_GIB: float(node.usable_ram_bytes // GIB)}
    if node.gpus:
        resources[VRAM_GIB] = float(min(gpu.vram_bytes for gpu in node.gpus) // GIB)
    return resources


def demands(node_class: NodeClass) -> dict[str, float]:
    """What a job of a node class takes: a whole slot, and the memory that the class demands."""
    wanted = {SLOT: 1.0}
    if node_class.min_ram_gib:
        wanted[RAM_GIB] = float(int(node_class.min_ram_gib))
    if node_class.min_gpus and node_class.min_vram_gib:
        wanted[VRAM_GIB] = float(int(node_class.min_vram_gib))
    return wanted


def unmet_demand(wanted: Mapping[str, float], offers: Sequence[Mapping[str, float]]) -> str:
    """Say what no live node offers.

    Args:
        wanted: Demands of a job.
        offers: Total resources of each live node.

    Returns:
        A phrase that names the demand and the most that any node has; empty where a node can take the job.
    """
    if any(all(offer.get(name, 0.0) >= amount for name, amount in wanted.items()) for offer in offers):
        return ""
    for name, amount in wanted.items():
        most = max((offer.get(name, 0.0) for offer in offers), default=0.0)
        if most < amount:
            return f"needs {name} >= {amount:g}, the most that any of {len(offers)} live nodes has is {most:g}"
    return f"no single one of {len(offers)} live nodes has all of {dict(wanted)}"


@ray.remote(max_retries=0, num_cpus=0, max_calls=0)
def _job_task(job: Job, attempt: int, rule: StoppingRule) -> Iterator[tuple[str, JobEvent]]:
    """Run a job on a worker; each event comes with the id of the node that it happened on."""
    os.environ.pop("OMP_NUM_THREADS", None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Inherited from a driver that was started in the background; but Ray cancels a task by this signal.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    node_id = ray.get_runtime_context().get_node_id()
    for event in run_job(job, attempt, rule):
        yield node_id, event


class RayExecutor:
    """Runs jobs on Ray; see the ``Executor`` protocol.

    Args:
        rule: The stopping rule handed to every job.
        address: Of a running cluster; empty embeds one in this process.
    """

    name = "ray"

    def __init__(self, rule: StoppingRule, address: str = "") -> None:
        self._rule = rule
        self._address = address
        self._running: dict[str, _Running] = {}
        self._ready: list[JobEvent] = []
        self._owns_ray = False
        self._watch = ClusterWatch(ray.nodes, address or "embedded")

    @property
    def address(self) -> str:
        """The GCS address that other drivers can join once started."""
        return str(ray.get_runtime_context().gcs_address)

    def start(self) -> None:
        """Join the cluster, or embed one.

        Raises:
            Infrastructure: If Ray does not start, or no node of the cluster offers a slot.
        """
        if not ray.is_initialized():
            self._begin()
        self._watch.start()
        if not any(node.get(SLOT) for node in self._offers()):
            raise Infrastructure(
                "E-no-slots",
                f"no live node offers the resource '{SLOT}'",
                hint=f"start nodes with --resources='{{\"{SLOT}\": 1}}'",
                where=self._address,
            )

    def _begin(self) -> None:
        if self._address:
            _require_listener(self._address)
        self._owns_ray = True
        try:
            self._init()
        except (RayError, RuntimeError, ConnectionError, ValueError, OSError, TimeoutError) as error:
            raise Infrastructure(
                "E-ray-start",
                f"Ray did not start: {str(error).splitlines()[0] if str(error) else error!r}",
                hint="try --moe-executor=local, or check --ray-address, the token, and that versions agree",
                where=self._address or "embedded",
            ) from error

    def _init(self) -> None:
        with _own_sigterm():
            self._join_or_embed()

    def _join_or_embed(self) -> None:
        if self._address:
            ray.init(address=self._address, log_to_driver=False, logging_level=logging.ERROR)
            return
        for name, value in _QUIET_START.items():
            os.environ.setdefault(name, value)
        node = probe_node()
        ray.init(
            address="local",
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            resources=embedded_resources(node),
            num_cpus=1,
            object_store_memory=100 * 1024**2,
        )

    @property
    def slots(self) -> int:
        """Whole slots over all live nodes."""
        return max(1, int(sum(offer.get(SLOT, 0.0) for offer in self._offers())))

    def nodes(self) -> Sequence[NodeFacts]:
        """Facts of this node where the cluster is embedded; other nodes report theirs when a job starts there."""
        return (probe_node(),) if not self._address else ()

    def can_take(self, job: Job, avoid: Collection[str] = ()) -> bool:
        """Whether a live node that is none of those to avoid offers what the job's class demands."""
        return not unmet_demand(demands(job.node_class), self._offers(avoid))

    def submit(self, job: Job, attempt: int, avoid: Collection[str] = ()) -> None:
        """Submit one try, unless no live node could ever take it: then it has finished already."""
        wanted = demands(job.node_class)
        unmet = unmet_demand(wanted, self._offers(avoid))
        if unmet:
            failure = Failure(FailureKind.INPUT_MISSING, f"no node can take this job: {unmet}", "E-no-node")
            self._ready.append(Finished(job.id, attempt, failure))
            return
        elsewhere = {"label_selector": {_NODE_ID: f"!in({','.join(sorted(avoid))})"}} if avoid else {}
        task = _job_task.options(resources=wanted, num_gpus=job.node_class.min_gpus, **elsewhere)
        self._running[job.id] = _Running(job, attempt, task.remote(job, attempt, self._rule))

    def poll(self, timeout_s: float) -> Sequence[JobEvent]:
        """Wait for the streams; a lost worker or node ends its jobs.

        Raises:
            Infrastructure: ``E-cluster-lost``: the head answers no more.
        """
        self._watch.require()
        ready, self._ready = self._ready, []
        if ready or not self._running:
            if not ready:
                time.sleep(timeout_s)
            return ready
        streams = {running.stream: running for running in self._running.values()}
        done, _ = ray.wait(list(streams), num_returns=1, timeout=timeout_s, fetch_local=False)
        events = [event for stream in done for event in self._next(streams[stream])]
        return [*events, *self._lost_nodes()]

    def cancel(self, job: str) -> None:
        """Cancel a job's task; the supervision below it ends the engine."""
        running = self._running.get(job)
        if running is not None:
            running.cancelled = True
            with contextlib.suppress(RayError, ValueError):
                ray.cancel(running.stream, force=False)

    def close(self) -> None:
        """Cancel all tasks; leave the cluster, or shut an embedded one down."""
        if not self._watch.is_lost:
            for job in list(self._running):
                self.cancel(job)
            self._await_cancelled()
        self._running.clear()
        if self._owns_ray and ray.is_initialized():
            self._owns_ray = False
            self._leave()
        self._watch.close()

    def _leave(self) -> None:
        """Shut Ray down in this process; without a head it would hang, and end the process in the midst of it."""
        if not self._watch.is_lost:
            leaving = threading.Thread(target=ray.shutdown, name="moe-ray-shutdown", daemon=True)
            leaving.start()
            leaving.join(_LEAVE_S)
            if not leaving.is_alive():
                return
        atexit.unregister(ray.shutdown)

    def _await_cancelled(self) -> None:
        """Let cancelled tasks kill their engines themselves before the cluster is torn down around them."""
        deadline = time.monotonic() + _CANCEL_GRACE_S
        with contextlib.suppress(Infrastructure):
            while self._running and time.monotonic() < deadline:
                self.poll(0.1)

    def _next(self, running: _Running) -> Iterator[JobEvent]:
        try:
            running.node_id, event = ray.get(next(running.stream), timeout=_GET_S)
        except StopIteration:
            yield from self._end(running, FailureKind.NODE_LOST, "the task ended without an end event", "E-worker-lost")
        except TaskCancelledError:
            yield from self._end(running, FailureKind.INTERRUPTED, "cancelled", "E-cancelled")
        except OutOfMemoryError as error:
            yield from self._end(running, FailureKind.OUT_OF_MEMORY, _first_line(error), "E-ray-out-of-memory")
        except (WorkerCrashedError, NodeDiedError, GetTimeoutError) as error:
            yield from self._end(running, FailureKind.NODE_LOST, _first_line(error), "E-worker-lost")
        except RayError as error:
            kind = FailureKind.INTERRUPTED if running.cancelled else FailureKind.NODE_LOST
            yield from self._end(running, kind, _first_line(error), "E-ray")
        else:
            if event.job != running.job.id:
                self.cancel(running.job.id)
                yield from self._end(running, FailureKind.HARNESS, _OTHER_VERSION, "E-worker-version")
                return
            if isinstance(event, Finished):
                del self._running[running.job.id]
            yield replace(event, place=running.node_id) if isinstance(event, Started) else event

    def _end(self, running: _Running, kind: FailureKind, message: str, slug: str) -> Iterator[JobEvent]:
        del self._running[running.job.id]
        yield Finished(running.job.id, running.attempt, Failure(kind, message, slug))

    def _lost_nodes(self) -> list[JobEvent]:
        """End jobs whose node is no longer alive; asking their streams could block for minutes."""
        on_nodes = [running for running in self._running.values() if running.node_id]
        if not on_nodes:
            return []
        alive = {str(node["NodeID"]) for node in self._watch.alive()}
        lost = [running for running in on_nodes if running.node_id not in alive]
        return [
            event
            for running in lost
            for event in self._end(running, FailureKind.NODE_LOST, "its node is gone", "E-node-lost")
        ]

    def _offers(self, avoid: Collection[str] = ()) -> list[dict[str, float]]:
        return [dict(node["Resources"]) for node in self._watch.alive() if node["NodeID"] not in avoid]


def _require_listener(address: str) -> None:
    """Refuse an address where nobody listens: Ray would go on trying.

    Raises:
        BadInput: If it is not ``HOST:PORT``.
        Infrastructure: If nothing answers there.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _MAX_PORT:
        raise BadInput(
            "E-ray-address",
            f"'{address}' is not an address of the form HOST:PORT",
            hint="the head node says it when it starts, e.g. 10.0.0.7:6379",
            where="--ray-address",
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
    except OSError as error:
        raise Infrastructure(
            "E-ray-unreachable",
            f"nothing answers at {address}: {error.strerror or error}",
            hint="check that the cluster is up and that no firewall is between; --moe-executor=local needs none",
            where="--ray-address",
        ) from error


@contextlib.contextmanager
def _own_sigterm() -> Iterator[None]:
    """Keep the driver's answer to TERM: Ray puts in its own, which ends the interpreter in the midst of a run."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else repr(error)
