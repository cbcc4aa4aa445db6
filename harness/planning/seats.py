"""Jobs against nodes for an executor: the class, the builds' variants, and the bytes of all that a job does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.builds.choosing import no_variant
from harness.domain.arm import Arm
from harness.domain.job import Job
from harness.domain.node import NodeFacts
from harness.domain.placing import Seat, class_refusal
from harness.models.memory import bytes_needed
from harness.planning.needs import ArmMemory, Loads, can_use_gpus
from harness.planning.rooms import RAM, RESERVE, Fit, fit_arms


class SeatsByBytes:
    """Implements ``Placing``: a job goes only where it is not sure to be short of memory. Answers are kept."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, NodeFacts], Seat] = {}

    def seat(self, job: Job, node: NodeFacts) -> Seat:
        """A job on a node; what is not known of a model's tensors refuses nothing."""
        key = (job.id, node)
        if key not in self._known:
            self._known[key] = _seat(job, node)
        return self._known[key]


def _seat(job: Job, node: NodeFacts) -> Seat:
    if lacks := job.node_class.lacks(node):
        return class_refusal(job.node_class.name, [(lack.said, lack.share) for lack in lacks])
    if unvaried := next(filter(None, (no_variant(arm.build, node) for arm in job.arms)), ""):
        return Seat(unvaried, distance=(1, 0))
    fit = fit_arms(job.arms, job.node_class, lambda gpus_of: _memory(job, gpus_of), node)
    if fit.short:
        return Seat("; ".join(room.said for room in fit.rooms if room.short), distance=(0, fit.short))
    return Seat(gpus=_gpus(job, node, fit), ram_bytes=_ram(fit))


def _memory(job: Job, gpus_of: Callable[[Arm], Sequence[int]]) -> tuple[ArmMemory, ...]:
    loads: Loads = (*job.workloads, *([job.outputs] if job.outputs else []))
    found = [(arm, bytes_needed(arm, loads, tuple(gpus_of(arm)))) for arm in job.arms]
    return tuple(ArmMemory(arm, memory) for arm, memory in found if memory is not None)


def _gpus(job: Job, node: NodeFacts, fit: Fit) -> tuple[int, ...]:
    """None where the class asks for none and no build has code for them."""
    asked = job.node_class.min_gpus or any(can_use_gpus(arm, node) for arm in job.arms)
    return fit.gpus if asked else ()


def _ram(fit: Fit) -> int:
    held = max((room.held for room in fit.rooms if room.device == RAM), default=0)
    return held + RESERVE if fit.known else 0
