"""What this host offers when it becomes a node: all that is really there, or the part that was chosen."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.domain.errors import BadInput
from harness.domain.node import GIB, Gpu, NodeFacts
from harness.execution.offers import labels_of, resources_of
from harness.models.storage import cache_root


@dataclass(frozen=True, slots=True)
class Offer:
    """What a node is started with.

    Attributes:
        facts: The host as far as it is offered.
        visible: GPUs that were chosen, as in ``CUDA_VISIBLE_DEVICES``; ``None``: all.
        resources: Custom resources.
        labels: Labels.
    """

    facts: NodeFacts
    visible: str | None
    resources: Mapping[str, float]
    labels: Mapping[str, str]


def offer_of(
    facts: NodeFacts,
    declared: Mapping[str, str],
    *,
    gpus: Sequence[int] | None = None,
    ram_gib: int | None = None,
    disk_bytes: int | None = None,
    links: str = "",
) -> Offer:
    """Put an offer together.

    Args:
        facts: What the host has.
        declared: Labels that a person gave.
        gpus: Numbers of the GPUs that are offered; ``None``: all.
        ram_gib: Main memory that is offered; ``None``: all.
        disk_bytes: What is free where models are kept.
        links: How the GPUs are joined.

    Raises:
        BadInput: ``E-fleet-gpus``, ``E-fleet-ram``: more is offered than is there.
    """
    chosen = facts if gpus is None else replace(facts, gpus=tuple(_gpu(facts, number) for number in gpus))
    visible = None if gpus is None else ",".join(gpu.uuid for gpu in chosen.gpus)
    resources = resources_of(chosen, disk_bytes)
    if ram_gib is not None:
        if ram_gib > facts.usable_ram_bytes // GIB:
            there = facts.usable_ram_bytes // GIB
            raise BadInput("E-fleet-ram", f"{ram_gib} GiB are more than the {there} of this host", where="--ram-gib")
        resources["ram_gib"] = float(ram_gib)
    return Offer(chosen, visible, resources, {**declared, **labels_of(chosen, links if len(chosen.gpus) > 1 else "")})


def free_disk() -> int | None:
    """Bytes that are free where models are kept; ``None`` where that can't be told."""
    folder = next((each for each in (cache_root(), *cache_root().parents) if each.exists()), Path("/"))
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def _gpu(facts: NodeFacts, number: int) -> Gpu:
    if number >= len(facts.gpus):
        known = f"0 to {len(facts.gpus) - 1}" if facts.gpus else "none"
        raise BadInput("E-fleet-gpus", f"there is no GPU {number} here: there are {known}", where="--gpus")
    return facts.gpus[number]
