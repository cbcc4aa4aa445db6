"""What a calibration found, cell by cell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from harness.domain.arm import Arm
from harness.domain.cell import Cell
from harness.domain.node import NodeFacts
from harness.domain.spread import Spread
from harness.domain.verdict import Estimate
from harness.domain.words import Throughput
from harness.domain.workload import Timed
from harness.judging.calibration import Alarms, Alike, pooled_alarms


@dataclass(frozen=True, slots=True)
class Target:
    """What is calibrated together: all workloads of one arm are measured by the same processes.

    Attributes:
        arm: The arm that stands for its cells.
        workloads: Its workloads.
    """

    arm: Arm
    workloads: tuple[Timed, ...]


@dataclass(frozen=True, slots=True)
class Plant:
    """A slowdown that was put into the candidate, and what the judge made of it.

    Attributes:
        what: What was done, in words.
        loss: Share of the speed that was taken away; ``None`` where that is not known beforehand.
        required: The judge has to find it; otherwise it is shown only.
        throughput: The judge's word; ``None`` where there was no verdict.
        ratio: What was measured.
        reason: The verdict's reason, or why there is none.
    """

    what: str
    loss: float | None
    required: bool
    throughput: Throughput | None
    ratio: Estimate | None
    reason: str

    @property
    def found(self) -> bool:
        """Whether the judge found it."""
        return self.throughput is Throughput.REGRESSED

    @property
    def missed(self) -> bool:
        """Whether it had to be found and another word, decided or not, came out."""
        return self.required and self.throughput is not None and not self.found


@dataclass(frozen=True, slots=True)
class CellResult:
    """One cell.

    Attributes:
        cell: The cell.
        alike: The arm against itself; ``None`` where there were too few quads.
        process_s: Mean wall time of a process start, seconds.
        load_s: Mean loading time, seconds, where the engine says.
        earlier: What was known of it before.
        plants: The planted slowdowns.
        faults: Why it is in quarantine; empty where it is not.
        trouble: Why it could not be calibrated; empty where it could.
        needed: Minutes of the whole calibration that would do; ``None``: these did, or it is not a matter of time.
    """

    cell: Cell
    alike: Alike | None = None
    process_s: float = 0.0
    load_s: float | None = None
    earlier: Spread | None = None
    plants: tuple[Plant, ...] = ()
    faults: tuple[str, ...] = ()
    trouble: str = ""
    needed: float | None = None

    @property
    def word(self) -> str:
        """``fine``, ``quarantined``, ``unproven`` (a plant had no verdict), ``not calibrated`` or ``as before``.

        The last is not calibrated either, but what earlier calibrations found is still used.
        """
        if self.trouble:
            return "as before" if self.earlier else "not calibrated"
        if self.faults:
            return "quarantined"
        return "unproven" if any(plant.required and plant.throughput is None for plant in self.plants) else "fine"


@dataclass(frozen=True, slots=True)
class Calibration:
    """A whole calibration.

    Attributes:
        node: The node.
        when: When it began, UTC.
        seconds: How long it took.
        cells: What was found.
    """

    node: NodeFacts
    when: datetime
    seconds: float
    cells: tuple[CellResult, ...]

    @property
    def minutes_needed(self) -> int | None:
        """Whole minutes that would do for every cell for which that can be said."""
        told = [cell.needed for cell in self.cells if cell.needed is not None]
        return math.ceil(max(told)) if told else None

    @property
    def alarms(self) -> tuple[Alarms, ...]:
        """False alarms over all cells."""
        known = [cell.alike for cell in self.cells if cell.alike]
        return pooled_alarms(known) if known else ()
