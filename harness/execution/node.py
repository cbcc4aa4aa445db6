"""What this machine is: read from ``/proc``, ``/sys`` and the GPU's driver, never declared.

Facts that decide about placement and verdicts are :class:`harness.domain.node.NodeFacts`; what is only worth a note in
a report is :class:`NodeDetails`. The host's name is among the latter: it identifies nothing.

What can't be read has a value that says so (``unknown``, 0, None): a machine without ``/proc`` can still plan.
"""

from __future__ import annotations

import csv
import logging
import os
import platform
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from harness.domain.errors import BadInput, HarnessError
from harness.domain.node import ISA_WORDS, Gpu, NodeFacts
from harness.execution.process import ProcessSpec, clean_environment, run_once

_LOG = logging.getLogger(__name__)
_ROOT = Path("/")
_GPU_QUERY = ("name", "memory.total", "driver_version", "uuid")
_GPU_TIMEOUT_S = 60.0
"""Without its persistence daemon a driver on a host of eight GPUs takes ten seconds and more to answer."""
_MIB = 1024**2
_UNLIMITED = 1 << 60
"""Version 1 of cgroups writes a page-rounded 2^63 for no limit."""

_RENAMED = {"asimd": "neon", "asimddp": "dotprod", "pni": "sse3"}


@dataclass(frozen=True, slots=True)
class NodeDetails:
    """What a report mentions about a node, and no decision is made on.

    Attributes:
        hostname: Name of the host; not its identity.
        physical_cores: Cores without hyper-threads; 0 if unknown.
        logical_cores: Of the machine, not only ours.
        cpu_quota: CPU seconds a second that the cgroup allows; None for no limit.
        ram_available_bytes: Memory that can be had without swapping; 0 if unknown.
        libc: Name and version of the C library.
        page_bytes: Size of a memory page.
        cache_free_bytes: Free space where files are cached; 0 if unknown.
    """

    hostname: str
    physical_cores: int
    logical_cores: int
    cpu_quota: float | None
    ram_available_bytes: int
    libc: str
    page_bytes: int
    cache_free_bytes: int


def probe_node() -> NodeFacts:
    """Read the facts of this machine, as this process sees it.

    A GPU's driver is asked anew each time: it takes a second on some hosts.

    Raises:
        BadInput: E-cores: ``MOE_CORES`` names cores that are not ours.
    """
    cpu = _cpu_fields()
    memory = _memory_fields()
    return NodeFacts(
        cpu_model=cpu.get("model name") or platform.processor() or platform.machine() or "unknown",
        cores=len(reserved_cores()),
        isa=instruction_sets(f"{cpu.get('flags', '')} {cpu.get('Features', '')}"),
        ram_bytes=memory.get("MemTotal", 0) or _physical_memory(),
        gpus=probe_gpus(),
        kernel=platform.release(),
        niceness=os.getpriority(os.PRIO_PROCESS, 0),
        governor=_governor(reserved_cores()),
        cgroup_memory_bytes=cgroup_memory_bytes(),
        numa_nodes=max(1, len(list(_ROOT.glob("sys/devices/system/node/node[0-9]*")))),
        swap_bytes=memory.get("SwapTotal", 0),
    )


def probe_details(cache: Path) -> NodeDetails:
    """Read what a report mentions.

    Args:
        cache: Folder of cached files; it need not exist yet.
    """
    return NodeDetails(
        hostname=platform.node(),
        physical_cores=_physical_cores(),
        logical_cores=os.cpu_count() or 0,
        cpu_quota=cgroup_cpu_quota(),
        ram_available_bytes=_memory_fields().get("MemAvailable", 0),
        libc=" ".join(platform.libc_ver()).strip() or "unknown",
        page_bytes=os.sysconf("SC_PAGE_SIZE"),
        cache_free_bytes=_free_bytes(cache),
    )


# ---- cores -----------------------------------------------------------------------------------------------------------


def reserved_cores() -> tuple[int, ...]:
    """The cores that engines are bound to: the affinity mask, or of it ``MOE_CORES`` (``0-3,8``), within the CPU quota.

    A quota of 2 on a mask of 64 leaves the first two: 64 threads would spend most of their time throttled.

    Raises:
        BadInput: E-cores.
    """
    mask = _affinity()
    if declared := os.environ.get("MOE_CORES", "").strip():
        mask = _declared_cores(declared, mask)
    quota = cgroup_cpu_quota()
    return tuple(mask if quota is None else mask[: max(1, int(quota))])


def default_threads() -> int:
    """Threads of an engine unless declared: one core is left to the system and the harness."""
    return max(1, len(reserved_cores()) - 1)


def _affinity() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _declared_cores(text: str, mask: list[int]) -> list[int]:
    cores: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if match is None:
            raise BadInput("E-cores", f"expected cores such as 0-3,8, got {text!r}", where="MOE_CORES")
        low, high = int(match[1]), int(match[2] or match[1])
        cores.update(range(low, min(high, mask[-1] + 1) + 1))  # one core too many is enough to be refused
    if not cores or cores - set(mask):
        raise BadInput(
            "E-cores",
            f"{text!r} is not within the cores that this process may use, {_ranges(mask)}",
            hint="correct it, or widen the affinity mask (taskset, cpuset) of the process",
            where="MOE_CORES",
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


def _physical_cores() -> int:
    """Pairs of package and core among the processors; 0 where the kernel does not say."""
    records = _read("proc/cpuinfo").split("\n\n")
    found = {(_field(record, "physical id"), _field(record, "core id")) for record in records}
    return len(found - {("", "")})


def _governor(cores: tuple[int, ...]) -> str:
    found = {_read(f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor").strip() or "unknown" for core in cores}
    return found.pop() if len(found) == 1 else "mixed: " + ", ".join(sorted(found))


# ---- processor and memory --------------------------------------------------------------------------------------------


def instruction_sets(flags: str) -> tuple[str, ...]:
    """Choose the relevant ones from the kernel's list of processor flags, sorted."""
    return tuple(sorted({_RENAMED.get(flag, flag) for flag in flags.split()} & ISA_WORDS))


def _cpu_fields() -> dict[str, str]:
    """The first processor's record of ``/proc/cpuinfo``."""
    record = _read("proc/cpuinfo").partition("\n\n")[0]
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in record.splitlines())}


def _field(record: str, name: str) -> str:
    match = re.search(rf"^{name}\s*:\s*(.*)$", record, re.MULTILINE)
    return match[1] if match else ""


def _memory_fields() -> dict[str, int]:
    """``/proc/meminfo`` in bytes."""
    rows = re.findall(r"^(\w+):\s+(\d+) kB$", _read("proc/meminfo"), re.MULTILINE)
    return {name: int(kib) * 1024 for name, kib in rows}


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0


def _free_bytes(folder: Path) -> int:
    for place in (folder, *folder.parents):
        if place.is_dir():
            return shutil.disk_usage(place).free
    return 0


# ---- control groups --------------------------------------------------------------------------------------------------


def cgroup_memory_bytes() -> int | None:
    """The smallest memory limit of our control group and those above it; None for no limit."""
    texts = [_read(f"{group}/memory.max") for group in _control_groups("")]
    texts += [_read(f"{group}/memory.limit_in_bytes") for group in _control_groups("memory")]
    limits = [int(text) for text in texts if text.strip().isdigit()]
    return min((limit for limit in limits if 0 < limit < _UNLIMITED), default=None)


def cgroup_cpu_quota() -> float | None:
    """The smallest CPU quota of our control group and those above it, in CPU seconds a second; None for no limit."""
    texts = [_read(f"{group}/cpu.max") for group in _control_groups("")]
    texts += [
        _read(f"{group}/cpu.cfs_quota_us") + " " + _read(f"{group}/cpu.cfs_period_us")
        for group in _control_groups("cpu")
    ]
    matches = [re.fullmatch(r"\s*(\d+)\s+(\d+)\s*", text) for text in texts]  # no match: "max" or -1, for no limit
    return min((int(match[1]) / int(match[2]) for match in matches if match and int(match[2])), default=None)


def _control_groups(controller: str) -> list[str]:
    """Folders of our control group and of each one above it.

    In a container the path can be the host's, which is not mounted there; then only the last, the mount itself, exists.

    Args:
        controller: Controller of a version 1 hierarchy; empty for version 2.
    """
    for line in _read("proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller in controllers.split(","):
            group = Path(path.strip("/"))
            return [str(Path("sys/fs/cgroup", controller, part)) for part in (group, *group.parents)]
    return []


# ---- GPUs ------------------------------------------------------------------------------------------------------------


def probe_gpus() -> tuple[Gpu, ...]:
    """The GPUs that an engine would see, in PCI order: those of ``nvidia-smi`` within ``CUDA_VISIBLE_DEVICES``.

    A driver that does not answer is a warning and no GPU: no case that needs one is then placed here.
    """
    program = shutil.which("nvidia-smi")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if program is None or visible == "":
        return ()
    command = (program, f"--query-gpu={','.join(_GPU_QUERY)}", "--format=csv,noheader,nounits")
    try:
        result = run_once(ProcessSpec(command, env=clean_environment(), timeout_s=_GPU_TIMEOUT_S))
    except HarnessError as error:
        _LOG.warning("no GPU is used: %s", error)
        return ()
    if not result.ok:
        _LOG.warning("no GPU is used: nvidia-smi failed: %s", (result.stdout + result.stderr).strip()[:500])
        return ()
    return visible_gpus(parse_gpus(result.stdout), visible)


def parse_gpus(text: str) -> tuple[Gpu, ...]:
    """Read the rows of ``nvidia-smi``; memory that it does not tell (devices that share the host's) is 0."""
    rows = [row for row in csv.reader(text.splitlines(), skipinitialspace=True) if len(row) == len(_GPU_QUERY)]
    return tuple(
        Gpu(name=name, vram_bytes=int(mib) * _MIB if mib.isdigit() else 0, driver=driver, uuid=uuid)
        for name, mib, driver, uuid in rows
    )


def visible_gpus(gpus: tuple[Gpu, ...], visible: str | None) -> tuple[Gpu, ...]:
    """Apply ``CUDA_VISIBLE_DEVICES`` as CUDA does: indices or beginnings of uuids, up to the first that is invalid.

    Slices of a GPU (``MIG-...``) are not known here and count as invalid.
    """
    if visible is None:
        return gpus
    chosen: set[int] = set()
    for word in map(str.strip, visible.split(",")):
        by_uuid = word.startswith("GPU-")
        found = [i for i, gpu in enumerate(gpus) if (gpu.uuid.startswith(word) if by_uuid else word == str(i))]
        if len(found) != 1:
            break
        chosen.update(found)
    return tuple(gpu for index, gpu in enumerate(gpus) if index in chosen)


def _read(path: str) -> str:
    """Contents of a file below the root; empty where it can't be read."""
    try:
        return (_ROOT / path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
