"""NVIDIA's management library as a source of readings. The only module that imports its bindings."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from harness.domain.node import Gpu
from harness.execution.telemetry.gpus import GpuReading, GpuSource, NoGpus

_INSTALL = "pip install 'moe-harness[gpu]'"
_SLOWDOWNS = {
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
"""Bits of the driver's answer, by the words of ``nvidia-smi``. The lowest, idle, holds nothing down."""

_UNKNOWN_STATE = 32


def open_nvidia(gpus: Sequence[Gpu]) -> GpuSource:
    """The source for the visible GPUs of a node; one that tells why, where they can't be watched.

    Args:
        gpus: The GPUs as probed, at least one.
    """
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        return NoGpus(f"nvidia-ml-py is not installed: {_INSTALL}")
    return open_nvml(nvml, gpus)


def open_nvml(nvml: Any, gpus: Sequence[Gpu]) -> GpuSource:
    """The source for some GPUs from the bindings.

    Args:
        nvml: The module ``pynvml``.
        gpus: The GPUs as probed.
    """
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return NoGpus(f"NVML does not start: {error}")
    try:
        return NvmlSource(nvml, {gpu.uuid: nvml.nvmlDeviceGetHandleByUUID(gpu.uuid) for gpu in gpus})
    except nvml.NVMLError as error:
        nvml.nvmlShutdown()
        return NoGpus(f"NVML does not know a GPU that nvidia-smi lists: {error}")


class NvmlSource:
    """Readings from NVML.

    Args:
        nvml: The module ``pynvml``, initialized.
        handles: Its handle for each GPU, by uuid.
    """

    unavailable = ""

    def __init__(self, nvml: Any, handles: dict[str, Any]) -> None:
        self._nvml = nvml
        self._handles = handles

    def read(self) -> Sequence[GpuReading]:
        """One reading of each GPU; one that has fallen off the bus gives a reading without figures."""
        driver = self._ask(self._nvml.nvmlSystemGetDriverVersion) or "unknown"
        return tuple(self._reading(uuid, handle, driver) for uuid, handle in self._handles.items())

    def close(self) -> None:
        """Let go of the driver. May be called once."""
        self._nvml.nvmlShutdown()

    def _reading(self, uuid: str, handle: Any, driver: str) -> GpuReading:
        nvml, ask = self._nvml, self._ask
        utilization = ask(nvml.nvmlDeviceGetUtilizationRates, handle)
        memory = ask(nvml.nvmlDeviceGetMemoryInfo, handle)
        state = ask(nvml.nvmlDeviceGetPerformanceState, handle)
        limit, draw = ask(nvml.nvmlDeviceGetEnforcedPowerLimit, handle), ask(nvml.nvmlDeviceGetPowerUsage, handle)
        held = self._held_down(handle)
        return GpuReading(
            uuid=uuid,
            driver=driver,
            busy=utilization is not None and utilization.gpu > 0,
            sm_mhz=ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            memory_mhz=ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM),
            performance_state=None if state == _UNKNOWN_STATE else state,
            power_limit_w=None if limit is None else limit / 1000,
            power_w=None if draw is None else draw / 1000,
            temperature_c=ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            slowdowns=tuple(word for bit, word in _SLOWDOWNS.items() if held & bit),
            memory_used_bytes=None if memory is None else memory.used,
            pids=tuple(process.pid for process in ask(nvml.nvmlDeviceGetComputeRunningProcesses, handle) or ()),
        )

    def _held_down(self, handle: Any) -> int:
        """Bits of the reasons; drivers and bindings before version 535 have the older name of the question alone."""
        names = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
        questions = [getattr(self._nvml, name) for name in names if hasattr(self._nvml, name)]
        return next((held for question in questions if (held := self._ask(question, handle)) is not None), 0)

    def _ask(self, question: Callable[..., Any], *about: Any) -> Any:
        """The answer, or None where this driver or device has none."""
        try:
            return question(*about)
        except self._nvml.NVMLError:
            return None
