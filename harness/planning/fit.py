"""Cases against what the nodes really have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from harness.builds.choosing import no_variant
from harness.domain.build import Build
from harness.domain.node import NodeClass, NodeFacts
from harness.domain.patterns import GpuBuffer, gpu_buffers
from harness.domain.words import Status
from harness.planning.plan import PlannedCase


def fit(cases: Sequence[PlannedCase], nodes: Iterable[NodeFacts]) -> tuple[PlannedCase, ...]:
    """Mark the cases that no node is for as ``not_applicable``: by its class, by variants of a build, by its GPUs.

    Args:
        cases: The cases. What is ``unsupported`` stays so: it would be on any node.
        nodes: Facts of every node of the fleet.
    """
    fleet = tuple(nodes)
    reasons: dict[tuple[NodeClass, tuple[Build, ...], tuple[GpuBuffer, ...]], str] = {}
    # Cases share arms: each is looked at once.
    arms = {id(arm): arm for case in cases for arm in case.case.arms}
    sent = {key: gpu_buffers(str(arm.flags.get("ot") or "")) for key, arm in arms.items()}
    fitted = []
    for case in cases:
        node_class = case.case.node_class
        varied = tuple(arm.build for arm in case.case.arms if arm.build.variants)
        buffers = tuple(buffer for arm in case.case.arms for buffer in sent[id(arm)])
        key = (node_class, varied, buffers)
        if key not in reasons:
            reasons[key] = (
                misfit(node_class, fleet)
                or _unvaried(node_class, varied, fleet)
                or _without_buffer(node_class, buffers, fleet)
            )
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


def _without_buffer(node_class: NodeClass, buffers: Sequence[GpuBuffer], nodes: Sequence[NodeFacts]) -> str:
    """Why a job sees on no node of a class the GPUs whose buffers overrides name; empty if it does on one."""
    if not buffers:
        return ""
    of_class = [node for node in nodes if not node_class.unmet(node)]
    most = max((len(choice) for node in of_class for choice in node_class.gpu_choices(node)), default=0)
    lacking = next((buffer for buffer in buffers if (buffer.number or 0) >= most), None)
    gpus = f"{most} GPU{'' if most == 1 else 's'}" if most else "no GPU"
    return f"ot sends tensors to {lacking.name}: a job of class {node_class.name} has {gpus}" if lacking else ""
