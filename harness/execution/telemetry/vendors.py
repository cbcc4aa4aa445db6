"""Whose GPUs this machine has, and what watches them: one source for each vendor, or the reason why there is none."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping, Sequence

from harness.domain.node import Gpu
from harness.execution import machine
from harness.execution.machine import read
from harness.execution.telemetry.amd import AmdSource
from harness.execution.telemetry.gpus import GpuSource, NoGpus
from harness.execution.telemetry.nvml import open_nvidia

_NVIDIA, _AMD, _INTEL = "0x10de", "0x1002", "0x8086"
_NO_PROGRAM = "a GPU of NVIDIA is not watched: it is found by nvidia-smi, which is not installed"
_NO_INTEL = "a GPU of Intel is not watched: nothing here reads its counters"
_NO_APPLE = "the GPU of Apple's processors is not watched: its counters are for root alone (powermetrics)"


def open_gpus(gpus: Sequence[Gpu]) -> GpuSource:
    """The source for the visible GPUs of this machine; one that tells why, where they can't be watched.

    Args:
        gpus: Those that were probed, which are NVIDIA's.
    """
    if gpus:
        return open_nvidia(gpus)
    found = _devices()
    if _AMD in found:
        return AmdSource(found[_AMD])
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        return NoGpus(_NO_APPLE)
    if _NVIDIA in found and shutil.which("nvidia-smi") is None:  # with it they are hidden on purpose
        return NoGpus(_NO_PROGRAM)
    return NoGpus(_NO_INTEL if _INTEL in found else "")


def _devices() -> Mapping[str, list[str]]:
    """Folders of the GPUs' devices by the PCI number of their vendor.

    Only those whose render node is there: ``/sys`` of a container tells of GPUs that it was not given.
    """
    found: dict[str, list[str]] = {}
    for node in sorted(machine.ROOT.glob("sys/class/drm/renderD*")):
        if (machine.ROOT / "dev" / "dri" / node.name).exists():
            device = f"{node.relative_to(machine.ROOT)}/device"
            found.setdefault(read(f"{device}/vendor").strip(), []).append(device)
    return found
