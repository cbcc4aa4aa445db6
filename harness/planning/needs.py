"""What the arms of cases need in memory, each worked out once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from harness.builds.choosing import choose_variant
from harness.domain.arm import Arm
from harness.domain.build import NO_GPU
from harness.domain.case import Case
from harness.domain.node import GIB, NodeClass, NodeFacts
from harness.domain.workload import OutputProfile, Timed
from harness.models.memory import Memory, bytes_needed, context_cells, deciding_flags
from harness.planning.plan import PlannedCase

_HOST_BACKENDS = frozenset({"cpu", "blas"})

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
        self._kinds: dict[int, int] = {}
        self._kind_of: dict[tuple[object, ...], int] = {}
        listed = tuple(cases)
        peaks = {planned.case.arms[0] for planned in listed if planned.case.workload is None}
        for planned in listed if peaks else ():
            load = planned.case.workload
            for arm in planned.case.arms if load is not None else ():
                if arm in peaks and load is not None:
                    self._everything[arm] = (*self._everything.get(arm, ()), load)

    def of_arms(self, case: Case, gpus_of: Callable[[Arm], tuple[int, ...]]) -> tuple[ArmMemory, ...]:
        """What each arm needs whose model's tensors are known here.

        Args:
            case: The case; its arms' flags are complete.
            gpus_of: Bytes of the GPUs that an arm can use.
        """
        found = [(arm, self._of_arm(arm, self._loads(case, arm), gpus_of(arm))) for arm in case.arms]
        return tuple([ArmMemory(arm, memory) for arm, memory in found if memory is not None])

    def kind(self, case: Case) -> tuple[tuple[int, int], ...]:
        """Equal for cases that need the same on each node of their class: what decides each arm's memory and its GPUs.

        Args:
            case: The case; its arms' flags are complete.
        """
        return tuple([(self._kind(arm), context_cells(self._loads(case, arm))) for arm in case.arms])

    def most(self, case: Case) -> Memory | None:
        """What the arm needs that needs most, on GPUs as the node class asks for them; ``None``: not known of all."""
        found = self.of_arms(case, lambda arm: declared_gpus(arm, case.node_class))
        if len(found) < len(case.arms):
            return None
        return max((each.memory for each in found), key=lambda need: need.ram.total + sum(g.total for g in need.gpus))

    def _of_arm(self, arm: Arm, loads: Loads, gpus: tuple[int, ...]) -> Memory | None:
        """Worked out once: arms are shared between cases, and told apart by identity, which is quick."""
        key = (id(arm), loads, gpus)
        if key not in self._known:
            self._known[key] = bytes_needed(arm, loads, gpus)
        return self._known[key]

    def _kind(self, arm: Arm) -> int:
        """A number for what decides an arm's memory beside its workloads; found once, as above."""
        if id(arm) not in self._kinds:
            deciding = (arm.model, arm.build, deciding_flags(arm), arm.flags.get("dev"))
            self._kinds[id(arm)] = self._kind_of.setdefault(deciding, len(self._kind_of))
        return self._kinds[id(arm)]

    def _loads(self, case: Case, arm: Arm) -> Loads:
        return (case.workload,) if case.workload is not None else self._everything.get(arm, ())


def declared_gpus(arm: Arm, node_class: NodeClass) -> tuple[int, ...]:
    """Bytes of the GPUs that a class asks for, as far as an arm's build can use them."""
    if not can_use_gpus(arm, None):
        return ()
    return (int(node_class.min_vram_gib * GIB) or GIB,) * node_class.min_gpus


def can_use_gpus(arm: Arm, node: NodeFacts | None) -> bool:
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
