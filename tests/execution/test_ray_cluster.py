"""A real cluster of several raylets: jobs go where they fit, and survive the loss of a node."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from job_support import job_of, processes_below, standin_arm, wheel_arm

from harness.domain.arm import Arm
from harness.domain.build import BuildSource
from harness.domain.errors import BadInput, Infrastructure
from harness.domain.failure import FailureKind
from harness.domain.job import Job
from harness.domain.model import Model
from harness.domain.node import NodeClass
from harness.domain.stopping import RunWholeSchedule
from harness.execution.dispatch import Dispatcher
from harness.execution.events import Ended, Finished, JobEvent, ProcessDone, Started
from harness.execution.executors import executor_factory
from harness.planning.seats import SeatsByBytes

BIG = NodeClass("big", min_ram_gib=2)


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    """A head without a slot, and two nodes with one each, of which one has the memory for the class ``big``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")
        patch.setenv("RAY_worker_oom_score_adjustment", "0")
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        from ray.cluster_utils import Cluster  # noqa: PLC0415 - reads the variables above when it is imported

        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        made.add_node(num_cpus=1, resources={"bench": 1, "ram_gib": 1})
        made.big = made.add_node(num_cpus=1, resources={"bench": 1, "ram_gib": 2})
        yield made
        made.shutdown()


@pytest.fixture
def dispatcher(cluster: object) -> Iterator[Dispatcher]:
    """A driver that has joined the cluster."""
    address = cluster.address  # type: ignore[attr-defined]
    made = Dispatcher(executor_factory("ray", RunWholeSchedule(), address, SeatsByBytes()))
    yield made
    made.close()


def finished(events: list[JobEvent]) -> list[Finished]:
    return [event for event in events if isinstance(event, Finished)]


def test_two_nodes_take_two_jobs_and_each_ends_once(dispatcher: Dispatcher, tiny_model: Path) -> None:
    """Real wheels on both nodes; one host, so the host lock keeps their engines apart."""
    jobs = [job_of(wheel_arm(tiny_model, fa=fa)) for fa in (0, 1)]
    dispatcher.add(jobs)
    events = [event for event in dispatcher.events() if event is not None]
    assert sorted(event.job for event in events if isinstance(event, Ended)) == sorted(job.id for job in jobs)
    assert [event.failure for event in finished(events)] == [None, None]
    assert all(event.run.failure is None for event in events if isinstance(event, ProcessDone))


def test_a_lost_node_costs_a_try_and_not_the_job(
    cluster: object, dispatcher: Dispatcher, tiny_model: Path, tmp_path: Path
) -> None:
    """The node dies under a running engine: the job is tried again on the next one that fits, and nothing is left."""
    folder = tmp_path / "engine"
    job = replace(job_of(standin_arm(folder, tiny_model, "hang")), node_class=BIG)
    dispatcher.add([job])
    events: list[JobEvent] = []
    lost = False
    for event in dispatcher.events():
        if event is not None:
            events.append(event)
        if not lost and (folder / "hanging.pid").exists():
            (folder / "standin.json").write_text(json.dumps({"do": "rows"}))
            dying = cluster.big  # type: ignore[attr-defined]
            cluster.big = cluster.add_node(num_cpus=1, resources={"bench": 1, "ram_gib": 2})  # type: ignore[attr-defined]
            cluster.remove_node(dying, allow_graceful=False)  # type: ignore[attr-defined]
            lost = True
    assert [(event.attempt, event.failure and event.failure.kind) for event in finished(events)] == [
        (1, FailureKind.NODE_LOST),
        (2, None),
    ]
    deadline = time.monotonic() + 10
    while processes_below(folder):
        assert time.monotonic() < deadline, "an engine outlived its node"
        time.sleep(0.1)


def test_workers_of_another_version_are_named(
    dispatcher: Dispatcher, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that computes another id for the job than the driver: its events would never be taken for the job's."""
    monkeypatch.setattr(Job, "id", property(lambda _: "job-of-the-drivers-version"))
    dispatcher.add([job_of(standin_arm(tmp_path / "x", tiny_model, "rows"))])
    (end,) = finished([event for event in dispatcher.events() if event is not None])
    assert end.failure is not None
    assert (end.failure.slug, end.failure.may_be_retried) == ("E-worker-version", False)


def test_a_job_that_is_wanted_where_somebody_else_is_goes_elsewhere_after_a_while(
    cluster: object, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another driver has the node: the job gets whichever is free. Until then each goes where it is wanted."""
    from harness.execution import ray_executor  # noqa: PLC0415 - imports Ray, whose variables the cluster sets

    monkeypatch.setattr(ray_executor, "_HOLD_S", 100.0)  # a worker may take long to start
    executor = executor_factory("ray", RunWholeSchedule(), cluster.address)()  # type: ignore[attr-defined]
    first, second = (job_of(standin_arm(tmp_path / name, tiny_model, "hang")) for name in ("first", "second"))
    wanted = cluster.big.node_id  # type: ignore[attr-defined]
    started: dict[str, str] = {}
    deadline = time.monotonic() + 120
    with contextlib.closing(executor):
        executor.start()
        assert {place.id for place in executor.places()} == executor.takers(first) > {wanted}
        executor.submit(first, 1, at=wanted)
        while second.id not in started and time.monotonic() < deadline:
            for event in executor.poll(0.2):
                if isinstance(event, Started):
                    started[event.job] = event.place
                    if event.job == first.id:
                        monkeypatch.setattr(ray_executor, "_HOLD_S", 3.0)
                        executor.submit(second, 1, at=wanted)
    assert started[first.id] == wanted
    assert started[second.id] not in ("", wanted)


def test_what_no_live_node_can_take_is_said_at_once(dispatcher: Dispatcher, tiny_model: Path, tmp_path: Path) -> None:
    """With the nearest offer; Ray alone would wait for ever."""
    job = replace(job_of(standin_arm(tmp_path / "x", tiny_model, "rows")), node_class=NodeClass("huge", min_ram_gib=3))
    dispatcher.add([job])
    (end,) = finished([event for event in dispatcher.events() if event is not None])
    assert end.failure is not None
    assert end.failure.slug == "E-no-node"
    assert re.match(r"no node can take this job, of \d the nearest one is ", end.failure.message)
    assert "not of class huge: needs 3 GiB of RAM, node has 2.0" in end.failure.message


SMI = """#!/bin/sh
case "$*" in
*query-gpu*) echo 'Fake Small, 8192, 570.1, GPU-small, 8.9'; echo 'Fake Large, 81920, 570.1, GPU-large, 9.0' ;;
esac
"""
"""A fake: no machine of these tests has two unlike GPUs."""
TOLD = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")


def seen_by(folder: Path) -> tuple[str | None, str]:
    told = json.loads((folder / "environment.json").read_text())
    return told["CUDA_VISIBLE_DEVICES"], told["CUDA_DEVICE_ORDER"]


def test_on_a_host_of_unlike_gpus_a_job_sees_the_one_that_its_class_wants(
    cluster: object, dispatcher: Dispatcher, tiny_model: Path, tmp_path: Path
) -> None:
    """Not whichever Ray would have given it; one that reserves none and has no code for GPUs sees none."""
    smi = tmp_path / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text(SMI)
    smi.chmod(0o755)
    path = f"{smi.parent}:{os.environ['PATH']}"
    cluster.add_node(  # type: ignore[attr-defined]
        num_cpus=1,
        num_gpus=2,
        resources={"bench": 1, "ram_gib": 4},
        env_vars={"PATH": path, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"},
    )
    wanted = {
        "small": NodeClass("small", min_gpus=1, gpu_name="Small"),
        "large": NodeClass("large", min_gpus=1, min_vram_gib=40),
        "most": NodeClass("most", min_gpus=1),
        "both": NodeClass("both", min_gpus=2),
        "host": NodeClass("host", min_ram_gib=4),
    }
    jobs = [
        replace(
            job_of(_on_cpu(standin_arm(tmp_path / name, tiny_model, "rows", tell=TOLD), name)), node_class=node_class
        )
        for name, node_class in wanted.items()
    ]
    dispatcher.add(jobs)
    events = [event for event in dispatcher.events() if event is not None]
    assert [end.failure for end in finished(events)] == [None] * len(wanted)
    visible = {name: seen_by(tmp_path / name) for name in wanted}
    order = "PCI_BUS_ID"
    assert visible == {
        "small": ("GPU-small", order),
        "large": ("GPU-large", order),
        "most": ("GPU-large", order),
        "both": ("GPU-small,GPU-large", order),
        "host": ("", order),
    }


def _on_cpu(arm: Arm, name: str) -> Arm:
    """The arm of the class without GPUs says that its build has no code for them."""
    return replace(arm, build=replace(arm.build, source=BuildSource(backends=("CPU",)))) if name == "host" else arm


def test_a_node_that_joins_late_takes_what_waits_for_another(
    cluster: object, dispatcher: Dispatcher, tiny_model: Path, tmp_path: Path
) -> None:
    """The second job was given to Ray for the one node that could take it, which the first holds."""
    roomy = NodeClass("roomy", min_ram_gib=5)
    first = cluster.add_node(num_cpus=1, resources={"bench": 1, "ram_gib": 5})  # type: ignore[attr-defined]
    holder, waiter = tmp_path / "holder", tmp_path / "waiter"
    held = replace(job_of(standin_arm(holder, tiny_model, "hang")), node_class=roomy)
    waiting = replace(job_of(standin_arm(waiter, tiny_model, "rows")), node_class=roomy)
    dispatcher.add([held, waiting])
    places: dict[str, str] = {}
    late = None
    for event in dispatcher.events():
        if isinstance(event, Started):
            places[event.job] = event.place
        if late is None and (holder / "hanging.pid").exists():
            late = cluster.add_node(num_cpus=1, resources={"bench": 1, "ram_gib": 5})  # type: ignore[attr-defined]
        if waiting.id in places:
            break
    assert late is not None
    assert (places[held.id], places[waiting.id]) == (first.node_id, late.node_id)


def test_an_address_where_nobody_listens_is_one_clear_error() -> None:
    """Said at once: Ray alone goes on trying for minutes."""
    with pytest.raises(Infrastructure, match=r"E-ray-unreachable: --ray-address: nothing answers at 127.0.0.1:1"):
        executor_factory("ray", RunWholeSchedule(), "127.0.0.1:1")().start()


@pytest.mark.parametrize("address", ["nonsense", "host:", "host:99999", ":6379", "ray://"])
def test_what_is_no_address_is_bad_input(address: str) -> None:
    """The form is said."""
    with pytest.raises(BadInput, match="HOST:PORT"):
        executor_factory("ray", RunWholeSchedule(), address)().start()


@pytest.fixture(scope="module")
def holders(cluster: object, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Two nodes with caches of their own, of which each has another model: digest to node."""
    found = {}
    for digit in "ab":
        cache, digest = tmp_path_factory.mktemp(digit), digit * 64
        place = cache / "fetched" / digest[:16]
        place.mkdir(parents=True)
        (place / "model.gguf").write_bytes(b"no model, but it lies there")
        (place.with_suffix(".json")).write_text(
            json.dumps({"files": ["model.gguf"], "sizes": [27], "sha256": [digest]})
        )
        node = cluster.add_node(  # type: ignore[attr-defined]
            num_cpus=1, resources={"bench": 1, "ram_gib": 6}, env_vars={"MOE_CACHE_DIR": str(cache)}
        )
        found[digest] = node.node_id
    return found


@pytest.mark.parametrize("turned", [False, True])
def test_the_first_jobs_go_where_their_models_lie(
    holders: dict[str, str], dispatcher: Dispatcher, tiny_model: Path, turned: bool
) -> None:
    """Whichever comes first, and although no job of this driver was ever there."""
    jobs = {
        digest: replace(
            job_of(replace(wheel_arm(tiny_model), model=Model("held", sha256=(digest,)))),
            node_class=NodeClass("holders", min_ram_gib=6),
        )
        for digest in sorted(holders, reverse=turned)
    }
    dispatcher.add(jobs.values())
    places = {event.job: event.place for event in dispatcher.events() if isinstance(event, Started)}
    assert places == {job.id: holders[digest] for digest, job in jobs.items()}
