"""What doctor says: of hosts that are given, and of machines made of files."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness.domain.node import GIB, Gpu, NodeFacts
from harness.execution import machine as files
from harness.execution.bubblewrap import Tool
from harness.execution.cores import Core
from harness.execution.sandbox import Found
from harness.fleet.checks import Finding, Level, findings
from harness.fleet.host_state import GpuNow, GpuUser, HostState, host_state

H200 = Gpu("NVIDIA H200", 141 * GIB, "570.1", "GPU-1")
QUIET = HostState(
    node=NodeFacts("AMD EPYC 9554", 4, ("avx2",), 64 * GIB, (), "6.8", 0, "performance", None, 1, 0),
    cores=tuple(Core(cpu, 0, (0, cpu)) for cpu in range(4)),
    turbo=False,
    smt=False,
    huge_pages="madvise",
    available_bytes=62 * GIB,
    swappiness=60,
    numa_balancing=0,
    oom_score=0,
    load=0.1,
    busy=0.01,
    throttled=0,
    warmest_c=45.0,
)


def warnings(host: HostState) -> dict[str, Finding]:
    return {finding.check: finding for finding in findings(host) if finding.level is Level.WARNING}


def test_a_host_that_is_ready_has_no_warning_and_every_check_has_a_word() -> None:
    found = findings(QUIET)
    assert warnings(QUIET) == {}
    assert {finding.level for finding in found} == {Level.OK}
    assert len({finding.check for finding in found}) == len(found) == 14


NODE = QUIET.node
GPU = GpuNow("0", "NVIDIA H200", 45, persistent=True, held_down=0)
WITH_GPU = replace(QUIET, node=replace(NODE, gpus=(H200,)), gpus=(GPU,))
SPOILED = [
    ("niceness", replace(QUIET, node=replace(NODE, niceness=15)), "niceness 15", "RAY_worker_niceness=0"),
    ("niceness", replace(QUIET, oom_score=1000), "out-of-memory score 1000", "score of 0"),
    ("other load", replace(QUIET, busy=0.5, busiest=(("cc1plus (7)", 1.9),)), "cc1plus (7) 1.9 cores", "MOE_CORES"),
    ("governor", replace(QUIET, node=replace(NODE, governor="powersave")), "powersave", "cpupower"),
    ("governor", replace(QUIET, node=replace(NODE, governor="mixed: performance, powersave")), "mixed", "cpupower"),
    ("turbo", replace(QUIET, turbo=True), "on", "no_turbo"),
    ("SMT", replace(QUIET, smt=True), "only one thread of each core is ours", "both threads"),
    ("CPU quota", replace(QUIET, quota=2.0), "2 cores of 4", "cpuset"),
    ("CPU quota", replace(QUIET, quota=4.5), "4.5 cores", "whole number"),
    ("memory limit", replace(QUIET, node=replace(NODE, cgroup_memory_bytes=8 * GIB)), "8.0 GiB of 64.0", "raise"),
    ("free memory", replace(QUIET, available_bytes=20 * GIB), "20.0 GiB of 64.0", "end what holds"),
    ("swap", replace(QUIET, swap_used_bytes=GIB, node=replace(NODE, swap_bytes=2 * GIB)), "1.00 GiB", "swapoff"),
    ("swap", replace(QUIET, node=replace(NODE, swap_bytes=2 * GIB)), "2.0 GiB of swap, swappiness 60", "swappiness=1"),
    ("huge pages", replace(QUIET, huge_pages="always"), "always", "madvise"),
    ("NUMA", replace(QUIET, node=replace(NODE, numa_nodes=2), numa_balancing=1), "2 nodes", "numa_balancing=0"),
    ("temperature", replace(QUIET, warmest_c=97.0), "97 °C", "cool"),
    ("temperature", replace(QUIET, throttled=3), "throttled 3 times", "fans"),
    ("OpenMP", replace(QUIET, openmp=False), "libgomp is missing", "libgomp1"),
    ("GPU processes", replace(WITH_GPU, gpu_users=(GpuUser("7", "Xorg", "300"),)), "Xorg (process 7, 300 MiB)", "end"),
    ("mixed GPUs", replace(WITH_GPU, node=replace(NODE, gpus=(H200, Gpu("L4", 24 * GIB, "", "")))), "1 x L4", "--gpus"),
    ("GPU 0", replace(WITH_GPU, gpus=(replace(GPU, held_down=0x40),)), "reasons 0x40", "cooling"),
    ("GPU 0", replace(WITH_GPU, gpus=(replace(GPU, temperature_c=88),)), "88 °C", "cool"),
    ("GPU 0", replace(WITH_GPU, gpus=(replace(GPU, persistent=False),)), "persistence mode is off", "nvidia-smi -pm 1"),
]


@pytest.mark.parametrize(("check", "host", "said", "todo"), SPOILED, ids=[f"{row[0]}-{row[2]}" for row in SPOILED])
def test_what_spoils_measurements_is_one_warning_with_why_and_what_to_do(
    check: str, host: HostState, said: str, todo: str
) -> None:
    found = warnings(host)
    assert list(found) == [check]
    assert said in found[check].found
    assert found[check].why
    assert todo in found[check].todo


def test_what_the_kernel_does_not_tell_is_no_warning_and_no_approval() -> None:
    """A virtual machine without clocks and sensors."""
    node = replace(NODE, governor="unknown")
    silent = HostState(node=node, virtual=True, cores=QUIET.cores)
    told = {finding.check: finding for finding in findings(silent)}
    assert warnings(silent) == {}
    unknown = {name for name, finding in told.items() if finding.level is Level.UNKNOWN}
    assert unknown == {"governor", "turbo", "huge pages", "temperature", "other load", "free memory"}
    assert "the host of a virtual machine decides" in told["governor"].found


def test_whether_untrusted_builds_can_run_is_told_and_never_a_warning() -> None:
    """Where they can't, with the reason."""
    told = {finding.check: finding.found for finding in findings(QUIET)}["sandbox"]
    assert told == "none, builds that are declared untrusted are refused: nobody looked"
    boxed = replace(QUIET, sandbox=Found(Tool("/usr/bin/bwrap", "bubblewrap 0.8.0")))
    assert {finding.check: finding.found for finding in findings(boxed)}["sandbox"] == "bubblewrap 0.8.0"
    assert warnings(boxed) == {}


def test_reasons_that_hold_no_clock_down_are_fine() -> None:
    """Idle, and clocks that a person has set."""
    assert warnings(replace(WITH_GPU, gpus=(replace(GPU, held_down=0x1 | 0x2),))) == {}


def put(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def laptop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A laptop as its files tell it, written by hand: two cores of two threads, on battery, a desktop on its GPU."""
    monkeypatch.setattr(files, "ROOT", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.delenv("MOE_CORES", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    cpu = "sys/devices/system/cpu"
    for number in range(4):
        put(tmp_path, f"{cpu}/cpu{number}/topology/physical_package_id", "0\n")
        put(tmp_path, f"{cpu}/cpu{number}/topology/core_id", f"{number % 2}\n")
        put(tmp_path, f"{cpu}/cpu{number}/cpufreq/scaling_governor", "powersave\n")
        put(tmp_path, f"{cpu}/cpu{number}/thermal_throttle/core_throttle_count", "2\n")
    put(tmp_path, f"{cpu}/intel_pstate/no_turbo", "0\n")
    put(tmp_path, f"{cpu}/smt/active", "1\n")
    put(tmp_path, "sys/class/thermal/thermal_zone0/temp", "52000\n")
    put(tmp_path, "sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n")
    put(tmp_path, "proc/sys/vm/swappiness", "60\n")
    put(tmp_path, "proc/self/oom_score_adj", "0\n")
    put(tmp_path, "proc/loadavg", "1.25 1.0 0.9 2/700 1234\n")
    put(tmp_path, "proc/cpuinfo", "processor : 0\nmodel name : Some Core i5\nflags : avx2 fma\n\n")
    rows = "MemTotal: 16000000 kB\nMemAvailable: 6000000 kB\nSwapTotal: 2000000 kB\nSwapFree: 1500000 kB\n"
    put(tmp_path, "proc/meminfo", rows)
    smi = (
        "#!/bin/sh\ncase \"$1\" in\n*compute-apps*) echo '812, /usr/lib/xorg/Xorg, 310';;\n"
        "*persistence*) echo '0, RTX 4060, 61, Disabled, 0x0000000000000004';;\n"
        "*) echo 'RTX 4060, 8188, 570.1, GPU-1, 8.9';;\nesac\n"
    )
    put(tmp_path, "bin/nvidia-smi", smi)
    (tmp_path / "bin" / "nvidia-smi").chmod(0o755)
    return tmp_path


def test_a_laptop_on_battery_is_told_all_that_is_wrong_with_it(laptop: Path) -> None:
    host = host_state(look_s=0)
    assert (host.turbo, host.smt, host.huge_pages, host.throttled, host.warmest_c) == (True, True, "always", 8, 52.0)
    assert (host.swap_used_bytes, host.load, host.busy, host.virtual) == (500000 * 1024, 1.25, None, False)
    assert host.gpus == (GpuNow("0", "RTX 4060", 61, persistent=False, held_down=4),)
    assert host.gpu_users == (GpuUser("812", "/usr/lib/xorg/Xorg", "310"),)
    assert [check for check in warnings(host) if check not in {"OpenMP", "niceness"}] == [
        *("free memory", "swap", "governor", "turbo", "huge pages", "temperature", "GPU processes", "GPU 0")
    ]


def test_a_driver_that_does_not_answer_leaves_the_rest(laptop: Path, caplog: pytest.LogCaptureFixture) -> None:
    put(laptop, "bin/nvidia-smi", "#!/bin/sh\nexit 9\n")
    with caplog.at_level(logging.CRITICAL):
        host = host_state(look_s=0)
    assert (host.gpus, host.gpu_users, host.huge_pages) == ((), (), "always")


def test_this_machine_is_looked_at_without_surprise() -> None:
    """Whoever else works here is seen: the look takes a moment."""
    host = host_state(look_s=0.1)
    assert host.busy is None or 0 <= host.busy <= 1
    assert all(finding.found for finding in findings(host))
