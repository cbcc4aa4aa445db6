"""GPUs as telemetry sees them: a source of readings, and what a process's readings amount to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol, TypeVar

from harness.domain.measurement import GpuState

_Number = TypeVar("_Number", int, float)

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
    """All GPUs at one moment.

    Attributes:
        readings: One of each GPU.
        own: The engine's own processes till then.
        here: Which of the readings' process ids meant a process here at that moment: in a container the driver may
            speak of processes by numbers of the host.
    """

    readings: tuple[GpuReading, ...]
    own: frozenset[int]
    here: frozenset[int]


def summarize(before: Sequence[GpuReading], looks: Sequence[Look]) -> tuple[GpuState, ...]:
    """What the readings around and during one process amount to.

    Args:
        before: One reading of each GPU before the engine started.
        looks: Readings while it ran.
    """
    return tuple(_state(first, [look for look in looks if _of(look, first.uuid)]) for first in before)


def _of(look: Look, uuid: str) -> GpuReading | None:
    return next((reading for reading in look.readings if reading.uuid == uuid), None)


def _state(first: GpuReading, looks: Sequence[Look]) -> GpuState:
    readings = [reading for look in looks if (reading := _of(look, first.uuid))]
    busy = [reading for reading in readings if reading.busy]
    own = frozenset().union(*(look.own for look in looks))
    here = frozenset().union(*(look.here for look in looks))
    seen = {pid for reading in readings for pid in reading.pids}
    # An engine whose process the driver calls by a number of the host is one of those that are nobody's here.
    nameless = not seen & own and bool(seen - own - here - set(first.pids))
    return GpuState(
        uuid=first.uuid,
        driver=first.driver,
        used=bool(seen & own) or nameless or (not seen and _grew(first, readings)),
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
