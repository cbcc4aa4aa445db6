"""What calibrations on this user's nodes know of the spread of files that were measured on one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from harness.domain.imported import ImportedRow
from harness.domain.node import NodeFacts
from harness.domain.spread import Spread
from harness.running.known_spreads import pooled
from harness.running.spread_file import NodeEntry, SpreadFile

_DF = 4.0
"""Another cell of the node is a hint at the files' rows: it counts as no more quads than these, less one."""


def known_spreads(rows: Iterable[ImportedRow], file: SpreadFile) -> tuple[Spread, ...]:
    """The largest spread that was found for each kind of workload (pp, tg, ...) on the machine of the rows.

    Only where every row says its CPU and GPU and a calibrated node has exactly those. A quad's deviation is that of one
    process where processes scatter independently: of its two processes an arm, two arms.

    Args:
        rows: The rows of both sides.
        file: The spreads that are known.
    """
    rows = list(rows)
    machines = {_machine_of_row(row) for row in rows}
    if len(machines) != 1:
        return ()
    nodes = [node for node in file.nodes.values() if _machine_of_node(node.facts) in machines]
    found = (_spread(nodes, workload) for workload in dict.fromkeys(row.workload for row in rows))
    return tuple(spread for spread in found if spread)


def _machine_of_row(row: ImportedRow) -> tuple[str, str]:
    facts = dict(row.machine)
    return facts.get("cpu", ""), facts.get("gpu", "").replace("none", "")


def _machine_of_node(facts: NodeFacts) -> tuple[str, str]:
    """As rows say it: there, no GPU is no word."""
    return " ".join(facts.cpu_model.split()), ", ".join(sorted(gpu.name for gpu in facts.gpus))


def _spread(nodes: Iterable[NodeEntry], workload: str) -> Spread | None:
    return max(_spreads(nodes, workload), key=lambda spread: spread.quad_sd, default=None)


def _spreads(nodes: Iterable[NodeEntry], workload: str) -> Iterator[Spread]:
    kind = re.sub(r"\d+", "", workload)
    for entry in (entry for node in nodes for entry in node.cells if entry.cell.kind == kind):
        healthy = [record for record in entry.records if not record.quarantine]
        if healthy and not entry.records[-1].quarantine:
            sd, df = pooled(healthy)
            source = f"calibration of {healthy[-1].when:%Y-%m-%d}, {entry.cell.label}"
            yield Spread(workload, sd, min(df, _DF), source)
