"""AMD's GPUs as a source of readings: files that the kernel's ``amdgpu`` and ``amdkfd`` drivers have below ``/sys``.

Nothing to install and nothing to ask for: any user may read them. What they do not tell is why clocks are held down
(that is in a binary table of many layouts), the performance state, and processes that compute without ROCm.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.execution import machine
from harness.execution.machine import read, read_number
from harness.execution.telemetry.gpus import GpuReading

_PER_MILLE, _PER_MILLION = 1000, 1_000_000
_KFD = "sys/class/kfd/kfd"


@dataclass(frozen=True, slots=True)
class _Card:
    """One GPU.

    Attributes:
        uuid: The maker's number of the device; of those that have none the PCI address.
        device: Its folder, below the root.
        sensors: The folder of its sensors; empty where it has none.
        compute_id: By what number ``amdkfd`` knows it; empty where it does not.
    """

    uuid: str
    device: str
    sensors: str
    compute_id: str


class AmdSource:
    """Readings from the kernel's files.

    Args:
        devices: Folders of the GPUs, below the root: ``sys/class/drm/renderD128/device``.
    """

    unavailable = ""

    def __init__(self, devices: Sequence[str]) -> None:
        self._cards = [_card(device) for device in devices]
        self._driver = f"amdgpu {read('sys/module/amdgpu/version').strip() or f'of Linux {platform.release()}'}"

    def read(self) -> Sequence[GpuReading]:
        """One reading of each GPU; one that sleeps or is gone gives a reading without figures."""
        users = _compute_processes()
        return tuple(self._reading(card, users.get(card.compute_id, ())) for card in self._cards)

    def close(self) -> None:
        """Nothing to let go of."""

    def _reading(self, card: _Card, pids: tuple[int, ...]) -> GpuReading:
        def sensor(name: str, scale: int) -> float | None:
            value = read_number(f"{card.sensors}/{name}") if card.sensors else None
            return None if value is None else value / scale

        average = sensor("power1_average", _PER_MILLION)
        return GpuReading(
            uuid=card.uuid,
            driver=self._driver,
            busy=bool(read_number(f"{card.device}/gpu_busy_percent")),
            sm_mhz=_current_mhz(f"{card.device}/pp_dpm_sclk"),
            memory_mhz=_current_mhz(f"{card.device}/pp_dpm_mclk"),
            power_limit_w=sensor("power1_cap", _PER_MILLION),
            power_w=sensor("power1_input", _PER_MILLION) if average is None else average,
            temperature_c=sensor("temp1_input", _PER_MILLE),
            memory_used_bytes=read_number(f"{card.device}/mem_info_vram_used"),
            pids=pids,
        )


def _card(device: str) -> _Card:
    slot = re.search(r"^PCI_SLOT_NAME=(\S+)$", read(f"{device}/uevent"), re.MULTILINE)
    node = Path(device).parent.name
    named = read(f"{device}/unique_id").strip() or (slot[1] if slot else node)
    return _Card(f"AMD-{named}", device, _first(f"{device}/hwmon/hwmon*"), _compute_id(node.removeprefix("renderD")))


def _compute_id(minor: str) -> str:
    """The number of ``amdkfd``: both drivers know the render node."""
    nodes = sorted(machine.ROOT.glob(f"{_KFD}/topology/nodes/*/properties"))
    for properties in (str(path.relative_to(machine.ROOT)) for path in nodes):
        if re.search(rf"^drm_render_minor {minor}$", read(properties), re.MULTILINE):
            return read(f"{Path(properties).parent}/gpu_id").strip()
    return ""


def _compute_processes() -> dict[str, tuple[int, ...]]:
    """Processes with memory on a GPU, by the GPU's number at ``amdkfd``."""
    users: dict[str, tuple[int, ...]] = {}
    for held in sorted(machine.ROOT.glob(f"{_KFD}/proc/*/vram_*")):
        if read_number(str(held.relative_to(machine.ROOT))):
            gpu = held.name.removeprefix("vram_")
            users[gpu] = (*users.get(gpu, ()), int(held.parent.name))
    return users


def _current_mhz(path: str) -> float | None:
    """The level with a star of a file like ``0: 500Mhz`` and ``1: 2100Mhz *``."""
    match = re.search(r"^\d+:\s*(\d+)\s*[Mm][Hh]z\s*\*", read(path), re.MULTILINE)
    return float(match[1]) if match else None


def _first(pattern: str) -> str:
    """The first that matches, below the root; empty where none does."""
    found = sorted(machine.ROOT.glob(pattern))
    return str(found[0].relative_to(machine.ROOT)) if found else ""
