"""What is known of the scatter of a job's quads before it runs, and where that is from.

The nearest knowledge is taken, and always said: the cell itself; other cells of the same model and kind of workload;
the worst cell of the node. Where it is not known on which node a job will run, the worst of the known nodes that
belong to its class counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from harness.domain.arm import Arm
from harness.domain.cell import Cell, cell_of
from harness.domain.job import Job
from harness.domain.node import NodeClass, NodeFacts
from harness.domain.spread import Quarantine, Spread
from harness.running.known_tolerances import KnownTolerances
from harness.running.spread_file import CellEntry, NodeEntry, Record, SpreadFile

_ALIKE_DF, _WORST_DF = 4.0, 2.0
"""Another cell's spread is only a hint at this one's: it counts as no more quads than these."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The pooled spread of a cell."""

    cell: Cell
    quad_sd: float
    df: float
    when: datetime


class KnownSpreads:
    """Answers from a file of known spreads.

    Args:
        file: The file, read.
        node: The node that jobs will run on; ``None``: any known one of a job's class.
        outputs: What is known of outputs there.
    """

    def __init__(self, file: SpreadFile, node: NodeFacts | None, outputs: KnownTolerances | None = None) -> None:
        self._file = file
        self._node = node
        self._outputs = outputs

    def informed(self, job: Job) -> Job:
        """The job with what is known of its workloads and outputs, and with their quarantines."""
        if self._outputs is not None:
            job = self._outputs.informed(job)
        names = [workload.name for workload in job.workloads]
        found = [self.spread(job.node_class, job.arms, name) for name in names]
        return replace(
            job,
            spreads=tuple(spread for spread in found if spread is not None),
            quarantines=tuple(each for name in names for each in self.quarantines(job.node_class, job.arms, name)),
        )

    def spread(self, node_class: NodeClass, arms: Sequence[Arm], workload: str) -> Spread | None:
        """What is known of a workload's quads; of several arms or nodes the largest spread."""
        nodes = self._nodes(node_class)
        found = [spread for node in nodes if (spread := lookup(node, arms, workload)) is not None]
        if not found:
            return None
        worst = max(found, key=lambda spread: spread.quad_sd)
        if self._node is not None or len(found) == 1:
            return worst
        return replace(worst, source=f"{worst.source}, the worst of {len(found)} known nodes of {node_class.name}")

    def quarantines(self, node_class: NodeClass, arms: Sequence[Arm], workload: str) -> tuple[Quarantine, ...]:
        """Nodes on which a cell of the arms is quarantined."""
        wanted = {cell_of(arm, workload) for arm in arms}
        return tuple(
            Quarantine(workload, node.facts.fingerprint, _quarantine_reason(entry))
            for node in self._nodes(node_class)
            for entry in node.cells
            if entry.cell in wanted and entry.records[-1].quarantine
        )

    def process_seconds(self, job: Job) -> float | None:
        """Wall time of one process start of a job; ``None`` where nothing like it was ever calibrated."""
        known = [found for node in self._nodes(job.node_class) if (found := _process_seconds(node, job)) is not None]
        return max(known, default=None)

    def _nodes(self, node_class: NodeClass) -> list[NodeEntry]:
        if self._node is None:
            return [node for node in self._file.nodes.values() if not node_class.unmet(node.facts)]
        known = self._file.nodes.get(self._node.fingerprint)
        return [known] if known else []


def lookup(node: NodeEntry, arms: Sequence[Arm], workload: str) -> Spread | None:
    """What is known of a workload's quads on one node; of several arms the larger spread.

    Args:
        node: The node's entry.
        arms: The arms that are compared.
        workload: The workload's name.

    Returns:
        ``None`` where the node has no healthy cell.
    """
    found = [_lookup_cell(node, cell_of(arm, workload)) for arm in arms]
    known = [spread for spread in found if spread is not None]
    return max(known, key=lambda spread: spread.quad_sd, default=None)


def lookup_exact(file: SpreadFile, node: NodeFacts, cell: Cell) -> Spread | None:
    """What earlier calibrations found for one cell itself, quarantined ones left out."""
    known = file.nodes.get(node.fingerprint)
    entry = next((entry for entry in known.cells if entry.cell == cell), None) if known else None
    healthy = [record for record in entry.records if not record.quarantine] if entry else []
    if not healthy:
        return None
    sd, df = pooled(healthy)
    return Spread(cell.workload, sd, df, f"calibration of {healthy[-1].when:%Y-%m-%d}")


def _lookup_cell(node: NodeEntry, cell: Cell) -> Spread | None:
    pooled = [found for entry in node.cells if (found := _pooled(entry)) is not None]
    exact = next((found for found in pooled if found.cell == cell), None)
    if exact:
        return Spread(cell.workload, exact.quad_sd, exact.df, f"calibration of {exact.when:%Y-%m-%d}")
    alike = [found for found in pooled if (found.cell.model, found.cell.kind) == (cell.model, cell.kind)]
    near = _worst(alike) or _worst(pooled)
    if near is None:
        return None
    what = "of" if alike else "the worst of its node,"
    source = f"calibration of {near.when:%Y-%m-%d}, {what} {near.cell.label}"
    return Spread(cell.workload, near.quad_sd, min(near.df, _ALIKE_DF if alike else _WORST_DF), source)


def _worst(found: Iterable[_Found]) -> _Found | None:
    return max(found, key=lambda each: each.quad_sd, default=None)


def _pooled(entry: CellEntry) -> _Found | None:
    """All healthy records of a cell together; ``None`` while it is quarantined."""
    healthy = [record for record in entry.records if not record.quarantine]
    if entry.records[-1].quarantine or not healthy:
        return None
    sd, df = pooled(healthy)
    return _Found(entry.cell, sd, df, healthy[-1].when)


def pooled(records: Sequence[Record]) -> tuple[float, float]:
    """Standard deviation and degrees of freedom of several records together."""
    df = sum(record.quads - 1 for record in records)
    variance = math.fsum((record.quads - 1) * record.quad_sd**2 for record in records) / df
    return math.sqrt(variance), float(df)


def _quarantine_reason(entry: CellEntry) -> str:
    record = entry.records[-1]
    return f"cell quarantined by the calibration of {record.when:%Y-%m-%d}: {record.quarantine}"


def _process_seconds(node: NodeEntry, job: Job) -> float | None:
    """Start of the slowest arm and the repetitions of all workloads, of the cells themselves or of those alike."""
    repetitions = job.design.warmup + job.design.repetitions
    seconds = []
    for arm in job.arms:
        loads = [_last_record(node, arm, load.name) for load in job.workloads]
        known = [record for record in loads if record is not None]
        if len(known) < len(loads) or not known:
            return None
        start = max(record.start_s for record in known)
        seconds.append(start + repetitions * sum(record.repetition_s for record in known))
    return max(seconds, default=None)


def _last_record(node: NodeEntry, arm: Arm, workload: str) -> Record | None:
    """The cell's own last record, or that of a cell which differs in placement only."""
    cell = cell_of(arm, workload)
    same = [entry for entry in node.cells if (entry.cell.model, entry.cell.workload) == (cell.model, cell.workload)]
    return next(_nearest_first(same, cell), None)


def _nearest_first(entries: Iterable[CellEntry], cell: Cell) -> Iterator[Record]:
    ordered = sorted(entries, key=lambda entry: (entry.cell != cell, entry.cell.fork != cell.fork))
    return (entry.records[-1] for entry in ordered)
