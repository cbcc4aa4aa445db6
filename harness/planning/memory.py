"""Whether a case's processes fit into the memory of the nodes, told before anything is loaded.

A case is ``not_applicable`` only where it is sure not to fit on any node of its class: what a GPU must hold, and what
RAM must hold that the kernel can't drop. Weights that are mapped from the file may be more than the RAM: that is slow,
and a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from harness.builds.choosing import choose_variant, no_variant
from harness.domain.arm import Arm
from harness.domain.build import NO_GPU, Build
from harness.domain.case import Case
from harness.domain.node import GIB, NodeClass, NodeFacts
from harness.domain.words import Status
from harness.domain.workload import OutputProfile, Timed
from harness.models.memory import DeviceMemory, Memory, bytes_needed
from harness.planning.plan import PlannedCase

RESERVE = GIB
"""What stays free on each device. Both forks' ``--fit`` leave as much on a GPU; it also holds the GPU's context."""

DOES_NOT_FIT = "E-model-does-not-fit"
_HOST_BACKENDS = frozenset({"cpu", "blas"})
_SMALLER_GPU = 'experts in RAM (ot = "exps=CPU", ncmoe), fewer layers (ngl) or less context need less'
_SMALLER_RAM = "without rtr and with mmap = 1 the kernel can drop weights"

_SHOWN = GIB // 20
"""Parts that would be printed as 0.0 are left out."""

Loads: TypeAlias = tuple[Timed | OutputProfile, ...]


@dataclass(frozen=True, slots=True)
class ArmMemory:
    """What one arm of a case needs.

    Attributes:
        arm: The arm.
        memory: Its bytes.
    """

    arm: Arm
    memory: Memory


class Needs:
    """What cases need, in bytes.

    Args:
        cases: All cases of the matrix: a limit of peak memory is about everything that its arm does in them.
    """

    def __init__(self, cases: Iterable[PlannedCase]) -> None:
        self._everything: dict[Arm, Loads] = {}
        self._known: dict[tuple[int, Loads, tuple[int, ...]], Memory | None] = {}
        listed = tuple(cases)
        peaks = {planned.case.arms[0] for planned in listed if planned.case.workload is None}
        for planned in listed if peaks else ():
            load = planned.case.workload
            for arm in planned.case.arms if load is not None else ():
                if arm in peaks and load is not None:
                    self._everything[arm] = (*self._everything.get(arm, ()), load)

    def of_arms(self, case: Case, gpus: Mapping[Arm, tuple[int, ...]]) -> tuple[ArmMemory, ...]:
        """What each arm needs whose model's tensors are known here.

        Args:
            case: The case; its arms' flags are complete.
            gpus: Bytes of the GPUs that each arm can use.
        """
        found = ((arm, self._of_arm(arm, self._loads(case, arm), gpus[arm])) for arm in case.arms)
        return tuple(ArmMemory(arm, memory) for arm, memory in found if memory is not None)

    def _of_arm(self, arm: Arm, loads: Loads, gpus: tuple[int, ...]) -> Memory | None:
        """Worked out once: arms are shared between cases, and told apart by identity, which is quick."""
        key = (id(arm), loads, gpus)
        if key not in self._known:
            self._known[key] = bytes_needed(arm, loads, gpus)
        return self._known[key]

    def most(self, case: Case) -> Memory | None:
        """What the arm needs that needs most, on GPUs as the node class asks for them; ``None``: not known of all."""
        gpus = {arm: declared_gpus(arm, case.node_class) for arm in case.arms}
        found = self.of_arms(case, gpus)
        if len(found) < len(case.arms):
            return None
        return max((each.memory for each in found), key=lambda need: need.ram.total + sum(g.total for g in need.gpus))

    def _loads(self, case: Case, arm: Arm) -> Loads:
        return (case.workload,) if case.workload is not None else self._everything.get(arm, ())


def check_memory(cases: Sequence[PlannedCase], nodes: Iterable[NodeFacts] | None) -> tuple[PlannedCase, ...]:
    """Mark the cases that fit no node as ``not_applicable``, and note what is odd about the others.

    Args:
        cases: The cases. What can't run for another reason stays as it is.
        nodes: Facts of every node of the fleet; ``None``: not known, and only flags are looked at.
    """
    needs = Needs(cases)
    places: dict[tuple[NodeClass, tuple[Build, ...]], tuple[NodeFacts, ...]] = {}
    fleet = None if nodes is None else tuple(nodes)
    checked = []
    for planned in cases:
        if planned.status is not None:
            checked.append(planned)
            continue
        case = planned.case
        key = (case.node_class, tuple(arm.build for arm in case.arms if arm.build.variants))
        if key not in places:
            places[key] = _places(*key, fleet or ())
        checked.append(_checked(planned, needs, places[key]))
    return tuple(checked)


def declared_gpus(arm: Arm, node_class: NodeClass) -> tuple[int, ...]:
    """Bytes of the GPUs that a class asks for, as far as an arm's build can use them."""
    if not _can_use_gpus(arm, None):
        return ()
    return (int(node_class.min_vram_gib * GIB) or GIB,) * node_class.min_gpus


def _places(node_class: NodeClass, builds: Sequence[Build], fleet: Sequence[NodeFacts]) -> tuple[NodeFacts, ...]:
    """The nodes that a case of a class can go to."""
    return tuple(
        node for node in fleet if not node_class.unmet(node) and not any(no_variant(build, node) for build in builds)
    )


def _checked(planned: PlannedCase, needs: Needs, places: Sequence[NodeFacts]) -> PlannedCase:
    case = planned.case
    found = [_trouble(case, needs, node) for node in places] or [_unplaced(case, needs)]
    if found and all(trouble.hard for trouble in found):
        reasons = "; ".join(dict.fromkeys(trouble.hard for trouble in found))
        return replace(planned, status=Status.NOT_APPLICABLE, reason=f"{DOES_NOT_FIT}: {reasons}")
    possible = [trouble for trouble in found if not trouble.hard]
    notes = list(possible[0].notes)
    if all(trouble.soft for trouble in possible):
        notes.append(possible[0].soft)
    if not notes:
        return planned
    return replace(planned, note="; ".join(filter(None, [planned.note, *notes])))


@dataclass(frozen=True, slots=True)
class _Trouble:
    """What is wrong with a case on a node: why it can't run, or why it will be slow; both empty where it fits."""

    hard: str = ""
    soft: str = ""
    notes: tuple[str, ...] = ()


def _unplaced(case: Case, needs: Needs) -> _Trouble:
    """Where no node is known: only what the flags say."""
    declared = needs.of_arms(case, {arm: declared_gpus(arm, case.node_class) for arm in case.arms})
    return _Trouble(notes=_notes(declared))


def _notes(found: Sequence[ArmMemory]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(note for each in found for note in each.memory.notes))


def _trouble(case: Case, needs: Needs, node: NodeFacts) -> _Trouble:
    """Each arm may run on the GPUs that its job gets; of a class that asks for none, on none or on all there are."""
    ways = [_room(case, needs, node, count) for count in _gpu_counts(case.node_class, node)]
    return next((trouble for trouble in ways if not trouble.hard), ways[0])


def _gpu_counts(node_class: NodeClass, node: NodeFacts) -> tuple[int, ...]:
    if node_class.min_gpus:
        return (node_class.min_gpus,)
    return (len(node.gpus), 0) if node.gpus else (0,)


def _room(case: Case, needs: Needs, node: NodeFacts, count: int) -> _Trouble:
    large = [gpu for gpu in node.gpus if gpu.vram_bytes >= case.node_class.min_vram_gib * GIB][:count]
    sizes = tuple(gpu.vram_bytes for gpu in large)
    soft = ""
    found = needs.of_arms(case, {arm: sizes if _can_use_gpus(arm, node) else () for arm in case.arms})
    for need in found:
        for index, device in enumerate(need.memory.gpus):
            if device.total > sizes[index] - RESERVE:
                where = f"GPU {index}" if len(large) > 1 else "the GPU"
                has = f"{large[index].name} has {sizes[index] / GIB:.1f} GiB"
                return _Trouble(f"{_needs(need.arm, device, where)}, {has}, 1 of it kept free: {_SMALLER_GPU}")
        ram = node.usable_ram_bytes
        has = f"node has {ram / GIB:.1f} GiB, 1 of it kept free"
        if need.memory.held > ram - RESERVE:
            dropped = f"; {_SMALLER_RAM}" if not need.memory.mapped else ""
            return _Trouble(f"{_needs(need.arm, need.memory.ram, 'RAM')}, {has}{dropped}")
        if need.memory.ram.total > ram - RESERVE:
            soft = f"{_needs(need.arm, need.memory.ram, 'RAM')}, {has}: mapped weights are read again and again"
    return _Trouble(soft=soft, notes=_notes(found))


def _can_use_gpus(arm: Arm, node: NodeFacts | None) -> bool:
    """Whether a build can have code for GPUs: wheels have none, others are taken to have unless they say they don't."""
    build = arm.build
    if build.variants and node is not None:
        variant = choose_variant(build, node)
        if variant.wheel or variant.platform.gpu == NO_GPU:
            return False
    elif build.wheel:
        return False
    backends = set(build.source.backends) if build.source else set()
    only_host = bool(backends) and {backend.lower() for backend in backends} <= _HOST_BACKENDS
    return not only_host and arm.flags.get("dev") != "none"


def _needs(arm: Arm, device: DeviceMemory, where: str) -> str:
    parts = ", ".join(f"{word} {size / GIB:.1f}" for word, size in device.parts.items() if size >= _SHOWN)
    return f"{arm.label} needs {device.total / GIB:.1f} GiB of {where} ({parts})"
