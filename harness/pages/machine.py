"""The machine that a job ran on, and its state around the processes of each arm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from harness.domain.load_facts import ranges
from harness.domain.measurement import Conditions, GpuState, ProcessRun
from harness.domain.node import GIB, Gpu, NodeFacts
from harness.judging.memory import MIB

Facts = list[tuple[str, str]]


def node_data(node: NodeFacts | None) -> Facts:
    """Facts of the node by name; none where no process was started."""
    if node is None:
        return []
    told = [
        ("CPU", f"{' '.join(node.cpu_model.split())}, {node.cores} cores"),
        ("instruction sets", ", ".join(node.isa)),
        ("memory", f"{node.usable_ram_bytes / GIB:.1f} GiB usable, {node.swap_bytes / GIB:.1f} GiB swap"),
        *((f"GPU {index}", _gpu_text(gpu)) for index, gpu in enumerate(node.gpus)),
        ("system", " ".join(filter(None, (node.os, node.machine, node.kernel)))),
        ("NUMA nodes", f"{node.numa_nodes}"),
        ("governor", node.governor),
        ("fingerprint", node.fingerprint),
    ]
    return [(name, value) for name, value in told if value]


def state_data(arms: Sequence[Sequence[ProcessRun]]) -> list[list[str]]:
    """What was seen around the processes of each arm, side by side.

    Args:
        arms: The processes of each arm.

    Returns:
        Rows of a name and one text for each arm, from the lowest to the highest of its processes. Rows of which nobody
        knows anything are left out.
    """
    conditions = [[run.conditions for run in runs] for runs in arms]
    rows = [[name, *(text(found) for found in conditions)] for name, text in _CONDITIONS]
    gpus = max((len(each.gpus) for found in conditions for each in found), default=0)
    for index in range(gpus):
        states = [[each.gpus[index] for each in found if index < len(each.gpus)] for found in conditions]
        rows += [[f"GPU {index} {name}", *(text(found) for found in states)] for name, text in _GPU_STATES]
    return [row for row in rows if any(row[1:])]


def _gpu_text(gpu: Gpu) -> str:
    arch = f", compute capability {gpu.arch}" if gpu.arch else ""
    return f"{gpu.name}, {gpu.vram_bytes / GIB:.0f} GiB, driver {gpu.driver}{arch}"


def _range(values: Iterable[float | None], form: str, unit: str = "", scale: float = 1.0) -> str:
    known = [value * scale for value in values if value is not None]
    if not known:
        return ""
    ends = list(dict.fromkeys(format(end, form) for end in (min(known), max(known))))
    return " .. ".join(ends) + unit


def _numbers(
    value: Callable[[Conditions], float | None], form: str, unit: str = "", scale: float = 1.0
) -> Callable[[Sequence[Conditions]], str]:
    return lambda found: _range(map(value, found), form, unit, scale)


def _words(value: Callable[[Conditions], str]) -> Callable[[Sequence[Conditions]], str]:
    return lambda found: ", ".join(dict.fromkeys(filter(None, map(value, found))))


def _of_gpu(
    value: Callable[[GpuState], float | None], form: str, unit: str = "", scale: float = 1.0
) -> Callable[[Sequence[GpuState]], str]:
    return lambda found: _range(map(value, found), form, unit, scale)


_CONDITIONS: tuple[tuple[str, Callable[[Sequence[Conditions]], str]], ...] = (
    ("niceness", _numbers(lambda each: each.niceness, ".0f")),
    ("threads", _numbers(lambda each: each.threads, ".0f")),
    ("pinned to cores", _words(lambda each: ranges(each.cpus))),
    ("governor", _words(lambda each: each.governor)),
    ("clock of cores", _numbers(lambda each: each.mhz, ".0f", " MHz")),
    ("cores throttled", _numbers(lambda each: each.throttled, ".1f", " % of the time", 100)),
    ("load before start", _numbers(lambda each: each.load_before, ".2f")),
    ("other work on its cores", _numbers(lambda each: each.foreign_load, ".1f", " %", 100)),
    ("taken by the hypervisor", _numbers(lambda each: each.steal, ".1f", " %", 100)),
    ("waited for a core", _numbers(lambda each: each.queue_wait_s, ".2f", " thread s")),
    ("lost its core", _numbers(lambda each: each.involuntary_switches, ".0f", " times")),
    ("page faults from disk", _numbers(lambda each: each.major_faults, ".0f")),
    ("swapped meanwhile", _numbers(lambda each: each.swapped_bytes, ".0f", " MiB", 1 / MIB)),
    ("model in page cache", _numbers(lambda each: each.model_cached, ".0f", " %", 100)),
    ("huge pages", _words(lambda each: each.huge_pages)),
    ("no GPU telemetry", _words(lambda each: each.gpu_telemetry)),
    ("sandbox", _words(lambda each: each.sandbox)),
)

_GPU_STATES: tuple[tuple[str, Callable[[Sequence[GpuState]], str]], ...] = (
    ("used", lambda found: ", ".join(dict.fromkeys("yes" if state.used else "no" for state in found))),
    ("driver", lambda found: ", ".join(dict.fromkeys(state.driver for state in found))),
    ("clock", _of_gpu(lambda state: state.sm_mhz, ".0f", " MHz")),
    ("memory clock", _of_gpu(lambda state: state.memory_mhz, ".0f", " MHz")),
    ("performance state", _of_gpu(lambda state: state.performance_state, ".0f")),
    ("power", _of_gpu(lambda state: state.power_w, ".0f", " W")),
    ("power limit", _of_gpu(lambda state: state.power_limit_w, ".0f", " W")),
    ("temperature", _of_gpu(lambda state: state.temperature_c, ".0f", " °C")),
    ("held down by", lambda found: ", ".join(sorted({word for state in found for word in state.slowdowns})) or "-"),
    ("other processes", _of_gpu(lambda state: state.foreign_processes, ".0f")),
)
