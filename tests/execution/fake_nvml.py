"""A FAKE of the module ``pynvml``, for machines without an NVIDIA GPU. Marked as such; never shipped.

It has the functions that the harness calls, with their real names, units and the error class; the answers are its
attributes. What the real library answers was watched on an H200, see ``test_nvml.py``.
"""

# Names and arguments of the real library:
# ruff: noqa: N802, ARG002

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


class NVMLError(Exception):
    """As the real one."""


class FakeNvml:
    """One or more GPUs that answer as told; ``None`` is "not supported".

    Args:
        uuids: The GPUs.
    """

    NVMLError = NVMLError
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, *uuids: str) -> None:
        self.uuids = uuids
        self.open = 0
        self.starts = True
        self.driver: str | None = "580.159.04"
        self.reasons: int | None = 0x1
        self.busy: int | None = 97
        self.clocks: dict[int, int] | None = {self.NVML_CLOCK_SM: 1980, self.NVML_CLOCK_MEM: 3201}
        self.state: int | None = 0
        self.limit_mw: int | None = 700_000
        self.draw_mw: int | None = 412_500
        self.celsius: int | None = 44
        self.used: int | None = 5 << 30
        self.pids: tuple[int, ...] | None = ()

    def nvmlInit(self) -> None:
        if not self.starts:
            raise NVMLError("Driver Not Loaded")
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid not in self.uuids:
            raise NVMLError("Not Found")
        return uuid

    def nvmlSystemGetDriverVersion(self) -> Any:
        return _told(self.driver)

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: str) -> Any:
        return _told(self.reasons)

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> Any:
        return SimpleNamespace(gpu=_told(self.busy), memory=1)

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:
        return SimpleNamespace(used=_told(self.used))

    def nvmlDeviceGetPerformanceState(self, handle: str) -> Any:
        return _told(self.state)

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: str) -> Any:
        return _told(self.limit_mw)

    def nvmlDeviceGetPowerUsage(self, handle: str) -> Any:
        return _told(self.draw_mw)

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> Any:
        return _told(self.clocks)[kind]

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> Any:
        return _told(self.celsius)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> Any:
        return [SimpleNamespace(pid=pid) for pid in _told(self.pids)]


def _told(answer: Any) -> Any:
    if answer is None:
        raise NVMLError("Not Supported")
    return answer
