"""Node facts, read from a machine that is made of files."""

from __future__ import annotations

import logging
import os
import platform
from typing import TYPE_CHECKING

import pytest

from harness.domain.errors import BadInput
from harness.domain.node import GIB, Gpu
from harness.execution import machine as files
from harness.execution.cgroups import cgroup_cpu_quota, cgroup_memory_bytes
from harness.execution.cores import default_threads, reserved_cores
from harness.execution.node import instruction_sets, parse_gpus, probe_gpus, probe_node, visible_gpus

if TYPE_CHECKING:
    from pathlib import Path

CPUINFO = """\
processor\t: 0
model name\t: AMD EPYC 9554 64-Core Processor
physical id\t: 0
core id\t\t: 0
flags\t\t: fpu pni avx2 avx512f avx512_vnni

processor\t: 1
physical id\t: 0
core id\t\t: 1

processor\t: 2
physical id\t: 0
core id\t\t: 0

processor\t: 3
physical id\t: 0
core id\t\t: 1
"""
MEMINFO = (
    "MemTotal:       16777216 kB\nMemAvailable:    8388608 kB\nSwapTotal:       1048576 kB\nHugePages_Total:   0\n"
)
SMI = "NVIDIA H200, 143771, 570.86.15, GPU-aaaa-1\nNVIDIA H200, 143771, 570.86.15, GPU-aabb-2\n"
GPUS = parse_gpus(SMI)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Root of a machine of four logical cores, without limits and GPU."""
    monkeypatch.setattr(files, "ROOT", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.delenv("MOE_CORES", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    put(tmp_path, "proc/cpuinfo", CPUINFO)
    put(tmp_path, "proc/meminfo", MEMINFO)
    put(tmp_path, "proc/self/cgroup", "0::/a/b\n")
    return tmp_path


def put(root: Path, path: str, text: str) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def put_smi(root: Path, script: str) -> None:
    put(root, "bin/nvidia-smi", f"#!/bin/sh\n{script}\n").chmod(0o755)


def test_facts_of_a_machine(machine: Path) -> None:
    for index in (0, 1):
        (machine / f"sys/devices/system/node/node{index}").mkdir(parents=True)
    for core in range(4):
        put(machine, f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor", "performance\n")
    put_smi(machine, f"printf '{SMI}'".replace("\n", "\\n"))

    facts = probe_node()

    assert facts.cpu_model == "AMD EPYC 9554 64-Core Processor"
    assert facts.isa == ("avx2", "avx512_vnni", "avx512f", "sse3")
    assert (facts.cores, facts.numa_nodes, facts.governor) == (4, 2, "performance")
    assert (facts.ram_bytes, facts.swap_bytes, facts.cgroup_memory_bytes) == (16 * GIB, GIB, None)
    assert facts.gpus == (
        Gpu("NVIDIA H200", 143771 * 1024**2, "570.86.15", "GPU-aaaa-1"),
        Gpu("NVIDIA H200", 143771 * 1024**2, "570.86.15", "GPU-aabb-2"),
    )
    assert facts.niceness == os.getpriority(os.PRIO_PROCESS, 0)
    assert facts.kernel


def test_a_gpu_has_the_architecture_that_code_is_compiled_for(machine: Path) -> None:
    """A build's variants are chosen by it."""
    put_smi(machine, "echo 'NVIDIA H200, 143771, 570.86.15, GPU-1, 9.0'")

    facts = probe_node()

    assert [(gpu.vendor, gpu.arch) for gpu in facts.gpus] == [("nvidia", "9.0")]
    assert (facts.os, facts.machine) == (platform.system().lower(), platform.machine())


def test_a_driver_that_knows_no_architecture_is_asked_without(machine: Path) -> None:
    """Old ones answer nothing at all where one word is unknown to them."""
    unknown = """echo 'Field "compute_cap" is not a valid field to query.'; exit 2"""
    put_smi(machine, f"case $* in *compute_cap*) {unknown};; esac\necho 'Tesla P40, 24576, 470.82, GPU-1'")

    assert probe_node().gpus == (Gpu("Tesla P40", 24576 * 1024**2, "470.82", "GPU-1"),)


def test_a_machine_that_tells_nothing_has_values_that_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ROOT", tmp_path / "nothing")
    monkeypatch.setenv("PATH", "")

    facts = probe_node()

    assert (facts.isa, facts.gpus, facts.governor, facts.numa_nodes, facts.swap_bytes) == ((), (), "unknown", 1, 0)
    assert facts.cpu_model
    assert facts.ram_bytes > 0


def test_this_machine_is_told_without_surprise() -> None:
    facts = probe_node()

    assert 1 <= facts.cores <= (os.cpu_count() or 0)
    assert facts.ram_bytes > 0
    assert platform.node() not in str(facts)


def test_arm_names_are_those_that_people_use() -> None:
    assert instruction_sets("fp asimd asimddp i8mm sve atomics") == ("dotprod", "i8mm", "neon", "sve")


def test_differing_governors_are_all_named(machine: Path) -> None:
    for core, governor in enumerate(["performance", "powersave", "performance", "performance"]):
        put(machine, f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor", governor)

    assert probe_node().governor == "mixed: performance, powersave"


@pytest.mark.parametrize(("declared", "cores"), [("", (0, 1, 2, 3)), ("1-2", (1, 2)), (" 3 , 0-1", (0, 1, 3))])
def test_declared_cores_narrow_the_mask(
    machine: Path, monkeypatch: pytest.MonkeyPatch, declared: str, cores: tuple[int, ...]
) -> None:
    monkeypatch.setenv("MOE_CORES", declared)

    assert reserved_cores() == cores
    assert default_threads() == len(cores) - 1


@pytest.mark.parametrize("declared", ["4", "0-7", "0-99999999999", "99999999999"])
def test_declared_cores_that_are_not_ours_are_refused(
    machine: Path, monkeypatch: pytest.MonkeyPatch, declared: str
) -> None:
    monkeypatch.setenv("MOE_CORES", declared)

    with pytest.raises(BadInput, match=r"E-cores: MOE_CORES"):
        reserved_cores()


def test_one_core_has_one_thread(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOE_CORES", "2")

    assert default_threads() == 1


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("200000 100000", 2), ("250000 100000", 2), ("50000 100000", 1), ("max 100000", 4), ("900000 100000", 4)],
)
def test_cpu_quota_limits_the_cores(machine: Path, quota: str, cores: int) -> None:
    put(machine, "sys/fs/cgroup/a/cpu.max", quota + "\n")

    assert len(reserved_cores()) == probe_node().cores == cores


def test_the_tightest_control_group_counts(machine: Path) -> None:
    put(machine, "sys/fs/cgroup/a/b/memory.max", "max\n")
    put(machine, "sys/fs/cgroup/a/memory.max", f"{4 * GIB}\n")
    put(machine, "sys/fs/cgroup/memory.max", f"{8 * GIB}\n")

    assert cgroup_memory_bytes() == probe_node().cgroup_memory_bytes == 4 * GIB
    assert probe_node().usable_ram_bytes == 4 * GIB


def test_control_groups_of_version_1(machine: Path) -> None:
    put(machine, "proc/self/cgroup", "5:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n0::/\n")
    put(machine, "sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", f"{2 * GIB}\n")
    put(machine, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    put(machine, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n")
    put(machine, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
    put(machine, "sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us", "-1\n")
    put(machine, "sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us", "100000\n")

    assert cgroup_memory_bytes() == 2 * GIB
    assert cgroup_cpu_quota() == 1.5


def test_no_limit_is_none(machine: Path) -> None:
    put(machine, "proc/self/cgroup", "4:memory:/\n0::/\n")
    put(machine, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")

    assert cgroup_memory_bytes() is None
    assert cgroup_cpu_quota() is None


@pytest.mark.parametrize(
    ("visible", "count"),
    [(None, 2), ("0,1", 2), ("1", 1), ("", 0), ("-1", 0), ("0,-1,1", 1), ("GPU-aab", 1), ("GPU-aa", 0), ("MIG-1", 0)],
)
def test_visible_devices_are_read_as_cuda_does(visible: str | None, count: int) -> None:
    assert len(visible_gpus(GPUS, visible)) == count


def test_visible_gpus_stay_in_pci_order() -> None:
    assert visible_gpus(GPUS, "1,0") == GPUS


def test_memory_that_is_not_told_is_zero() -> None:
    assert parse_gpus("NVIDIA GB10, [N/A], 580.1, GPU-x\n\nwarning\n") == (Gpu("NVIDIA GB10", 0, "580.1", "GPU-x"),)


@pytest.mark.parametrize("script", ["echo no driver; exit 9", "kill -9 $$"])
def test_a_driver_that_does_not_answer_is_a_warning(
    machine: Path, caplog: pytest.LogCaptureFixture, script: str
) -> None:
    put_smi(machine, script)

    with caplog.at_level(logging.WARNING):
        assert probe_gpus() == ()
    assert "nvidia-smi failed" in caplog.text


def test_a_driver_that_cannot_be_run_is_a_warning(machine: Path, caplog: pytest.LogCaptureFixture) -> None:
    put(machine, "bin/nvidia-smi", "\x7fnot for this machine").chmod(0o755)

    with caplog.at_level(logging.WARNING):
        assert probe_gpus() == ()
    assert "E-executable-missing" in caplog.text


def test_hidden_devices_need_no_driver(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_smi(machine, f"touch {machine}/asked")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    assert probe_gpus() == ()
    assert not (machine / "asked").exists()
