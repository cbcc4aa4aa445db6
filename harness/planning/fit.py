"""Cases against what the nodes really have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from harness.builds.choosing import no_variant
from harness.domain.build import Build
from harness.domain.node import NodeClass, NodeFacts
from harness.domain.words import Status
from harness.planning.plan import PlannedCase


def fit(cases: Sequence[PlannedCase], nodes: Iterable[NodeFacts]) -> tuple[PlannedCase, ...]:
    """Mark the cases that no node is for as ``not_applicable``: by its class, or by the variants of a build.

    Args:
        cases: The cases. What is ``unsupported`` stays so: it would be on any node.
        nodes: Facts of every node of the fleet.
    """
    fleet = tuple(nodes)
    reasons: dict[tuple[NodeClass, tuple[Build, ...]], str] = {}
    fitted = []
    for case in cases:
        node_class = case.case.node_class
        varied = tuple(arm.build for arm in case.case.arms if arm.build.variants)
        key = (node_class, varied)
        if key not in reasons:
            reasons[key] = misfit(node_class, fleet) or _unvaried(node_class, varied, fleet)
        reason = reasons[key]
        if reason and case.status is None:
            fitted.append(replace(case, status=Status.NOT_APPLICABLE, reason=reason))
        else:
            fitted.append(case)
    return tuple(fitted)


def misfit(node_class: NodeClass, nodes: Sequence[NodeFacts]) -> str:
    """Why no node belongs to a class: all that the nearest one lacks; empty if one does."""
    if not nodes:
        return f"no node is of class {node_class.name}: there are no nodes"
    lacks = [node_class.lacks(node) for node in nodes]
    if not all(lacks):
        return ""
    nearest = min(range(len(nodes)), key=lambda index: (len(lacks[index]), sum(lack.share for lack in lacks[index])))
    which = "" if len(nodes) == 1 else f" of {len(nodes)}"
    described = "" if len(nodes) == 1 else f"the nearest one ({nodes[nearest].described}): "
    return f"no node{which} is of class {node_class.name}: {described}{'; '.join(lack.said for lack in lacks[nearest])}"


def _unvaried(node_class: NodeClass, builds: Sequence[Build], nodes: Sequence[NodeFacts]) -> str:
    """Why no node of a class has a variant of every build; empty if one has."""
    of_class = [node for node in nodes if not node_class.unmet(node)]
    lacking = [next(filter(None, (no_variant(build, node) for build in builds)), "") for node in of_class]
    return "; ".join(dict.fromkeys(lacking)) if all(lacking) else ""
