"""Cases against what the nodes really have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from harness.domain.node import NodeClass, NodeFacts
from harness.domain.words import Status
from harness.planning.plan import PlannedCase


def fit(cases: Sequence[PlannedCase], nodes: Iterable[NodeFacts]) -> tuple[PlannedCase, ...]:
    """Mark the cases whose node class no node belongs to as ``not_applicable``.

    Args:
        cases: The cases. What is ``unsupported`` stays so: it would be on any node.
        nodes: Facts of every node of the fleet.
    """
    fleet = tuple(nodes)
    reasons: dict[NodeClass, str] = {}
    fitted = []
    for case in cases:
        node_class = case.case.node_class
        if node_class not in reasons:
            reasons[node_class] = misfit(node_class, fleet)
        reason = reasons[node_class]
        if reason and case.status is None:
            fitted.append(replace(case, status=Status.NOT_APPLICABLE, reason=reason))
        else:
            fitted.append(case)
    return tuple(fitted)


def misfit(node_class: NodeClass, nodes: Sequence[NodeFacts]) -> str:
    """Why no node belongs to a class; empty if one does."""
    unmet = [node_class.unmet(node) for node in nodes]
    if not all(unmet):
        return ""
    reasons = "; ".join(dict.fromkeys(unmet)) or "there are no nodes"
    return f"no node is of class {node_class.name}: {reasons}"
