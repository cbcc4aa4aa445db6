"""What a node offers to a cluster: whole-GiB resources and labels of what is really there, and how its workers run.

Nothing is chosen by them here: jobs are placed on probed facts. They are for people, for other users of the cluster,
and so that the memory of a host is not promised twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from harness.domain.errors import BadInput
from harness.domain.node import GIB, Gpu, NodeFacts

SLOT = "bench"
"""Custom resource: one per node; a measurement takes a whole one, so two never run on one."""

RAM_GIB = "ram_gib"
VRAM_GIB = "vram_gib"
"""Memory of one GPU; of unlike ones, of the smallest."""
DISK_GIB = "disk_gib"

QUIET_WORKERS = {
    "RAY_worker_niceness": "0",
    "RAY_worker_oom_score_adjustment": "0",
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""What a benchmark needs of Ray: by its defaults workers have niceness 15 and are the first that the kernel kills, and
a large model without mmap is killed by Ray itself. The last two keep it quiet."""

_PREFIX = "moe/"
_MOST = 63
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_RULE = "at most 63 letters, digits, '-', '_' and '.', the first and the last a letter or digit"


def resources_of(node: NodeFacts, disk_bytes: int | None = None) -> dict[str, float]:
    """Custom resources: one slot, and whole GiB of memory and disk, rounded down.

    Args:
        node: Facts of the node.
        disk_bytes: What is free where models are kept; ``None``: not told.
    """
    resources = {SLOT: 1.0, RAM_GIB: float(node.usable_ram_bytes // GIB)}
    if node.gpus:
        resources[VRAM_GIB] = float(min(gpu.vram_bytes for gpu in node.gpus) // GIB)
    if disk_bytes is not None:
        resources[DISK_GIB] = float(disk_bytes // GIB)
    return {name: amount for name, amount in resources.items() if amount}


def within_offer(node: NodeFacts, resources: Mapping[str, float]) -> NodeFacts:
    """A node as far as it is offered: who starts it can keep main memory back.

    Args:
        node: Its facts.
        resources: What it offers.
    """
    offered = resources.get(RAM_GIB)
    if offered is None or offered >= node.usable_ram_bytes // GIB:
        return node
    return replace(node, cgroup_memory_bytes=int(offered) * GIB)


def labels_of(node: NodeFacts, links: str = "") -> dict[str, str]:
    """Labels: GPU by GPU, driver, processor, instruction sets, NUMA nodes.

    Args:
        node: Facts of the node.
        links: How its GPUs are joined to one another; empty: not known, or there are not two.
    """
    gpus = {f"gpu-{number}": gpu.name for number, gpu in enumerate(node.gpus)}
    drivers = {"driver": node.gpus[0].driver} if node.gpus else {}
    found = {
        "gpu": _kind(node.gpus),
        "gpus": str(len(node.gpus)),
        **gpus,
        **({"gpu-links": links} if links else {}),
        **drivers,
        "cpu": node.cpu_model,
        "cores": str(node.cores),
        "numa-nodes": str(node.numa_nodes),
        "kernel": node.kernel,
        "machine": node.machine,
        **{f"isa-{word}": "yes" for word in node.isa},
    }
    return {_PREFIX + key: label for key, value in found.items() if (label := as_label(value))}


def as_label(text: str) -> str:
    """A text made a label's value: what a label can't have becomes '-'; empty where nothing is left."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", text)[:_MOST].strip("-_.")


def declared_labels(words: Iterable[str]) -> dict[str, str]:
    """Labels that a person gave as ``KEY=VALUE``.

    Args:
        words: Each of them.

    Raises:
        BadInput: ``E-fleet-label``: it is none, or its key is one that is probed.
    """
    return dict(_declared(word) for word in words)


def _declared(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals:
        raise _bad(word, "expected KEY=VALUE", "e.g. rack=b4")
    if key.startswith((_PREFIX, "ray.io/")):
        raise _bad(word, f"keys that begin with {_PREFIX} or ray.io/ are not declared but found", "choose another key")
    for part, text in (("key", key), ("value", value)):
        if not _LABEL.fullmatch(text):
            raise _bad(word, f"its {part} '{text[:100]}' is not {_RULE}", f"e.g. {as_label(text) or 'rack'}")
    return key, value


def _bad(word: str, message: str, hint: str) -> BadInput:
    return BadInput("E-fleet-label", message, hint=hint, where=f"--label {word[:100]}")


def is_mixed(gpus: Iterable[Gpu]) -> bool:
    """Whether GPUs of a host are of different kinds: then it matters which one a job gets."""
    return len({(gpu.name, gpu.vram_bytes // GIB) for gpu in gpus}) > 1


def said_resources(resources: Mapping[str, float]) -> str:
    """Resources in a few words."""
    return ", ".join(f"{name} {amount:g}" for name, amount in sorted(resources.items()))


def _kind(gpus: tuple[Gpu, ...]) -> str:
    return "mixed" if is_mixed(gpus) else gpus[0].name if gpus else "none"
