"""What is tolerated of two arms' outputs: their contrast's class, and what is known of it, shipped or calibrated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, astuple

from harness.domain.arm import Arm
from harness.domain.build import HOST_BACKENDS
from harness.domain.case import OutputCheck
from harness.domain.node import NodeFacts
from harness.domain.tolerance import ContrastClass, Figures, Tolerance
from harness.judging.quants import quant_of
from harness.judging.tolerances import QUANTILE_DECODED, QUANTILE_POSITIONS, Allowed, floor_of, kv_budget

CPU = "the CPU"
_QUANTILES = ("p25", "median", "p90", "p99")
_OF_DECODING = ("decode_median", "decode_p90")
_NEWER = ("p25", "decode_median")
"""Figures that older calibrations did not know: there they are 0."""
_MEASURED_CARD = "tiny-moe"
"""The card that the shipped floors hold for. Rounding grows with depth: a sound network of eight layers was beyond the
floors of those of three to six, by every figure."""
_KERNEL_FLAGS = ("rtr", "repack")
"""Flags that have the weights laid out otherwise, and so multiplied by other kernels."""
_VENDORS = {"cuda": "nvidia", "hip": "amd", "rocm": "amd", "metal": "apple"}
"""Whose GPUs a backend is for; others, such as Vulkan, are for all."""


def allowed_of(
    reference: Arm,
    other: Arm,
    check: OutputCheck | None,
    known: Sequence[Tolerance],
    node: NodeFacts | None,
    *,
    recorded_on: NodeFacts | None = None,
) -> Allowed:
    """What is tolerated of an arm beside its reference.

    Args:
        reference: The arm that the other is compared with.
        other: The arm in question.
        check: What is declared of the two.
        known: What calibrations found of the job's model.
        node: Where both ran.
        recorded_on: Where the reference ran, if that was another time: then nobody knows that the builds are the same.
    """
    contrast, quant = contrast_class(reference, other, node, recorded_on), quant_of(reference.model)
    shipped = f"shipped floor of {quant}, contrast of {contrast}"
    calibrated = next((each for each in known if each.contrast is contrast and _is_finite(each.figures)), None)
    uncovered = _uncovered(reference, other, contrast, node, recorded_on)
    floor, source = floor_of(quant, contrast), shipped
    if calibrated:
        floor, source = _calibrated(calibrated, None if uncovered else floor, shipped)
    declared = check.lossy if check else None
    return Allowed(
        floor=floor,
        source=source,
        widest=floor_of(quant, ContrastClass.BACKEND),
        lossy=kv_budget(reference, other) if declared is None else declared,
        factor=check.factor if check else "",
        changes_numbers=check is not None and check.changes_numbers,
        advisory="" if calibrated else uncovered,
    )


def not_set(positions: int | None, decoded: int | None) -> tuple[str, ...]:
    """Names of the figures that a calibration on so few positions does not set; arguments as of `Tolerance`."""
    quantiles = _QUANTILES if positions is not None and positions < QUANTILE_POSITIONS else ()
    at_most = positions if decoded is None else decoded
    return (*quantiles, *_OF_DECODING) if at_most is not None and at_most < QUANTILE_DECODED else quantiles


def contrast_class(
    reference: Arm, other: Arm, node: NodeFacts | None, recorded_on: NodeFacts | None = None
) -> ContrastClass:
    """In what two arms differ, the widest difference first; the arguments as in `allowed_of`."""
    if backend_of(reference, recorded_on or node) != backend_of(other, node):
        return ContrastClass.BACKEND
    if reference.build.fork is not other.build.fork:
        return ContrastClass.FORK
    # Two arms of an attribution may differ in both; builds alone multiply with the same kernels.
    if any(reference.flags.get(flag) != other.flags.get(flag) for flag in _KERNEL_FLAGS):
        return ContrastClass.KERNELS
    return ContrastClass.FLAGS if reference.build == other.build and recorded_on is None else ContrastClass.BUILD


def backend_of(arm: Arm, node: NodeFacts | None) -> str:
    """What computes, in words: the CPU, or the GPUs of a vendor and how many layers are on them.

    A build with code for GPUs uses them for large batches also where all layers lie on the CPU. Where the node is not
    known, it is taken to have some.
    """
    if not arm.build.has_gpu_code or (node is not None and not node.gpus):
        return CPU
    source = arm.build.source
    declared = {backend.lower() for backend in source.backends} - HOST_BACKENDS if source else set()
    vendors = {gpu.vendor for gpu in node.gpus} if node else {"any"}
    found = {_VENDORS.get(backend, backend) for backend in declared} or vendors
    host = ", layers on the CPU" if arm.flags.get("ngl") == 0 else ""
    return f"GPU ({', '.join(sorted(found))}{host})"


def _calibrated(known: Tolerance, floor: Figures | None, shipped: str) -> tuple[Figures, str]:
    """What was calibrated, with the source in words, but never less than what is shipped for such arms.

    A calibration sees a few ways of running an arm; what is shipped was found with many. What it has too few positions
    for is as shipped, or else not judged.
    """
    found = asdict(known.figures)
    unset = not_set(known.positions, known.decoded)
    unset = (*unset, *(name for name in _NEWER if not found[name] and name not in unset))
    least = asdict(floor) if floor else dict.fromkeys(found, 0.0) | dict.fromkeys(unset, math.inf)
    figures = {name: least[name] if name in unset else max(value, least[name]) for name, value in found.items()}
    source = known.source
    if unset:
        names = ", ".join(name.replace("_", " ") for name in unset)
        otherwise = f"as in the {shipped}" if floor else "not judged"
        source += f"; {names}, which it did not set: {otherwise}"
    if any(found[name] < least[name] for name in found if name not in unset):
        source += f"; nothing less than the {shipped}"
    return Figures(**figures), source


def _is_finite(figures: Figures) -> bool:
    """A tolerance that is no number would let everything pass."""
    return all(map(math.isfinite, astuple(figures)))


def _uncovered(
    reference: Arm, other: Arm, contrast: ContrastClass, node: NodeFacts | None, recorded_on: NodeFacts | None
) -> str:
    """Why the shipped table says nothing about this pair; empty where it does."""
    # What is on record is refused before, by content, where it is of another model: names and paths may have changed.
    if recorded_on is None and reference.model != other.model:
        return f"two models, {reference.model.name} and {other.model.name}"
    backends = dict.fromkeys((backend_of(reference, recorded_on or node), backend_of(other, node)))
    if set(backends) != {CPU}:
        return f"{' against '.join(backends)} ({contrast})"
    return "" if reference.model.card == _MEASURED_CARD else f"{reference.model.name} ({contrast})"
