"""Which cores engines may use, and which of them an engine gets.

One order serves all choices: NUMA node after node, the one that the GPUs hang on first, else the one with most
physical cores; inside a node one hardware thread of each physical core before any second one, and the first core last,
because the system and the harness run there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness import settings
from harness.domain.errors import BadInput
from harness.execution import machine
from harness.execution.cgroups import cgroup_cpu_quota
from harness.execution.machine import read, read_number

NVIDIA_DEVICES = "sys/bus/pci/drivers/nvidia/*:*/numa_node"


@dataclass(frozen=True, slots=True)
class Core:
    """A logical processor.

    Attributes:
        cpu: Its number.
        node: Its NUMA node; 0 where the kernel has none.
        physical: Package and core that it is a hardware thread of; its own where the kernel does not say.
    """

    cpu: int
    node: int
    physical: tuple[int, int]


def reserved_cores() -> tuple[int, ...]:
    """The cores that engines are bound to: the affinity mask, or of it ``MOE_CORES`` (``0-3,8``), within the CPU quota.

    A quota of 2 on a mask of 64 leaves two: 64 threads would spend most of their time throttled.

    Raises:
        BadInput: ``E-bad-setting``; ``E-cores`` where they are not within the mask.
    """
    mask = _affinity()
    if declared := settings.cores():
        mask = _declared_cores(declared, mask)
    quota = cgroup_cpu_quota()
    if quota is None or int(quota) >= len(mask):
        return tuple(mask)
    chosen = in_order([known_core(cpu) for cpu in mask], gpu_node())
    return tuple(sorted(chosen[: max(1, int(quota))]))


def default_threads(*, spare_core: bool = True) -> int:
    """Threads of an engine unless declared: the physical cores of one NUMA node, less one for system and harness.

    Args:
        spare_core: Whether one is left.
    """
    cores = [known_core(cpu) for cpu in reserved_cores()]
    best = _nodes_in_order(cores, gpu_node())[0]
    return max(1, _physical_cores(best) - spare_core)


def cores_for(threads: int) -> tuple[int, ...]:
    """The reserved cores for an engine of some threads; all of them where they are too few.

    Args:
        threads: Its compute threads.
    """
    cores = [known_core(cpu) for cpu in reserved_cores()]
    return tuple(sorted(in_order(cores, gpu_node())[:threads]))


def in_order(cores: Sequence[Core], near: int | None = None) -> list[int]:
    """Numbers of the cores, the best for an engine first.

    Args:
        cores: What there is.
        near: The NUMA node to begin with; ``None``: the one with most physical cores.
    """
    return [core.cpu for node in _nodes_in_order(cores, near) for core in _inside_node(node)]


def known_core(cpu: int) -> Core:
    """What the kernel says of a logical processor."""
    folder = f"sys/devices/system/cpu/cpu{cpu}"
    package, core = (read_number(f"{folder}/topology/{name}") for name in ("physical_package_id", "core_id"))
    physical = (package, core) if package is not None and core is not None else (-1, cpu)
    nodes = [int(path.name.removeprefix("node")) for path in machine.ROOT.glob(f"{folder}/node[0-9]*")]
    return Core(cpu, min(nodes, default=0), physical)


def gpu_node() -> int | None:
    """The NUMA node that all NVIDIA GPUs of the machine hang on; None where there is none, or not one for all."""
    found = {path.read_text(encoding="ascii", errors="replace").strip() for path in machine.ROOT.glob(NVIDIA_DEVICES)}
    only = found.pop() if len(found) == 1 else ""
    return int(only) if only.isdecimal() else None  # -1 is the kernel's word for unknown


def governor(cores: Iterable[int]) -> str:
    """The frequency governor of some cores, ``unknown``, or ``mixed`` with their names."""
    folder = "sys/devices/system/cpu"
    found = {read(f"{folder}/cpu{core}/cpufreq/scaling_governor").strip() or "unknown" for core in cores}
    return found.pop() if len(found) == 1 else "mixed: " + ", ".join(sorted(found))


def _nodes_in_order(cores: Sequence[Core], near: int | None) -> list[list[Core]]:
    nodes: dict[int, list[Core]] = {}
    for core in cores:
        nodes.setdefault(core.node, []).append(core)
    best_first = sorted(nodes, key=lambda node: (node == near, _physical_cores(nodes[node]), node), reverse=True)
    return [nodes[node] for node in best_first]


def _inside_node(cores: Sequence[Core]) -> list[Core]:
    """The last physical core first; second hardware threads after all first ones."""
    threads: dict[tuple[int, int], list[Core]] = {}
    for core in sorted(cores, key=lambda core: core.cpu):
        threads.setdefault(core.physical, []).append(core)
    firsts_down = list(reversed(threads.values()))
    most = max(map(len, firsts_down))
    return [siblings[rank] for rank in range(most) for siblings in firsts_down if rank < len(siblings)]


def _physical_cores(cores: Iterable[Core]) -> int:
    return len({core.physical for core in cores})


def _affinity() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _declared_cores(ranges: Sequence[tuple[int, int]], mask: list[int]) -> list[int]:
    # Of a range that goes beyond the mask, one core too many is enough to be refused.
    ends = [(min(low, mask[-1] + 1), min(high, mask[-1] + 1)) for low, high in ranges]
    cores = {core for low, high in ends for core in range(low, high + 1)}
    if cores - set(mask):
        said = ",".join(f"{low}-{high}" if high > low else f"{low}" for low, high in ranges)
        raise BadInput(
            "E-cores",
            f"{said} is not within the cores that this process may use, {_ranges(mask)}",
            hint="correct it, or widen the affinity mask (taskset, cpuset) of the process",
            where=settings.CORES,
        )
    return sorted(cores)


def _ranges(cores: list[int]) -> str:
    """Write ``[0, 1, 2, 8]`` as ``0-2,8``."""
    spans: list[list[int]] = []
    for core in cores:
        if spans and core == spans[-1][1] + 1:
            spans[-1][1] = core
        else:
            spans.append([core, core])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)
