"""Where an arm computes, as its flags and its build say: on GPUs, on the CPU, or on both."""

from __future__ import annotations

from collections.abc import Mapping

from harness.domain.build import Build
from harness.domain.flags import FlagValue
from harness.domain.node import NodeClass
from harness.domain.patterns import override_pairs
from harness.engines.flags import default_of

GPU = "gpu"
CPU = "cpu"
HYBRID = "hybrid"
PLACEMENTS = (CPU, HYBRID, GPU)

DECIDING = ("ngl", "ot", "ncmoe")
"""The flags that decide it."""


def placements_of(build: Build, node_class: NodeClass) -> tuple[str, ...]:
    """Where arms of a build can compute on a class, whatever their flags are."""
    return PLACEMENTS if build.has_gpu_code and not node_class.no_gpu else (CPU,)


def placement_of(build: Build, node_class: NodeClass, flags: Mapping[str, FlagValue]) -> str:
    """One of `PLACEMENTS`.

    Args:
        build: The build; wheels have no code for GPUs, others are taken to have unless they say they don't.
        node_class: The class; one without GPUs has nothing to place on.
        flags: The arm's flags; those that are missing have their defaults.
    """
    if placements_of(build, node_class) == (CPU,):
        return CPU
    layers, overrides, cpu_experts = (flags.get(name, default_of(name)) for name in DECIDING)
    if layers == 0:
        return CPU
    to_cpu = any(buffer.upper().startswith("CPU") for _, buffer in override_pairs(str(overrides)))
    return HYBRID if to_cpu or cpu_experts else GPU
