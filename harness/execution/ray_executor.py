"""The Ray executor: jobs as streaming tasks, on a cluster or on one embedded in the driver.

A task that no node can take would wait for ever, so a job is held against the facts of the live nodes, and Ray gets the
name of the one where it is wanted, if that can take it. Where somebody else has that one, or none is wanted, Ray gets
the names of all that can take it: whichever is free first has it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import ray
from ray.exceptions import (
    GetTimeoutError,
    NodeDiedError,
    OutOfMemoryError,
    RayError,
    TaskCancelledError,
    TaskUnschedulableError,
    WorkerCrashedError,
)

from harness.domain.errors import EXIT_UNDECIDED, Infrastructure
from harness.domain.failure import Failure, FailureKind
from harness.domain.job import Job
from harness.domain.node import GIB, NodeFacts
from harness.domain.placing import ByClass, Placing, Seat
from harness.domain.stopping import StoppingRule
from harness.execution.at_hand import Models
from harness.execution.events import Finished, JobEvent, Started
from harness.execution.node import probe_node
from harness.execution.offers import QUIET_WORKERS, RAM_GIB, SLOT, is_mixed, labels_of, resources_of
from harness.execution.order_places import Place
from harness.execution.ray_holdings import ask_holdings
from harness.execution.ray_inventory import NODE_ID, FleetNode, Inventory
from harness.execution.ray_join import embed, first_line, join
from harness.execution.run_job import run_job
from harness.execution.tasks import models_by_key

_GET_S = 10.0
_CANCEL_GRACE_S = 5.0
_HOLD_S = 30.0
"""How long a job waits for the node where it is wanted: by then a worker has started even on a busy host."""
_LEAVE_S = 20.0
_OBJECT_STORE_BYTES = 100 * 1024**2
_OTHER_VERSION = "its worker calls the job by another id: install the same version of moe-harness on all nodes"
_VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(slots=True)
class _Running:
    """One submitted try.

    Attributes:
        id: Of the job: working it out takes a while, and every event asks for it.
        job: The job.
        attempt: Number of the try.
        avoid: Nodes that it must not go to.
        at: Where it is wanted; empty: anywhere.
        until: When it is wanted anywhere.
        nodes: Those that it may go to, as of when it was given to Ray.
        stream: Its events; ``None`` while it waits for a node that can take it.
        node_id: Where it runs; empty before it started.
        cancelled: It was told to end.
        moving: It was taken back from Ray, to be given to it anew for more nodes.
        looked: Version of the inventory for which that was last asked.
    """

    id: str
    job: Job
    attempt: int
    avoid: frozenset[str]
    at: str = ""
    until: float = 0.0
    nodes: frozenset[str] = frozenset()
    stream: Any = None
    node_id: str = ""
    cancelled: bool = False
    moving: bool = False
    looked: int = -1


@dataclass(frozen=True, slots=True)
class _Fleet:
    """The nodes that can be used, as of one look.

    Attributes:
        version: Of the inventory.
        places: The nodes.
        alike: Those that have the same to offer: of each kind one is asked.
        takers: By job, ids of those that can take it, once that was asked.
    """

    version: int
    places: tuple[Place, ...]
    alike: Mapping[object, Sequence[tuple[FleetNode, NodeFacts]]]
    takers: dict[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Gpus:
    """The GPUs that are a job's on one node.

    Attributes:
        uuids: Of each.
        reserved: Its class asks for GPUs: it sees no others.
        chosen: The host has unlike ones, so it gets just these; of like ones it gets those that Ray gave it.
    """

    uuids: tuple[str, ...]
    reserved: bool
    chosen: bool

    @property
    def visible(self) -> str | None:
        """What the job's probe and engines are told; ``None``: as Ray and the node's start left it."""
        return ",".join(self.uuids) if self.reserved and self.chosen else None

    @property
    def hidden(self) -> bool:
        """Whether engines see none although the node has some."""
        return not self.reserved and not self.uuids


@ray.remote(max_retries=0, num_cpus=0, max_calls=0)
def _job_task(packed: bytes) -> Iterator[bytes]:
    """Run a job on a worker; each event comes with the id of the node that it happened on.

    What goes to and fro is packed here: Ray takes several times as long for it.

    Args:
        packed: The job, the number of the try, the stopping rule, and its GPUs on each node.
    """
    job, attempt, rule, gpus = pickle.loads(packed)  # noqa: S301 - of the driver, whose tasks are code anyway
    os.environ.pop("OMP_NUM_THREADS", None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Inherited from a driver that was started in the background; but Ray cancels a task by this signal.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    node_id = ray.get_runtime_context().get_node_id()
    own = gpus[node_id]
    environment = {_VISIBLE: ""} if own.hidden else {}
    with _seeing(own.visible):
        for event in run_job(job, attempt, rule, environment=environment):
            yield pickle.dumps((node_id, event))


@contextlib.contextmanager
def _seeing(visible: str | None) -> Iterator[None]:
    """Have probe and engines see some GPUs. Afterwards as before: Ray gives the worker to the next job."""
    before = os.environ.get(_VISIBLE)
    if visible is not None:
        os.environ[_VISIBLE] = visible
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_VISIBLE, None)
        else:
            os.environ[_VISIBLE] = before


class RayExecutor:
    """Runs jobs on Ray; see the ``Executor`` protocol.

    Args:
        rule: The stopping rule handed to every job.
        address: Of a running cluster; empty embeds one in this process.
        placing: Says which nodes can take a job.
    """

    name = "ray"

    def __init__(self, rule: StoppingRule, address: str = "", placing: Placing | None = None) -> None:
        self._rule = rule
        self._address = address
        self._placing = placing or ByClass()
        self._running: dict[str, _Running] = {}
        self._ready: list[JobEvent] = []
        self._owns_ray = False
        self._fleet: _Fleet | None = None
        self._holdings: Mapping[str, Models] | None = None
        self._inventory = Inventory(address or "embedded")

    @property
    def address(self) -> str:
        """The GCS address that other drivers can join once started."""
        return str(ray.get_runtime_context().gcs_address)

    def start(self) -> None:
        """Join the cluster, or embed one, and learn what its nodes are.

        Raises:
            BadInput: The address, the token or the versions are wrong.
            Infrastructure: If Ray does not start, or no node of the cluster can be used.
        """
        if not ray.is_initialized():
            self._owns_ray = True
            if self._address:
                join(self._address)
            else:
                self._embed()
        self._inventory.start()
        if not self._usable():
            raise self._nobody()

    def _embed(self) -> None:
        for name, value in QUIET_WORKERS.items():
            os.environ.setdefault(name, value)
        node = probe_node()
        embed(
            resources=resources_of(node),
            labels=labels_of(node),
            num_cpus=1,
            num_gpus=len(node.gpus),
            object_store_memory=_OBJECT_STORE_BYTES,
        )
        self._inventory.tell(node)

    def _nobody(self) -> Infrastructure:
        troubles = "; ".join(f"{node.host}: {node.trouble}" for node in self._inventory.nodes() if node.trouble)
        return Infrastructure(
            "E-no-slots",
            f"no live node can be used: {troubles}" if troubles else f"no live node offers the resource '{SLOT}'",
            hint=f"start nodes with `moe-harness fleet join`, or Ray's own way with --resources='{{\"{SLOT}\": 1}}'",
            where=self._address,
        )

    def nodes(self) -> Sequence[NodeFacts]:
        """Facts of the live nodes, each with its host's name."""
        return tuple(facts for _, facts in self._usable())

    def places(self) -> Sequence[Place]:
        """The nodes that can be used. Main memory keeps the files of models that were read last."""
        return self._known().places

    def takers(self, job: Job) -> frozenset[str]:
        """The live nodes that have what the job needs."""
        known = self._known()
        name = job.id
        if name not in known.takers:
            alike = known.alike.values()
            taking = [nodes for nodes in alike if not self._seat(job, nodes[0][0], nodes[0][1]).refused]
            known.takers[name] = frozenset(node.id for nodes in taking for node, _ in nodes)
        return known.takers[name]

    def expect(self, jobs: Sequence[Job]) -> None:
        """Ask the nodes once what they hold, where there is something to choose: several jobs, and nodes for them."""
        nodes = [node.id for node, _ in self._usable()]
        if self._holdings is None and len(jobs) > 1 and len(nodes) > 1:
            self._holdings = ask_holdings(nodes, models_by_key(jobs))
            self._fleet = None

    def submit(self, job: Job, attempt: int, avoid: Collection[str] = (), at: str = "") -> None:
        """Submit one try, unless no live node could ever take it: then it has finished already."""
        running = _Running(job.id, job, attempt, frozenset(avoid), at, time.monotonic() + _HOLD_S)
        if self._give(running):
            self._running[running.id] = running
        else:
            failure = Failure(FailureKind.INPUT_MISSING, self._refusal(job, avoid), "E-no-node")
            self._ready.append(Finished(job.id, attempt, failure))

    def _known(self) -> _Fleet:
        """The nodes as of the last look, and what was found out about them."""
        version = self._inventory.version
        if self._fleet is None or self._fleet.version != version:
            self._fleet = _fleet_of(version, self._usable(), self._holdings or {})
        return self._fleet

    def _usable(self, avoid: Collection[str] = ()) -> Sequence[tuple[FleetNode, NodeFacts]]:
        return [(node, node.facts) for node in self._inventory.nodes(avoid) if node.facts is not None]

    def _seats(self, job: Job, avoid: Collection[str]) -> Sequence[tuple[FleetNode, NodeFacts, Seat]]:
        return [(node, facts, self._seat(job, node, facts)) for node, facts in self._usable(avoid)]

    def _seat(self, job: Job, node: FleetNode, facts: NodeFacts) -> Seat:
        seat, needed = self._placing.seat(job, facts), job.node_class.min_gpus
        given = int(node.resources.get("GPU", 0))
        if not seat.refused and given < needed:
            told = f"needs {needed} GPUs, and the node was started with {given} for Ray (--num-gpus)"
            return Seat(told, distance=(1, 1 - given / needed))
        return seat

    def _give(self, running: _Running) -> bool:
        """Give a try to Ray, for whichever of the nodes that can take it is free first; false where none can."""
        job = running.job
        seats = {node.id: (node, facts, seat) for node, facts, seat in self._open_seats(running)}
        if not seats:
            return False
        gpus = {name: _gpus_of(job, facts, seat) for name, (_, facts, seat) in seats.items()}
        task = _job_task.options(
            resources=demands([(node, seat) for node, _, seat in seats.values()]),
            num_gpus=job.node_class.min_gpus,
            label_selector={NODE_ID: f"in({','.join(sorted(seats))})"},
        )
        running.nodes, running.moving = frozenset(seats), False
        running.stream = task.remote(pickle.dumps((job, running.attempt, self._rule, gpus)))
        return True

    def _open_seats(self, running: _Running) -> Sequence[tuple[FleetNode, NodeFacts, Seat]]:
        """The node where a try is wanted, while it is and is there; else all that can take it."""
        seats = [found for found in self._seats(running.job, running.avoid) if not found[2].refused]
        wanted = [found for found in seats if found[0].id == running.at]
        return wanted or seats

    def _refusal(self, job: Job, avoid: Collection[str]) -> str:
        """Why no node can take a job: what the nearest one lacks."""
        seats = self._seats(job, avoid)
        if not seats:
            return "no node can take this job: none is left"
        _, facts, seat = min(seats, key=lambda found: found[2].distance)
        return f"no node can take this job, of {len(seats)} the nearest one is {facts.described}: {seat.refused}"

    def poll(self, timeout_s: float) -> Sequence[JobEvent]:
        """Wait for the streams; a lost worker or node ends its jobs.

        Raises:
            Infrastructure: ``E-cluster-lost``: the head answers no more.
        """
        self._inventory.require()
        self._require_own_node()
        ready, self._ready = self._ready, []
        if ready:
            return ready
        self._offer_anew()
        streams = {running.stream: running for running in self._running.values() if running.stream is not None}
        if not streams:
            time.sleep(timeout_s)
            return ()
        done, _ = ray.wait(list(streams), num_returns=1, timeout=timeout_s, fetch_local=False)
        events = [event for stream in done for event in self._next(streams[stream])]
        return [*events, *self._lost_nodes()]

    def _require_own_node(self) -> None:
        """Do nothing while the node of an embedded Ray lives: no other one can join it."""
        if not self._address and not self._inventory.nodes():
            raise Infrastructure(
                "E-cluster-lost",
                "the node of the embedded Ray is gone",
                hint="go on with --moe-resume: what was measured is in the journal",
                where="embedded",
            )

    def _offer_anew(self) -> None:
        """Let tries that have not started have the nodes that joined since, or all where the wanted one is taken."""
        version, now = self._inventory.version, time.monotonic()
        for running in self._running.values():
            if running.node_id or running.cancelled or running.moving:
                continue
            if running.at and now > running.until:
                running.at, running.looked = "", -1
            if running.looked == version:
                continue
            running.looked = version
            if running.stream is None:
                self._give(running)
            elif any(node.id not in running.nodes for node, _, _ in self._open_seats(running)):
                running.moving = True
                _cancel(running.stream)

    def cancel(self, job: str) -> None:
        """Cancel a job's task; the supervision below it ends the engine."""
        running = self._running.get(job)
        if running is None:
            return
        running.cancelled = True
        if running.stream is None:
            self._ready.extend(self._end(running, FailureKind.INTERRUPTED, "cancelled", "E-cancelled"))
        else:
            _cancel(running.stream)

    def close(self) -> None:
        """Cancel all tasks; leave the cluster, or shut an embedded one down."""
        if not self._inventory.is_lost:
            for job in list(self._running):
                self.cancel(job)
            self._await_cancelled()
        self._running.clear()
        if self._owns_ray and ray.is_initialized():
            self._owns_ray = False
            self._leave()
        self._inventory.close()

    def _leave(self) -> None:
        """Shut Ray down in this process. Without a head that would hang, or crash the process as it ends."""
        if not self._inventory.is_lost:
            leaving = threading.Thread(target=ray.shutdown, name="moe-ray-shutdown", daemon=True)
            leaving.start()
            leaving.join(_LEAVE_S)
            if not leaving.is_alive():
                return
        atexit.unregister(ray.shutdown)
        atexit.register(_end_without_ray)

    def _await_cancelled(self) -> None:
        """Let cancelled tasks kill their engines themselves before the cluster is torn down around them."""
        deadline = time.monotonic() + _CANCEL_GRACE_S
        with contextlib.suppress(Infrastructure):
            while self._running and time.monotonic() < deadline:
                self.poll(0.1)

    def _next(self, running: _Running) -> Iterator[JobEvent]:
        try:
            packed = ray.get(next(running.stream), timeout=_GET_S)
        except StopIteration:
            why = "the task ended without an end event"
            if running.moving or running.cancelled:  # a stream that is cancelled before it began ends so
                yield from self._not_run(running, why)
            else:
                yield from self._end(running, FailureKind.NODE_LOST, why, "E-worker-lost")
        except (TaskCancelledError, TaskUnschedulableError) as error:
            yield from self._not_run(running, first_line(error))
        except OutOfMemoryError as error:
            yield from self._end(running, FailureKind.OUT_OF_MEMORY, first_line(error), "E-ray-out-of-memory")
        except (WorkerCrashedError, NodeDiedError, GetTimeoutError) as error:
            yield from self._end(running, FailureKind.NODE_LOST, first_line(error), "E-worker-lost")
        except RayError as error:
            kind = FailureKind.INTERRUPTED if running.cancelled else FailureKind.NODE_LOST
            yield from self._end(running, kind, first_line(error), "E-ray")
        else:
            told = _unpacked(packed)
            if told is None or told[1].job != running.id:
                self.cancel(running.id)
                yield from self._end(running, FailureKind.HARNESS, _OTHER_VERSION, "E-worker-version")
                return
            running.node_id, event = told
            if isinstance(event, Finished):
                del self._running[running.id]
            yield replace(event, place=running.node_id) if isinstance(event, Started) else event

    def _not_run(self, running: _Running, told: str) -> Iterator[JobEvent]:
        """A task that Ray gave back: told to end, taken back for other nodes, or without a living one to go to."""
        if running.cancelled:
            yield from self._end(running, FailureKind.INTERRUPTED, "cancelled", "E-cancelled")
        elif running.node_id:
            yield from self._end(running, FailureKind.NODE_LOST, told, "E-worker-lost")
        else:
            running.stream, running.moving, running.looked = None, False, -1

    def _end(self, running: _Running, kind: FailureKind, message: str, slug: str) -> Iterator[JobEvent]:
        del self._running[running.id]
        yield Finished(running.id, running.attempt, Failure(kind, message, slug))

    def _lost_nodes(self) -> list[JobEvent]:
        """End jobs whose node is no longer alive; asking their streams could block for minutes."""
        on_nodes = [running for running in self._running.values() if running.node_id]
        if not on_nodes:
            return []
        lost = [running for running in on_nodes if not self._inventory.is_alive(running.node_id)]
        return [
            event
            for running in lost
            for event in self._end(running, FailureKind.NODE_LOST, "its node is gone", "E-node-lost")
        ]


def _unpacked(packed: bytes) -> tuple[str, JobEvent] | None:
    """An event, and the node that it happened on; ``None`` for one of a version that has other events."""
    with contextlib.suppress(pickle.PickleError, AttributeError, ImportError, TypeError):
        told: tuple[str, JobEvent] = pickle.loads(packed)  # noqa: S301 - of the cluster, whose tasks are code anyway
        return told
    return None


def _fleet_of(version: int, usable: Sequence[tuple[FleetNode, NodeFacts]], holdings: Mapping[str, Models]) -> _Fleet:
    places = tuple(
        Place(
            node.id,
            max(1, int(node.resources[SLOT])),
            cache_bytes=facts.usable_ram_bytes,
            holds=holdings.get(node.id, ()),
        )
        for node, facts in usable
    )
    alike: dict[object, list[tuple[FleetNode, NodeFacts]]] = {}
    for node, facts in usable:
        gpus = tuple(replace(gpu, uuid="") for gpu in facts.gpus)
        alike.setdefault((replace(facts, name="", gpus=gpus), node.resources.get("GPU", 0)), []).append((node, facts))
    return _Fleet(version, places, alike)


def _end_without_ray() -> None:
    """End the process before Ray's threads and destructors look for a head that is gone: they would crash it.

    A run that lost its cluster is undecided, whatever else it found: that is the exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(EXIT_UNDECIDED)


def demands(seats: Sequence[tuple[FleetNode, Seat]]) -> dict[str, float]:
    """What a job takes of the node that gets it: a whole slot, and its share of the main memory where that is offered.

    Whole GiB, and no more than the least of these nodes offers: whether it fits has been found out already.
    """
    offered = min(node.resources.get(RAM_GIB, 0.0) for node, _ in seats)
    needed = -(-max(seat.ram_bytes for _, seat in seats) // GIB)
    memory = min(offered, float(needed))
    return {SLOT: 1.0, **({RAM_GIB: memory} if memory else {})}


def _gpus_of(job: Job, facts: NodeFacts, seat: Seat) -> _Gpus:
    uuids = tuple(facts.gpus[number].uuid for number in seat.gpus)
    return _Gpus(uuids, reserved=job.node_class.min_gpus > 0, chosen=is_mixed(facts.gpus))


def _cancel(stream: Any) -> None:
    with contextlib.suppress(RayError, ValueError):
        ray.cancel(stream, force=False)
