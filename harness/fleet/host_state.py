"""What this host is like now, as far as measurements care: read once, judged elsewhere."""

from __future__ import annotations

import csv
import ctypes.util
import os
import re
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psutil

from harness.domain.errors import HarnessError
from harness.domain.node import NodeFacts
from harness.execution import machine
from harness.execution.cgroups import cgroup_cpu_quota
from harness.execution.cores import Core, known_core, reserved_cores
from harness.execution.machine import read, read_number
from harness.execution.node import probe_node
from harness.execution.process import ProcessSpec, clean_environment, run_once
from harness.execution.sandbox import Found, sandbox_here

_LOOK_S = 0.5
_TIMEOUT_S = 60.0
_GPU_FIELDS = ("index", "name", "temperature.gpu", "persistence_mode", "clocks_throttle_reasons.active")
_PROCESS_FIELDS = ("pid", "process_name", "used_memory")
_BUSIEST = 3
_CPU = "sys/devices/system/cpu"
_NOBODY_LOOKED = Found(None, "nobody looked")


@dataclass(frozen=True, slots=True)
class GpuNow:
    """A GPU now; ``None``: the driver does not tell.

    Attributes:
        index: Its number.
        name: Its name.
        temperature_c: How warm it is.
        persistent: Whether the driver keeps it ready.
        held_down: Bits of the reasons why its clocks are held down.
    """

    index: str
    name: str
    temperature_c: int | None
    persistent: bool | None
    held_down: int | None


@dataclass(frozen=True, slots=True)
class GpuUser:
    """A process that computes on a GPU.

    Attributes:
        pid: Its number, in a container that of the host.
        name: Its name.
        mib: Memory that it holds, as the driver writes it.
    """

    pid: str
    name: str
    mib: str


@dataclass(frozen=True, slots=True)
class HostState:
    """All of it; ``None``, 0 and empty where nothing tells.

    Attributes:
        node: Facts of the node.
        cores: The cores that engines may use.
        turbo: Whether cores may go beyond their base clock.
        smt: Whether cores have several hardware threads.
        huge_pages: Mode of transparent huge pages.
        available_bytes: Memory that processes can have.
        swap_used_bytes: Swap in use.
        swappiness: How gladly the kernel swaps.
        numa_balancing: Whether the kernel moves memory between nodes.
        quota: CPU quota in cores.
        oom_score: By which the kernel chooses whom to kill.
        load: Runnable processes, mean of a minute.
        busy: Share of the cores that others used while it was looked.
        busiest: Who they are, with the cores that each used.
        throttled: How often cores were throttled since the start.
        warmest_c: The warmest zone.
        virtual: Whether it is a virtual machine.
        openmp: Whether the OpenMP library of the wheels is there.
        sandbox: What untrusted builds run in.
        gpus: Its GPUs.
        gpu_users: Who computes on them.
    """

    node: NodeFacts
    cores: tuple[Core, ...] = ()
    turbo: bool | None = None
    smt: bool | None = None
    huge_pages: str = ""
    available_bytes: int = 0
    swap_used_bytes: int = 0
    swappiness: int | None = None
    numa_balancing: int | None = None
    quota: float | None = None
    oom_score: int | None = None
    load: float = 0.0
    busy: float | None = None
    busiest: tuple[tuple[str, float], ...] = ()
    throttled: int | None = None
    warmest_c: float | None = None
    virtual: bool = False
    openmp: bool = True
    sandbox: Found = _NOBODY_LOOKED
    gpus: tuple[GpuNow, ...] = ()
    gpu_users: tuple[GpuUser, ...] = ()


def host_state(look_s: float = _LOOK_S) -> HostState:
    """Look at this host.

    Args:
        look_s: How long the work of others is watched, seconds.

    Raises:
        BadInput: ``E-cores``, as of `reserved_cores`.
    """
    rows = re.findall(r"^(\w+):\s+(\d+) kB$", read("proc/meminfo"), re.MULTILINE)
    memory = {name: int(kib) * 1024 for name, kib in rows}
    busy, busiest = _others(look_s)
    warmest = [value for path in _glob("sys/class/thermal/thermal_zone*/temp") if (value := read_number(path))]
    throttled = [
        value
        for path in _glob(f"{_CPU}/cpu[0-9]*/thermal_throttle/core_throttle_count")
        if (value := read_number(path)) is not None
    ]
    return HostState(
        node=probe_node(),
        cores=tuple(map(known_core, reserved_cores())),
        turbo=_turbo(),
        smt=_flag(f"{_CPU}/smt/active"),
        huge_pages=next(iter(re.findall(r"\[(\w+)\]", read("sys/kernel/mm/transparent_hugepage/enabled"))), ""),
        available_bytes=memory.get("MemAvailable", 0),
        swap_used_bytes=memory.get("SwapTotal", 0) - memory.get("SwapFree", memory.get("SwapTotal", 0)),
        swappiness=read_number("proc/sys/vm/swappiness"),
        numa_balancing=read_number("proc/sys/kernel/numa_balancing"),
        quota=cgroup_cpu_quota(),
        oom_score=read_number("proc/self/oom_score_adj"),
        load=float((read("proc/loadavg").split() or ["0"])[0]),
        busy=busy,
        busiest=busiest,
        throttled=sum(throttled) if throttled else None,
        warmest_c=max(warmest) / 1000 if warmest else None,
        virtual=bool(re.search(r"^flags\s*:.*\bhypervisor\b", read("proc/cpuinfo"), re.MULTILINE)),
        sandbox=sandbox_here(),
        openmp=ctypes.util.find_library("gomp") is not None,
        gpus=tuple(_gpu(row) for row in _ask("--query-gpu", _GPU_FIELDS)),
        gpu_users=tuple(GpuUser(*row) for row in _ask("--query-compute-apps", _PROCESS_FIELDS)),
    )


def _turbo() -> bool | None:
    if (off := _flag(f"{_CPU}/intel_pstate/no_turbo")) is not None:
        return not off
    return _flag(f"{_CPU}/cpufreq/boost")


def _flag(path: str) -> bool | None:
    number = read_number(path)
    return None if number is None else bool(number)


def _glob(pattern: str) -> Sequence[str]:
    return [str(path.relative_to(machine.ROOT)) for path in machine.ROOT.glob(pattern)]


# ---- other work ------------------------------------------------------------------------------------------------------


def _others(look_s: float) -> tuple[float | None, tuple[tuple[str, float], ...]]:
    """Which share of the cores others use, and the three that use most, each in cores."""
    before, times = _processes(), _times()
    time.sleep(look_s)
    after, later = _processes(), _times()
    if times is None or later is None or later[1] <= times[1]:
        return None, ()
    ticks_s = os.sysconf("SC_CLK_TCK") * look_s
    used = {
        name: (ticks - before[pid][1]) / ticks_s
        for pid, (name, ticks) in after.items()
        if pid in before and pid != os.getpid()
    }
    busiest = sorted(used.items(), key=lambda found: -found[1])[:_BUSIEST]
    return (later[0] - times[0]) / (later[1] - times[1]), tuple((name, cores) for name, cores in busiest if cores > 0)


def _times() -> tuple[int, int] | None:
    """Busy and all ticks of all cores, as the first line of ``/proc/stat`` has them."""
    words = (read("proc/stat").splitlines() or [""])[0].split()[1:9]
    if len(words) < len(("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")):
        return None
    ticks = list(map(int, words))
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def _processes() -> dict[int, tuple[str, int]]:
    found = {}
    for process in psutil.process_iter(["name", "cpu_times"]):
        spent = process.info["cpu_times"]
        if spent is not None:
            ticks = int((spent.user + spent.system) * os.sysconf("SC_CLK_TCK"))
            found[process.pid] = (f"{process.info['name']} ({process.pid})", ticks)
    return found


# ---- GPUs ------------------------------------------------------------------------------------------------------------


def _ask(query: str, fields: Sequence[str]) -> list[list[str]]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    command = (program, f"{query}={','.join(fields)}", "--format=csv,noheader,nounits")
    try:
        result = run_once(ProcessSpec(command, env=clean_environment(), timeout_s=_TIMEOUT_S))
    except HarnessError:
        return []
    rows = csv.reader(result.stdout.splitlines() if result.ok else [], skipinitialspace=True)
    return [row for row in rows if len(row) == len(fields)]


def _gpu(row: Sequence[str]) -> GpuNow:
    index, name, temperature, persistence, reasons = row
    return GpuNow(
        index=index,
        name=name,
        temperature_c=_number(int, temperature, 10),
        persistent={"Enabled": True, "Disabled": False}.get(persistence),
        held_down=_number(int, reasons, 16),
    )


def _number(read_as: Callable[[str, int], int], text: str, base: int) -> int | None:
    try:
        return read_as(text, base)
    except ValueError:
        return None
