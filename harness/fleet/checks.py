"""What would spoil measurements on a host: each check is a function of what was found there. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from harness.domain.node import GIB
from harness.execution.offers import is_mixed
from harness.fleet.host_state import HostState

_BUSY = 0.05
"""Share of the cores that others may use: what wakes up now and then stays below."""
_LEAST_FREE = 0.8
_WARM_C = 85.0
_GPU_WARM_C = 80
_MIB = 1024**2
_THERMAL_BITS = 0x8 | 0x20 | 0x40 | 0x80
"""Hardware slowdown, both thermal ones, and the power brake, as the driver numbers them."""


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check says.

    Attributes:
        check: Name of the check.
        level: How bad it is.
        found: What was found, with the figures.
        why: Why it matters; empty where all is well.
        todo: What to do; likewise.
    """

    check: str
    level: Level
    found: str
    why: str = ""
    todo: str = ""


def findings(host: HostState) -> tuple[Finding, ...]:
    """What all checks say of a host, in the order in which they are best mended."""
    return tuple(finding for check in _CHECKS for finding in check(host))


def _niceness(host: HostState) -> Iterator[Finding]:
    niceness, score = host.node.niceness, host.oom_score
    if niceness:
        why = "work with a lower number comes first, and a speed at another niceness than 0 is not judged"
        todo = (
            "start it without nice; under Ray, start nodes with `moe-harness fleet up|join`, or RAY_worker_niceness=0"
        )
        yield Finding("niceness", Level.WARNING, f"niceness {niceness}", why, todo)
    elif score is not None and score > 0:
        why = "the kernel kills this process and its engines before others when memory runs short"
        yield Finding("niceness", Level.WARNING, f"out-of-memory score {score}", why, "start it with a score of 0")
    else:
        yield Finding("niceness", Level.OK, "niceness 0")


def _other_load(host: HostState) -> Iterator[Finding]:
    if host.busy is None:
        yield Finding("other load", Level.UNKNOWN, f"load {host.load:.1f}, the kernel tells no CPU times")
        return
    names = ", ".join(f"{name} {cores:.1f} cores" for name, cores in host.busiest)
    found = f"others use {host.busy:.0%} of all cores (load {host.load:.1f})" + (f": {names}" if names else "")
    if host.busy > _BUSY:
        why = "an engine waits at every barrier for the thread that another process holds up"
        yield Finding(
            "other load", Level.WARNING, found, why, "end it, or measure when it is done; MOE_CORES keeps off it"
        )
    else:
        yield Finding("other load", Level.OK, f"others use {host.busy:.0%} of all cores")


def _governor(host: HostState) -> Iterator[Finding]:
    governor = host.node.governor
    if governor == "unknown":
        told = "; the host of a virtual machine decides" if host.virtual else ""
        yield Finding("governor", Level.UNKNOWN, f"the kernel tells no frequency governor{told}")
    elif governor != "performance":
        why = "clocks follow the load, so the first seconds of each process are slower than the rest"
        todo = "cpupower frequency-set -g performance (as root), or write it to each cpufreq/scaling_governor"
        yield Finding("governor", Level.WARNING, governor, why, todo)
    else:
        yield Finding("governor", Level.OK, governor)


def _turbo(host: HostState) -> Iterator[Finding]:
    if host.turbo is None:
        yield Finding("turbo", Level.UNKNOWN, "the kernel does not tell whether turbo is on")
    elif host.turbo:
        why = "the clock goes by temperature and by how many cores work, so it drifts within a night"
        todo = "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or 0 > .../cpufreq/boost (as root)"
        yield Finding("turbo", Level.WARNING, "on", why, todo)
    else:
        yield Finding("turbo", Level.OK, "off")


def _siblings(host: HostState) -> Iterator[Finding]:
    shared = Counter(core.physical for core in host.cores)
    several = sum(number > 1 for number in shared.values())
    if several:
        found = f"{several} of {len(shared)} physical cores have several hardware threads here"
        yield Finding("SMT", Level.OK, f"{found}; engines get one of each core before any second one")
    elif host.smt:
        why = "the other hardware thread of a core is somebody else's, and halves its speed at will"
        todo = "give the process both threads of its cores (cpuset, taskset), or switch SMT off"
        yield Finding("SMT", Level.WARNING, "SMT is on, and only one thread of each core is ours", why, todo)
    else:
        yield Finding("SMT", Level.OK, "one hardware thread a core")


def _limits(host: HostState) -> Iterator[Finding]:
    node, quota = host.node, host.quota
    if quota is not None and quota < len(host.cores):
        why = "threads beyond the quota are stopped for the rest of each tenth of a second"
        todo = "give whole cores (cpuset) instead of a quota"
        yield Finding("CPU quota", Level.WARNING, f"{quota:g} cores of {len(host.cores)}", why, todo)
    elif quota is not None and quota != int(quota):
        why = "the part of a core that is left over is stopped and started all the time"
        yield Finding("CPU quota", Level.WARNING, f"{quota:g} cores", why, "give a whole number of cores")
    else:
        yield Finding("CPU quota", Level.OK, "none below the cores that may be used")
    limit = node.cgroup_memory_bytes
    if limit is not None and limit < node.ram_bytes:
        why = "the page cache counts against it: a larger model is read from disk again and again"
        found = f"{limit / GIB:.1f} GiB of {node.ram_bytes / GIB:.1f}"
        yield Finding("memory limit", Level.WARNING, found, why, "raise the limit of the control group")
    else:
        yield Finding("memory limit", Level.OK, "none")


def _free_memory(host: HostState) -> Iterator[Finding]:
    usable = host.node.usable_ram_bytes
    if not host.available_bytes or not usable:
        yield Finding("free memory", Level.UNKNOWN, "the kernel does not tell")
        return
    found = f"{min(host.available_bytes, usable) / GIB:.1f} GiB of {usable / GIB:.1f} can be had"
    if host.available_bytes < _LEAST_FREE * usable:
        why = "a model that does not stay in the page cache is read from disk while it is measured"
        yield Finding("free memory", Level.WARNING, found, why, "end what holds the rest")
    else:
        yield Finding("free memory", Level.OK, found)


def _swap(host: HostState) -> Iterator[Finding]:
    if host.swap_used_bytes > _MIB:
        found = f"{host.swap_used_bytes / GIB:.2f} GiB are swapped out"
        why = "pages that come back from disk stop an engine for milliseconds"
        yield Finding("swap", Level.WARNING, found, why, "swapoff -a && swapon -a (as root), or swapoff for good")
    elif host.node.swap_bytes:
        found = f"{host.node.swap_bytes / GIB:.1f} GiB of swap, swappiness {host.swappiness}"
        why = "the kernel may swap an engine out in favour of the page cache"
        yield Finding("swap", Level.WARNING, found, why, "swapoff -a, or sysctl vm.swappiness=1 (as root)")
    else:
        yield Finding("swap", Level.OK, "none")


def _huge_pages(host: HostState) -> Iterator[Finding]:
    if not host.huge_pages:
        yield Finding("huge pages", Level.UNKNOWN, "the kernel does not tell")
    elif host.huge_pages == "always":
        why = "whether a buffer gets huge pages depends on how scattered memory is by then, so speeds wander"
        todo = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root)"
        yield Finding("huge pages", Level.WARNING, "always", why, todo)
    else:
        yield Finding("huge pages", Level.OK, host.huge_pages)


def _numa(host: HostState) -> Iterator[Finding]:
    nodes = host.node.numa_nodes
    if nodes == 1:
        yield Finding("NUMA", Level.OK, "one node")
    elif host.numa_balancing:
        why = "the kernel moves pages between the nodes while an engine works"
        todo = "sysctl kernel.numa_balancing=0 (as root)"
        yield Finding("NUMA", Level.WARNING, f"{nodes} nodes, and balancing is on", why, todo)
    else:
        yield Finding("NUMA", Level.OK, f"{nodes} nodes, engines are pinned to one; balancing is off")


def _heat(host: HostState) -> Iterator[Finding]:
    if host.warmest_c is not None and host.warmest_c >= _WARM_C:
        why = "near its limit a processor lowers its clock"
        yield Finding("temperature", Level.WARNING, f"{host.warmest_c:.0f} °C", why, "let it cool, look to its fans")
    elif host.throttled:
        found = f"cores were throttled {host.throttled} times since the start"
        why = "it has been too hot before, and will be again under load"
        yield Finding("temperature", Level.WARNING, found, why, "look to fans and heat sinks, or limit its power")
    elif host.warmest_c is None and host.throttled is None:
        yield Finding("temperature", Level.UNKNOWN, "no sensor tells")
    else:
        yield Finding("temperature", Level.OK, "no core was throttled")


def _gpu_users(host: HostState) -> Iterator[Finding]:
    if not host.gpus:
        return
    if host.gpu_users:
        named = ", ".join(f"{user.name} (process {user.pid}, {user.mib} MiB)" for user in host.gpu_users)
        why = "it takes memory and time of the GPU that is measured"
        yield Finding("GPU processes", Level.WARNING, named, why, "end it; a desktop's can move to another GPU")
    else:
        yield Finding("GPU processes", Level.OK, "none")


def _gpus(host: HostState) -> Iterator[Finding]:
    if not host.gpus:
        return
    if is_mixed(host.node.gpus):
        kinds = ", ".join(f"{number} x {name}" for name, number in Counter(gpu.name for gpu in host.node.gpus).items())
        why = "which one a case gets changes its speed; without a class that names it, it gets the largest"
        todo = "name the GPU in [node_classes] (gpu_name), or start a node for each kind: fleet join --gpus"
        yield Finding("mixed GPUs", Level.WARNING, kinds, why, todo)
    for gpu in host.gpus:
        yield from _gpu(gpu.index, gpu.held_down, gpu.temperature_c, persistent=gpu.persistent)


def _gpu(index: str, held_down: int | None, temperature_c: int | None, *, persistent: bool | None) -> Iterator[Finding]:
    name = f"GPU {index}"
    if held_down is not None and held_down & _THERMAL_BITS:
        why = "its clocks are held down by heat or power, before anything is measured"
        yield Finding(
            name, Level.WARNING, f"throttled (reasons {held_down:#x})", why, "look to cooling and power supply"
        )
    elif temperature_c is not None and temperature_c >= _GPU_WARM_C:
        why = "it lowers its clocks soon"
        yield Finding(name, Level.WARNING, f"{temperature_c} °C", why, "let it cool, look to its fans")
    elif persistent is False:
        why = "without a client the driver lets go of it: the next start takes seconds, and clocks begin cold"
        yield Finding(name, Level.WARNING, "persistence mode is off", why, "nvidia-smi -pm 1 (as root), or its daemon")
    else:
        yield Finding(name, Level.OK, "not throttled" + (f", {temperature_c} °C" if temperature_c is not None else ""))


def _openmp(host: HostState) -> Iterator[Finding]:
    if host.openmp:
        yield Finding("OpenMP", Level.OK, "libgomp is there")
    else:
        why = "the wheels of both engines need it, and end at once without"
        todo = "apt-get install libgomp1, or dnf install libgomp"
        yield Finding("OpenMP", Level.WARNING, "libgomp is missing", why, todo)


def _sandbox(host: HostState) -> Iterator[Finding]:
    """Nothing that spoils a measurement: who trusts all builds needs none."""
    tool, reason = host.sandbox.tool, host.sandbox.reason
    found = tool.version if tool else f"none, builds that are declared untrusted are refused: {reason}"
    yield Finding("sandbox", Level.OK, found)


_CHECKS: tuple[Callable[[HostState], Iterator[Finding]], ...] = (
    _openmp,
    _sandbox,
    _niceness,
    _other_load,
    _limits,
    _free_memory,
    _swap,
    _governor,
    _turbo,
    _siblings,
    _huge_pages,
    _numa,
    _heat,
    _gpu_users,
    _gpus,
)
