"""The gate of calibrations: on a node where a cell failed its calibration, no contrast of that cell is decided."""

from __future__ import annotations

from harness.domain.verdict import Verdict
from harness.domain.words import Kind, Pitfall, Status, Throughput
from harness.judging.evidence import Evidence


def quarantined(evidence: Evidence) -> Verdict | None:
    """Inconclusive, with what the calibration found; floors of single arms are judged all the same."""
    node = evidence.record.node
    if node is None or not evidence.is_pair or not evidence.times_speed:
        return None
    name, place = evidence.case.workload_name, node.fingerprint
    found = (each for each in evidence.record.job.quarantines if (each.workload, each.node) == (name, place))
    quarantine = next(found, None)
    if quarantine is None:
        return None
    return evidence.verdict(
        Status.INCONCLUSIVE,
        f"inconclusive: {quarantine.reason},",
        throughput=Throughput.INCONCLUSIVE,
        pitfall=Pitfall.INCONCLUSIVE if evidence.case.kind is Kind.PITFALL else None,
        slug="E-quarantined",
    )
