"""Counters of the kernel around a process: whose time the cores spent, what swapped, what throttled."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from harness.execution.machine import read, read_number

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_BUSY = ("user", "nice", "system", "irq", "softirq")
"""Of the fields of ``/proc/stat``; guests' time is part of user."""
_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


@dataclass(frozen=True, slots=True)
class Counters:
    """What the kernel counted so far.

    Attributes:
        at_s: When, on the monotonic clock.
        busy_s: Seconds for which the cores worked, for whomever; ``None`` where it is not told.
        steal_s: Seconds that the hypervisor gave to others.
        total_s: All seconds of the cores.
        throttled_s: Seconds for which a core was throttled, mean of the cores; ``None`` where it is not told.
        swapped_bytes: Swapped in and out by the machine; ``None`` where it is not told.
    """

    at_s: float
    busy_s: float | None
    steal_s: float
    total_s: float
    throttled_s: float | None
    swapped_bytes: int | None

    @classmethod
    def now(cls, cpus: Sequence[int]) -> Counters:
        """Read them.

        Args:
            cpus: The cores that count.
        """
        rows = _core_times(cpus)
        return cls(
            at_s=time.monotonic(),
            busy_s=sum(row[field] for row in rows for field in _BUSY) / _TICKS_PER_S if rows else None,
            steal_s=sum(row["steal"] for row in rows) / _TICKS_PER_S,
            total_s=sum(sum(row.values()) for row in rows) / _TICKS_PER_S,
            throttled_s=_throttled_s(cpus),
            swapped_bytes=_swapped_bytes(),
        )


@dataclass(frozen=True, slots=True)
class Shares:
    """What happened between two readings; ``None``: not known. See ``Conditions`` for the meanings."""

    foreign_load: float | None
    steal: float | None
    throttled: float | None
    swapped_bytes: int | None

    @classmethod
    def between(cls, before: Counters, after: Counters, own_s: float) -> Shares:
        """Compare two readings.

        Args:
            before: The first.
            after: The second.
            own_s: CPU seconds of the engine meanwhile.
        """
        total = after.total_s - before.total_s
        elapsed = after.at_s - before.at_s
        busy = _rise(before.busy_s, after.busy_s)
        throttled = _rise(before.throttled_s, after.throttled_s)
        swapped = _rise(before.swapped_bytes, after.swapped_bytes)
        return cls(
            # The two are counted by different clocks of the kernel, so that nothing left can come out as a little less.
            foreign_load=max(0.0, busy - own_s) / total if busy is not None and total > 0 else None,
            steal=(after.steal_s - before.steal_s) / total if total > 0 else None,
            throttled=throttled / elapsed if throttled is not None and elapsed > 0 else None,
            swapped_bytes=int(swapped) if swapped is not None else None,
        )


def mean_mhz(cpus: Sequence[int]) -> float | None:
    """Mean clock of some cores now; ``None`` where it is not told. A virtual machine tells its nominal one."""
    folder = "sys/devices/system/cpu"
    told = [read_number(f"{folder}/cpu{cpu}/cpufreq/scaling_cur_freq") for cpu in cpus]
    clocks = [khz / 1000 for khz in told if khz] or _cpuinfo_mhz(cpus)
    return sum(clocks) / len(clocks) if clocks else None


def huge_pages() -> str:
    """The setting of transparent huge pages: the word in brackets."""
    match = re.search(r"\[(\w+)\]", read("sys/kernel/mm/transparent_hugepage/enabled"))
    return match[1] if match else "unknown"


def queue_waits_s(pids: Sequence[int]) -> dict[int, float]:
    """Seconds that each thread of some processes has waited for a core, by thread id; only threads that are there."""
    waits = {}
    for pid in pids:
        for thread in _threads(pid):
            run_ns, wait_ns, *_ = [*read(f"proc/{pid}/task/{thread}/schedstat").split(), "0", "0"]
            if int(run_ns):  # a kernel that does not count shows zeros
                waits[thread] = int(wait_ns) * 1e-9
    return waits


def _threads(pid: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208 - thrice as fast, per sample
    except OSError:
        return []


def _core_times(cpus: Sequence[int]) -> list[dict[str, int]]:
    lines = dict(re.findall(r"^cpu(\d+) (.*)$", read("proc/stat"), re.MULTILINE))
    rows = [lines[str(cpu)].split() for cpu in cpus if str(cpu) in lines]
    return [dict(zip(_FIELDS, map(int, row), strict=False)) for row in rows]


def _throttled_s(cpus: Sequence[int]) -> float | None:
    """Of Intel's counters: a core's own throttling or its package's, whichever is more."""
    totals = []
    for cpu in cpus:
        folder = f"sys/devices/system/cpu/cpu{cpu}/thermal_throttle"
        told = [read_number(f"{folder}/{part}_throttle_total_time_ms") for part in ("core", "package")]
        totals += [max(ms or 0 for ms in told) / 1000] if any(ms is not None for ms in told) else []
    return sum(totals) / len(totals) if totals else None


def _swapped_bytes() -> int | None:
    pages = re.findall(r"^pswp(?:in|out) (\d+)$", read("proc/vmstat"), re.MULTILINE)
    return sum(map(int, pages)) * _PAGE_BYTES if pages else None


def _cpuinfo_mhz(cpus: Sequence[int]) -> list[float]:
    wanted = {str(cpu) for cpu in cpus}
    found = re.findall(
        r"^processor\s*:\s*(\d+)$.*?^cpu MHz\s*:\s*([\d.]+)$", read("proc/cpuinfo"), re.MULTILINE | re.DOTALL
    )
    return [float(mhz) for cpu, mhz in found if cpu in wanted]


def _rise(before: float | None, after: float | None) -> float | None:
    return after - before if before is not None and after is not None else None
