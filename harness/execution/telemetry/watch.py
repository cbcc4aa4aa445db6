"""Watch the machine around one engine process, and say in the end what it was like."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from harness.domain.measurement import Conditions
from harness.execution.cores import governor, known_core, reserved_cores
from harness.execution.page_cache import resident_share
from harness.execution.process import ProcessResult
from harness.execution.supervisor import descendants
from harness.execution.telemetry.counters import Counters, Shares, huge_pages, mean_mhz, queue_waits_s
from harness.execution.telemetry.gpus import GpuSource, Look, summarize

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 1.0
"""Looks come closer at first, so that short processes are seen too, then once a second: a look takes about a
millisecond of a core that the engine does not have."""
_JOIN_S = 5.0
"""How long an unfinished look is waited for: what was seen till then counts."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where and how an engine is about to run.

    Attributes:
        cpus: Cores it is pinned to; empty where it is not.
        threads: Its compute threads.
        model: The files of its model.
    """

    cpus: tuple[int, ...]
    threads: int
    model: tuple[Path, ...]


class Watch:
    """One process, from just before its start to its end.

    Make it right before the process is started; give ``started`` to the supervisor; call ``conditions`` once.

    Args:
        place: Where and how it runs.
        gpus: Source of readings.
    """

    def __init__(self, place: Place, gpus: GpuSource) -> None:
        self._place = place
        self._gpus = gpus
        self._cores: Sequence[int] = place.cpus or reserved_cores()
        self._cached = _cached(place.model)
        self._load = os.getloadavg()[0]
        self._gpus_before = gpus.read()
        self._sampler: _Sampler | None = None
        self._before = Counters.now(self._cores)

    def started(self, pid: int) -> None:
        """Begin to look at a process."""
        self._sampler = _Sampler(pid, self._cores, self._gpus)
        self._sampler.start()

    def conditions(self, result: ProcessResult) -> Conditions:
        """What the machine was like.

        Args:
            result: The process, which has ended.
        """
        after = Counters.now(self._cores)
        sampler = self._sampler
        if sampler is not None:
            sampler.stop()
        shares = Shares.between(self._before, after, result.user_s + result.system_s)
        return Conditions(
            niceness=os.getpriority(os.PRIO_PROCESS, 0),
            cpus=self._place.cpus,
            threads=self._place.threads,
            load_before=self._load,
            numa_nodes=tuple(sorted({known_core(cpu).node for cpu in self._cores})),
            governor=governor(self._cores),
            mhz=median(sampler.mhz) if sampler and sampler.mhz else None,
            throttled=shares.throttled,
            huge_pages=huge_pages(),
            model_cached=self._cached,
            foreign_load=shares.foreign_load,
            steal=shares.steal,
            queue_wait_s=sum(sampler.waits_s.values()) if sampler and sampler.waits_s else None,
            involuntary_switches=result.involuntary_switches,
            major_faults=result.major_faults,
            swapped_bytes=shares.swapped_bytes,
            gpus=summarize(self._gpus_before, sampler.looks if sampler else ()),
            gpu_telemetry=self._gpus.unavailable,
        )


class _Sampler(threading.Thread):
    """Looks at a running process from a thread of the harness.

    Args:
        pid: The engine.
        cores: The cores that it may run on.
        gpus: Source of readings.
    """

    def __init__(self, pid: int, cores: Sequence[int], gpus: GpuSource) -> None:
        super().__init__(name="moe-telemetry", daemon=True)
        self._pid = pid
        self._cores = cores
        self._gpus = gpus
        self._own = {pid}
        self._over = threading.Event()
        self.mhz: list[float] = []
        self.waits_s: dict[int, float] = {}
        self.looks: list[Look] = []

    def run(self) -> None:
        """Look again and again, at growing distances."""
        pause_s = _FIRST_PAUSE_S
        while not self._over.wait(pause_s):
            self._look()
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        self.join(_JOIN_S)

    def _look(self) -> None:
        self._own |= {self._pid, *descendants(self._pid)}
        self.waits_s |= queue_waits_s(sorted(self._own))
        clock = mean_mhz(self._cores)
        if clock is not None:
            self.mhz.append(clock)
        readings = tuple(self._gpus.read())
        if readings and not self._over.is_set():
            here = {pid for reading in readings for pid in reading.pids if Path(f"/proc/{pid}").exists()}
            self.looks.append(Look(readings, frozenset(self._own), frozenset(here)))


def _cached(model: Sequence[Path]) -> float | None:
    with suppress(OSError):  # an engine that misses its model says so itself
        return resident_share(model)
    return None
