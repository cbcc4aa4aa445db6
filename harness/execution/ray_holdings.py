"""Which models the nodes of a Ray cluster hold: each is asked once, before a driver's first job, unless it is busy."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import ray
from ray.exceptions import RayError

from harness.domain.model import Model
from harness.execution.at_hand import Models
from harness.execution.holdings import held_here
from harness.execution.offers import SLOT
from harness.execution.ray_inventory import NODE_ID
from harness.execution.tasks import sized

_PATIENCE_S = 15.0
"""A worker takes seconds to start. A node at which somebody measures does not answer, and is not disturbed."""
_SHARE = 0.001
"""Of a slot: as long as a job has the whole one, nobody looks into the disk and the page cache beside it."""


def ask_holdings(nodes: Sequence[str], models: Mapping[str, Model]) -> dict[str, Models]:
    """What each node holds of some models, as far as it answers; what lies there in memory last.

    Args:
        nodes: Ids of live nodes.
        models: By what the order calls them.
    """
    asked = {}
    for node in nodes:
        options = {"label_selector": {NODE_ID: f"in({node})"}, "resources": {SLOT: _SHARE}}
        asked[_held.options(**options).remote(models)] = node
    give_up, waiting, found = time.monotonic() + _PATIENCE_S, list(asked), {}
    while waiting and (left_s := give_up - time.monotonic()) > 0:
        done, waiting = ray.wait(waiting, timeout=left_s)
        for answer in done:
            try:
                names = ray.get(answer, timeout=1.0)
            except RayError:
                continue  # the node or its worker is gone, or of another version: its jobs say so
            found[asked[answer]] = sized({name: models[name] for name in names if name in models})
    for answer in waiting:
        ray.cancel(answer)
    return found


@ray.remote(max_retries=0, num_cpus=0)
def _held(models: Mapping[str, Model]) -> tuple[str, ...]:
    return held_here(models)
