"""GPUs as telemetry sees them: a source of readings, and what a process's readings amount to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol, TypeAlias, TypeVar

from harness.domain.measurement import GpuState

_GROWN_BYTES = 64 * 1024**2
"""A compute context alone holds more than this on any GPU; what is less is noise of the driver."""


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One look at one GPU; ``None``: the driver does not tell. See ``GpuState`` for units.

    Attributes:
        busy: Whether its multiprocessors worked lately.
        slowdowns: Why its clocks are held down now.
        pids: Processes that compute on it, by the numbers of the driver's namespace: in a container not by ours.
    """

    uuid: str
    driver: str
    busy: bool = False
    sm_mhz: float | None = None
    memory_mhz: float | None = None
    performance_state: int | None = None
    power_limit_w: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    slowdowns: tuple[str, ...] = ()
    memory_used_bytes: int | None = None
    pids: tuple[int, ...] = ()


class GpuSource(Protocol):
    """Where readings come from."""

    @property
    def unavailable(self) -> str:
        """Why there are none although there are GPUs; empty otherwise."""
        ...

    def read(self) -> Sequence[GpuReading]:
        """One reading of each visible GPU; GPUs that do not answer are left out."""
        ...

    def close(self) -> None:
        """Let go of the driver."""
        ...


@dataclass(frozen=True, slots=True)
class NoGpus:
    """The source of a machine without GPUs, or of one where they can't be watched.

    Attributes:
        unavailable: Why; empty where there is no GPU.
    """

    unavailable: str = ""

    def read(self) -> Sequence[GpuReading]:
        """Nothing."""
        return ()

    def close(self) -> None:
        """Nothing to let go of."""


@dataclass(frozen=True, slots=True)
class Look:
    """All GPUs at one moment, and the engine's own processes then."""

    readings: tuple[GpuReading, ...]
    own: frozenset[int]


def summarize(
    before: Sequence[GpuReading], looks: Sequence[Look], is_visible: Callable[[int], bool]
) -> tuple[GpuState, ...]:
    """What the readings around and during one process amount to.

    Args:
        before: One reading of each GPU before the engine started.
        looks: Readings while it ran.
        is_visible: Whether a process id means a process here: in a container the driver's numbers do not.
    """
    return tuple(_state(first, _of_gpu(first.uuid, looks), is_visible) for first in before)


_Seen: TypeAlias = list[tuple[GpuReading, frozenset[int]]]
_Number = TypeVar("_Number", int, float)


def _of_gpu(uuid: str, looks: Sequence[Look]) -> _Seen:
    return [(reading, look.own) for look in looks for reading in look.readings if reading.uuid == uuid]


def _state(first: GpuReading, seen: _Seen, is_visible: Callable[[int], bool]) -> GpuState:
    readings = [reading for reading, _ in seen]
    busy = [reading for reading in readings if reading.busy]
    own = frozenset().union(*(pids for _, pids in seen))
    strangers = {pid for reading in readings for pid in reading.pids if pid not in own and not is_visible(pid)}
    strangers -= set(first.pids)
    seen_by_name = any(own & set(reading.pids) for reading in readings)
    nameless = bool(strangers) and not seen_by_name
    return GpuState(
        uuid=first.uuid,
        driver=first.driver,
        used=seen_by_name or nameless or (not any(r.pids for r in readings) and _grew(first, readings)),
        samples=len(readings),
        sm_mhz=_median([reading.sm_mhz for reading in busy]),
        memory_mhz=_median([reading.memory_mhz for reading in busy]),
        performance_state=min(_known([reading.performance_state for reading in readings]), default=None),
        power_limit_w=first.power_limit_w,
        power_w=max(_known([reading.power_w for reading in readings]), default=None),
        temperature_c=max(_known([reading.temperature_c for reading in readings]), default=None),
        slowdowns=tuple(sorted({reason for reading in readings for reason in reading.slowdowns})),
        memory_before_bytes=first.memory_used_bytes,
        memory_peak_bytes=max(_known([reading.memory_used_bytes for reading in readings]), default=None),
        # In a container the engine is one of the strangers: that one is not foreign.
        foreign_processes=max([len(first.pids), *(len(set(r.pids) - own) - nameless for r in readings)]),
    )


def _grew(first: GpuReading, readings: Sequence[GpuReading]) -> bool:
    """Whether memory in use grew: the last resort, where the driver names no processes."""
    peak = max(_known([reading.memory_used_bytes for reading in readings]), default=0)
    return first.memory_used_bytes is not None and peak - first.memory_used_bytes > _GROWN_BYTES


def _known(values: Sequence[_Number | None]) -> list[_Number]:
    return [value for value in values if value is not None]


def _median(values: Sequence[float | None]) -> float | None:
    known = _known(values)
    return median(known) if known else None
