"""The choice of cores, on machines made of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.execution import machine as files
from harness.execution.cores import Core, cores_for, default_threads, in_order, reserved_cores


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Root of a machine without limits."""
    monkeypatch.setattr(files, "ROOT", tmp_path)
    monkeypatch.delenv("MOE_CORES", raising=False)
    return tmp_path


def add_core(root: Path, cpu: int, node: int, package: int, core: int) -> None:
    folder = root / f"sys/devices/system/cpu/cpu{cpu}"
    (folder / f"node{node}").mkdir(parents=True)
    (folder / "topology").mkdir()
    (folder / "topology/physical_package_id").write_text(f"{package}\n")
    (folder / "topology/core_id").write_text(f"{core}\n")


def two_sockets(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sockets of four cores with two hardware threads each, numbered as Linux does: 0-3, 4-7, then the siblings."""
    for cpu in range(16):
        add_core(root, cpu, node=cpu // 4 % 2, package=cpu // 4 % 2, core=cpu % 4)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))


def test_an_engine_stays_on_one_node_without_siblings(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two_sockets(root, monkeypatch)

    assert default_threads() == 3
    assert default_threads(spare_core=False) == 4
    assert cores_for(3) == (5, 6, 7)


def test_more_threads_than_cores_take_siblings_then_the_other_node(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two_sockets(root, monkeypatch)

    assert cores_for(4) == (4, 5, 6, 7)
    assert cores_for(6) == (4, 5, 6, 7, 14, 15)
    assert cores_for(9) == (3, 4, 5, 6, 7, 12, 13, 14, 15)
    assert cores_for(99) == tuple(range(16))


def test_the_node_of_the_gpus_comes_first(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two_sockets(root, monkeypatch)
    device = root / "sys/bus/pci/drivers/nvidia/0000:1b:00.0"
    device.mkdir(parents=True)
    (device / "numa_node").write_text("0\n")

    assert cores_for(3) == (1, 2, 3)


@pytest.mark.parametrize("words", [("-1",), ("0", "1")])
def test_gpus_of_unknown_or_several_nodes_decide_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    two_sockets(root, monkeypatch)
    for index, word in enumerate(words):
        device = root / f"sys/bus/pci/drivers/nvidia/0000:{index}b:00.0"
        device.mkdir(parents=True)
        (device / "numa_node").write_text(word)

    assert cores_for(3) == (5, 6, 7)


def test_a_quota_takes_whole_cores_before_siblings(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for cpu in range(8):
        add_core(root, cpu, node=0, package=0, core=cpu // 2)  # siblings are neighbours, as on many virtual machines
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text("0::/\n")
    (root / "sys/fs/cgroup").mkdir(parents=True)
    (root / "sys/fs/cgroup/cpu.max").write_text("200000 100000\n")

    assert reserved_cores() == (4, 6)
    assert default_threads() == 1


def test_a_kernel_that_tells_nothing_has_cores_of_one_thread(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})

    assert default_threads() == 3
    assert cores_for(3) == (1, 2, 3)


CORES = st.lists(
    st.builds(Core, st.integers(0, 63), st.integers(0, 3), st.tuples(st.integers(0, 1), st.integers(0, 7))),
    min_size=1,
    max_size=32,
    unique_by=lambda core: core.cpu,
)


@given(CORES, st.none() | st.integers(0, 3))
def test_every_core_is_in_the_order_once(cores: list[Core], near: int | None) -> None:
    assert sorted(in_order(cores, near)) == sorted(core.cpu for core in cores)


@given(CORES)
def test_no_sibling_is_used_while_a_core_of_its_node_is_idle(cores: list[Core]) -> None:
    by_cpu = {core.cpu: core for core in cores}
    order = [by_cpu[cpu] for cpu in in_order(cores)]
    for index, core in enumerate(order):
        before = order[:index]
        if any(other.physical == core.physical and other.node == core.node for other in before):
            on_node = [other for other in order if other.node == core.node]
            assert {other.physical for other in before if other.node == core.node} == {o.physical for o in on_node}
