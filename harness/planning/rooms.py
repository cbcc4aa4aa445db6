"""What a case needs on each device of one node, and what that has: who is short of how much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from harness.domain.arm import Arm
from harness.domain.case import Case
from harness.domain.node import GIB, Gpu, NodeClass, NodeFacts
from harness.models.memory import DeviceMemory
from harness.planning.needs import ArmMemory, Needs, can_use_gpus

RESERVE = GIB
"""What stays free on each device. Both forks' ``--fit`` leave as much on a GPU; it also holds the GPU's context."""

RAM = "ram"
_MIB = 1024**2
_SMALLER_GPU = 'experts in RAM (ot = "exps=CPU", ncmoe), fewer layers (ngl) or less context need less'
_SMALLER_RAM = "without rtr and with mmap = 1 the kernel can drop weights"
_REREAD = "mapped weights are read again and again"


@dataclass(frozen=True, slots=True)
class Room:
    """One arm on one device.

    Attributes:
        arm: The arm.
        device: ``ram``, or ``gpu0`` by its number on the node.
        owner: What has the memory, in words.
        need: What the arm needs of it.
        held: Bytes of that which must be there: in RAM, mapped weights need not.
        has: Bytes that it has.
    """

    arm: Arm
    device: str
    owner: str
    need: DeviceMemory
    held: int
    has: int

    @property
    def short(self) -> int:
        """Bytes that are missing; 0 where it fits."""
        return max(0, self.held + RESERVE - self.has)

    @property
    def rereads(self) -> bool:
        """Whether it fits only because the kernel drops weights that it has to read again."""
        return not self.short and self.need.total + RESERVE > self.has

    @property
    def said(self) -> str:
        """It in words, with what to do where it does not fit."""
        parts = ", ".join(f"{word} {_mib(size)}" for word, size in self.need.parts.items() if size >= _MIB)
        of = "RAM" if self.device == RAM else f"GPU {self.device.removeprefix('gpu')}"
        needs = f"{self.arm.label} needs {_mib(self.need.total)} MiB of {of} ({parts})"
        has = f"{self.owner} has {_mib(self.has)} MiB, {_mib(RESERVE)} of it kept free"
        return f"{needs}, {has}{self._outcome}"

    @property
    def _outcome(self) -> str:
        if not self.short:
            return f": {_REREAD}" if self.rereads else ""
        way = _SMALLER_GPU if self.device != RAM else _SMALLER_RAM if self.held == self.need.total else ""
        return f": {-(-self.short // _MIB)} MiB short" + (f"; {way}" if way else "")


@dataclass(frozen=True, slots=True)
class Fit:
    """A case on a node of its class.

    Attributes:
        rooms: Each arm on each device that it uses; none of arms whose model's tensors are not known here.
        known: Whether the tensors of all arms' models are.
        notes: What is odd about the flags, and what could not be counted.
        gpus: Numbers of the node's GPUs that it was held against.
    """

    rooms: tuple[Room, ...]
    known: bool
    notes: tuple[str, ...] = ()
    gpus: tuple[int, ...] = ()

    @property
    def short(self) -> int:
        """Bytes that are missing, over all devices, of the arm that lacks most of each."""
        most: dict[str, int] = {}
        for room in self.rooms:
            most[room.device] = max(most.get(room.device, 0), room.short)
        return sum(most.values())

    @property
    def lacking(self) -> Room | None:
        """The first device that is too small."""
        return next((room for room in self.rooms if room.short), None)

    @property
    def rereading(self) -> Room | None:
        """The arm that would read mapped weights again and again."""
        return next((room for room in self.rooms if room.rereads), None)


ArmsNeed: TypeAlias = Callable[[Callable[[Arm], tuple[int, ...]]], tuple[ArmMemory, ...]]
"""What arms need, told the bytes of the GPUs that each can use; without those whose model's tensors are not known."""


def fit_on(case: Case, needs: Needs, node: NodeFacts) -> Fit:
    """What a case needs on a node of its class, and what that has.

    Args:
        case: The case; its arms' flags are complete.
        needs: Of all cases.
        node: Facts of the node.
    """
    return fit_arms(case.arms, case.node_class, partial(needs.of_arms, case), node)


def fit_arms(arms: Sequence[Arm], node_class: NodeClass, need: ArmsNeed, node: NodeFacts) -> Fit:
    """What arms need on a node of a class, and what that has.

    Each may run on the GPUs that their job gets, see ``NodeClass.gpu_choices``.

    Args:
        arms: The arms; their flags are complete.
        node_class: The class.
        need: What they need.
        node: Facts of the node.
    """
    ways = [_on_gpus(arms, need, node, gpus) for gpus in node_class.gpu_choices(node)]
    return next((fit for fit in ways if not fit.short), ways[0])


def promised(case: Case, needs: Needs) -> Fit | None:
    """A case on the least node that its class allows; ``None`` where the class says nothing of memory.

    Only devices that the class says something of are in it. It decides nothing: a class says what a node has at least,
    and a node of it may have more.
    """
    wanted = case.node_class
    if not wanted.min_vram_gib and not wanted.min_ram_gib:
        return None
    owner = f"the least node of class {wanted.name}"
    gpu = Gpu("GPU", int(wanted.min_vram_gib * GIB) or GIB, "", "")
    ram = int(wanted.min_ram_gib * GIB)
    least = NodeFacts("", 0, (), ram, (gpu,) * wanted.min_gpus, "", 0, "", None, 1, 0)
    fit = _on_gpus(case.arms, partial(needs.of_arms, case), least, tuple(range(wanted.min_gpus)))
    said = [room for room in fit.rooms if (wanted.min_ram_gib if room.device == RAM else wanted.min_vram_gib)]
    return replace(fit, rooms=tuple(replace(room, owner=owner) for room in said))


def _on_gpus(arms: Sequence[Arm], need: ArmsNeed, node: NodeFacts, numbers: tuple[int, ...]) -> Fit:
    sizes = tuple(node.gpus[number].vram_bytes for number in numbers)
    found = need(lambda arm: sizes if sizes and can_use_gpus(arm, node) else ())
    rooms = tuple([room for each in found for room in _rooms(each, node, numbers)])
    notes = tuple(dict.fromkeys([note for each in found for note in each.memory.notes]))
    return Fit(rooms, len(found) == len(arms), notes, numbers)


def _rooms(need: ArmMemory, node: NodeFacts, numbers: tuple[int, ...]) -> Sequence[Room]:
    arm, memory = need.arm, need.memory
    of = f" of node '{node.name}'" if node.name else ""
    on_gpus = [
        Room(arm, f"gpu{number}", node.gpus[number].name + of, device, device.total, node.gpus[number].vram_bytes)
        for number, device in zip(numbers, memory.gpus, strict=False)
        if device.total
    ]
    owner = f"node '{node.name}'" if node.name else "node"
    return (*on_gpus, Room(arm, RAM, owner, memory.ram, memory.held, node.usable_ram_bytes))


def _mib(size: int) -> str:
    return f"{size / _MIB:.0f}"
