"""The budget of a job in minutes: is there time for one more quad, by those measured so far?"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from harness.domain.measurement import NS, ProcessRun


@dataclass(frozen=True, slots=True)
class _Unit:
    """A measured quad, or block: seconds in all, and of them those inside the repetitions of each workload."""

    seconds: float
    timed_s: dict[str, float]


class Budget:
    """Runs from its making on: models are prepared by then, burn-ins still to come.

    Args:
        minutes: The budget; ``None`` is endless.
        clock: Seconds, monotonic; replaced in tests.
    """

    def __init__(self, minutes: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._minutes = minutes
        self._clock = clock
        self._began = clock()
        self._units: list[_Unit] = []

    @property
    def spent_minutes(self) -> float:
        """Minutes gone."""
        return (self._clock() - self._began) / 60

    def measured(self, seconds: float, runs: Sequence[ProcessRun]) -> None:
        """Learn from a whole quad.

        Args:
            seconds: How long it took.
            runs: Its processes.
        """
        timed: dict[str, float] = {}
        for samples in (samples for run in runs for samples in run.samples):
            timed[samples.workload] = timed.get(samples.workload, 0.0) + sum(samples.all_ns) / NS
        self._units.append(_Unit(seconds, timed))

    def allows_another(self, workloads: Collection[str]) -> bool:
        """Whether one more quad of some workloads would end in time; the first one is always allowed.

        Expected is the mean of those measured, without the time that they spent on workloads that are decided by now.

        Args:
            workloads: Names of those that it would measure.
        """
        if self._minutes is None or not self._units:
            return True
        costs = [
            unit.seconds - sum(seconds for name, seconds in unit.timed_s.items() if name not in workloads)
            for unit in self._units
        ]
        return self.spent_minutes * 60 + sum(costs) / len(costs) <= self._minutes * 60
