"""The nodes of a Ray cluster as they are: each asked once for its facts, and known while it lives.

All that asks the head is done in the thread of `ClusterWatch`: a head that is frozen hangs whoever asks it.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import ray
from ray.exceptions import RayError
from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_put

from harness import __version__
from harness.domain.node import NodeFacts
from harness.execution.cluster_watch import ClusterWatch
from harness.execution.node import probe_node
from harness.execution.offers import SLOT, within_offer
from harness.execution.ray_join import first_line

NODE_ID = "ray.io/node-id"
"""Ray's own label of every node."""
_PROBE_S = 120.0
"""A driver of eight GPUs can take ten seconds to answer, a worker some to start, and a busy host makes both slow."""
_POLL_S = 0.1
_INSTALL = "install the same version of moe-harness there"


@dataclass(frozen=True, slots=True)
class FleetNode:
    """A live node of the cluster that offers a slot.

    Attributes:
        id: As Ray calls it.
        host: Its name, for people.
        resources: What it offers to Ray.
        labels: Its labels.
        facts: What was found there, as far as it is offered; ``None``: not known yet, or never.
        trouble: Why its facts can't be known; empty otherwise.
    """

    id: str
    host: str
    resources: Mapping[str, float]
    labels: Mapping[str, str]
    facts: NodeFacts | None = None
    trouble: str = ""


class Inventory:
    """The live nodes that offer a slot, with their facts.

    Args:
        where: The cluster, for messages.
    """

    def __init__(self, where: str) -> None:
        self._watch = ClusterWatch(self._look, where)
        self._nodes: tuple[FleetNode, ...] = ()
        self.version = 0
        """Another number each time that the nodes are other ones."""
        self._known: dict[str, NodeFacts | str] = {}
        self._asked: dict[str, tuple[Any, float]] = {}

    def start(self) -> None:
        """Begin to look; returns once every node that is there has told its facts, or will not.

        Raises:
            Infrastructure: ``E-cluster-lost``.
        """
        self._watch.start()
        while any(node.facts is None and not node.trouble for node in self._nodes):
            self.require()
            time.sleep(_POLL_S)

    def tell(self, facts: NodeFacts) -> None:
        """Say what this process's own node is, which nobody need ask then.

        Args:
            facts: Facts of this machine.
        """
        node = ray.get_runtime_context().get_node_id()
        self._known[node] = facts
        _internal_kv_put(_key(node), pickle.dumps(facts))

    def close(self) -> None:
        """Look no more."""
        self._watch.close()

    @property
    def is_lost(self) -> bool:
        """Whether the head has not answered for too long."""
        return self._watch.is_lost

    def require(self) -> None:
        """Do nothing while the cluster answers; errors as of `start`."""
        self._watch.require()

    def is_alive(self, node: str) -> bool:
        """Whether a node lives, as of the last look."""
        return any(str(found["NodeID"]) == node for found in self._watch.alive())

    def nodes(self, avoid: Collection[str] = ()) -> Sequence[FleetNode]:
        """The nodes with a slot, but for some.

        Args:
            avoid: Ids of nodes that are left out.
        """
        return tuple(node for node in self._nodes if node.id not in avoid)

    def _look(self) -> Sequence[dict[str, Any]]:
        """Ask the head for its nodes, and those that are new for their facts."""
        found: Sequence[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
        with_slot = [node for node in found if node["Alive"] and node["Resources"].get(SLOT)]
        for node in with_slot:
            self._learn(str(node["NodeID"]))
        nodes = tuple(map(self._node, with_slot))
        if nodes != self._nodes:
            self._nodes = nodes
            self.version += 1
        return found

    def _node(self, node: Mapping[str, Any]) -> FleetNode:
        name, host = str(node["NodeID"]), str(node["NodeManagerHostname"])
        known = self._known.get(name)
        offered = within_offer(known, node["Resources"]) if isinstance(known, NodeFacts) else None
        facts = replace(offered, name=host) if offered else None
        trouble = known if isinstance(known, str) else ""
        return FleetNode(name, host, dict(node["Resources"]), dict(node["Labels"]), facts, trouble)

    def _learn(self, node: str) -> None:
        if node in self._known:
            return
        if node not in self._asked:
            if kept := _kept(node):
                self._known[node] = kept
                return
            options = {"label_selector": {NODE_ID: f"in({node})"}}
            self._asked[node] = (_facts.options(**options).remote(), time.monotonic())
        answer, since = self._asked[node]
        if ray.wait([answer], timeout=0)[0]:
            self._known[node] = _told(node, answer)
            del self._asked[node]
        elif time.monotonic() - since > _PROBE_S:
            self._known[node] = f"it did not tell its facts within {_PROBE_S:.0f} s"
            ray.cancel(answer)


@ray.remote(max_retries=0, num_cpus=0)
def _facts() -> NodeFacts:
    return probe_node()


def _kept(node: str) -> NodeFacts | None:
    """What another driver found out; ``None`` where none did, or one whose version wrote it otherwise."""
    with suppress(pickle.PickleError, AttributeError, ImportError, TypeError, EOFError):
        kept = _internal_kv_get(_key(node))
        found = pickle.loads(kept) if kept else None  # noqa: S301 - of the cluster, whose tasks are code anyway
        return found if isinstance(found, NodeFacts) else None
    return None


def _told(node: str, answer: Any) -> NodeFacts | str:
    try:
        facts: NodeFacts = ray.get(answer)
    except RayError as error:
        return f"it can't tell its facts: {first_line(error)}; {_INSTALL}"
    _internal_kv_put(_key(node), pickle.dumps(facts))
    return facts


def _key(node: str) -> bytes:
    """Where a cluster keeps a node's facts, so that the next driver need not ask while a measurement runs there."""
    return f"moe-harness/{__version__}/facts/{node}".encode()
