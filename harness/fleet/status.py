"""What is in a cluster now: every node with what was found there, and what can't be used, with why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray

from harness.domain.node import NodeFacts
from harness.execution.offers import SLOT
from harness.execution.ray_inventory import FleetNode, Inventory
from harness.execution.ray_join import join

READY, FREE_OF_SLOTS, UNUSABLE, GONE = "ready", "no slot", "unusable", "gone"


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """One node.

    Attributes:
        id: As Ray calls it.
        host: Its name.
        address: Where it listens.
        state: ``ready``; ``no slot``: it offers none, as a head that measures nothing; ``unusable``; ``gone``.
        reason: Why it is not ready.
        facts: What was found there.
        resources: What it offers.
        labels: Its labels.
    """

    id: str
    host: str
    address: str
    state: str
    reason: str
    facts: NodeFacts | None
    resources: dict[str, float]
    labels: dict[str, str]


@dataclass(frozen=True, slots=True)
class FleetStatus:
    """A cluster.

    Attributes:
        address: Of its head.
        nodes: Its nodes, those that are gone last.
        slots: Slots of all live nodes.
        free_slots: Those of them in which nothing is measured.
    """

    address: str
    nodes: tuple[NodeStatus, ...]
    slots: int
    free_slots: int


def fleet_status(address: str) -> FleetStatus:
    """Join a cluster, ask its nodes, and leave it.

    Args:
        address: ``HOST:PORT`` of its head.

    Raises:
        HarnessError: As of `join`, and ``E-cluster-lost``.
    """
    join(address, "fleet status")
    inventory = Inventory(address)
    try:
        inventory.start()
        raw: Sequence[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
        free: dict[str, float] = ray.available_resources()  # type: ignore[no-untyped-call]
        known = {node.id: node for node in inventory.nodes()}
        nodes = sorted((_status(node, known.get(str(node["NodeID"]))) for node in raw), key=_order)
        slots = sum(node.resources.get(SLOT, 0.0) for node in nodes if node.state != GONE)
        return FleetStatus(address, tuple(nodes), int(slots), int(free.get(SLOT, 0.0)))
    finally:
        inventory.close()
        ray.shutdown()


def _order(node: NodeStatus) -> tuple[bool, str, str]:
    return node.state == GONE, node.host, node.id


def _status(raw: dict[str, Any], known: FleetNode | None) -> NodeStatus:
    state, reason = _state(raw, known)
    labels = {key: value for key, value in dict(raw["Labels"]).items() if not key.startswith("ray.io/")}
    resources = {name: float(amount) for name, amount in dict(raw["Resources"]).items() if not name.startswith("node:")}
    return NodeStatus(
        id=str(raw["NodeID"]),
        host=str(raw["NodeManagerHostname"]),
        address=str(raw["NodeManagerAddress"]),
        state=state,
        reason=reason,
        facts=known.facts if known else None,
        resources=resources,
        labels=labels,
    )


def _state(raw: dict[str, Any], known: FleetNode | None) -> tuple[str, str]:
    if not raw["Alive"]:
        return GONE, str(raw.get("DeathReasonMessage") or "it does not answer any more")
    if known is None:
        return FREE_OF_SLOTS, f"it offers no resource '{SLOT}', so nothing is measured there"
    return (UNUSABLE, known.trouble) if known.trouble else (READY, "")
