"""What this machine is: read from ``/proc``, ``/sys`` and the GPU's driver, never declared.

What can't be read has a value that says so (``unknown``, 0, None): a machine without ``/proc`` can still plan.
"""

from __future__ import annotations

import csv
import logging
import os
import platform
import re
import shutil

from harness.domain.errors import HarnessError
from harness.domain.node import ISA_WORDS, Gpu, NodeFacts
from harness.execution import machine
from harness.execution.cgroups import cgroup_memory_bytes
from harness.execution.cores import governor, reserved_cores
from harness.execution.machine import read
from harness.execution.process import ProcessResult, ProcessSpec, clean_environment, run_once

_LOG = logging.getLogger(__name__)
_GPU_QUERY = ("name", "memory.total", "driver_version", "uuid")
_GPU_ARCH = "compute_cap"
"""Older drivers do not know the word, and then answer nothing at all."""
_GPU_TIMEOUT_S = 60.0
"""Without its persistence daemon a driver on a host of eight GPUs takes ten seconds and more to answer."""
_ARCH = re.compile(r"\d+\.\d+")
_MIB = 1024**2

_RENAMED = {"asimd": "neon", "asimddp": "dotprod", "pni": "sse3"}


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
        governor=governor(reserved_cores()),
        cgroup_memory_bytes=cgroup_memory_bytes(),
        numa_nodes=max(1, len(list(machine.ROOT.glob("sys/devices/system/node/node[0-9]*")))),
        swap_bytes=memory.get("SwapTotal", 0),
        os=platform.system().lower(),
        machine=platform.machine(),
    )


# ---- processor and memory --------------------------------------------------------------------------------------------


def instruction_sets(flags: str) -> tuple[str, ...]:
    """Choose the relevant ones from the kernel's list of processor flags, sorted."""
    return tuple(sorted({_RENAMED.get(flag, flag) for flag in flags.split()} & ISA_WORDS))


def _cpu_fields() -> dict[str, str]:
    """The first processor's record of ``/proc/cpuinfo``."""
    record = read("proc/cpuinfo").partition("\n\n")[0]
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in record.splitlines())}


def _memory_fields() -> dict[str, int]:
    """``/proc/meminfo`` in bytes."""
    rows = re.findall(r"^(\w+):\s+(\d+) kB$", read("proc/meminfo"), re.MULTILINE)
    return {name: int(kib) * 1024 for name, kib in rows}


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0


# ---- GPUs ------------------------------------------------------------------------------------------------------------


def probe_gpus() -> tuple[Gpu, ...]:
    """The GPUs that an engine would see, in PCI order: those of ``nvidia-smi`` within ``CUDA_VISIBLE_DEVICES``.

    A driver that does not answer is a warning and no GPU: no case that needs one is then placed here.
    """
    program = shutil.which("nvidia-smi")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if program is None or visible == "":
        return ()
    try:
        result = _ask_driver(program, (*_GPU_QUERY, _GPU_ARCH))
        if not result.ok and _GPU_ARCH in result.stdout + result.stderr:
            result = _ask_driver(program, _GPU_QUERY)
    except HarnessError as error:
        _LOG.warning("no GPU is used: %s", error)
        return ()
    if not result.ok:
        _LOG.warning("no GPU is used: nvidia-smi failed: %s", (result.stdout + result.stderr).strip()[:500])
        return ()
    return visible_gpus(parse_gpus(result.stdout), visible)


def _ask_driver(program: str, fields: tuple[str, ...]) -> ProcessResult:
    command = (program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")
    return run_once(ProcessSpec(command, env=clean_environment(), timeout_s=_GPU_TIMEOUT_S))


def parse_gpus(text: str) -> tuple[Gpu, ...]:
    """Read the rows of ``nvidia-smi``; memory that it does not tell (devices that share the host's) is 0."""
    rows = [row for row in csv.reader(text.splitlines(), skipinitialspace=True) if len(row) >= len(_GPU_QUERY)]
    return tuple(
        Gpu(
            name=name,
            vram_bytes=int(mib) * _MIB if mib.isdigit() else 0,
            driver=driver,
            uuid=uuid,
            arch=next((word for word in arch if _ARCH.fullmatch(word)), ""),
        )
        for name, mib, driver, uuid, *arch in rows
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
