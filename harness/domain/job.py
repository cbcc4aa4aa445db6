"""Jobs: arms and workloads that share one lease, and the plan of their process starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from harness.domain.arm import Arm
from harness.domain.build import Tool
from harness.domain.canonical import digest
from harness.domain.case import OutputCheck
from harness.domain.golden import ArmReference, Golden
from harness.domain.measurement import Step
from harness.domain.node import NodeClass
from harness.domain.quiet import Quiet
from harness.domain.sandboxing import Sandboxing
from harness.domain.spread import Quarantine, Spread
from harness.domain.tolerance import Tolerance
from harness.domain.workload import OutputProfile, ProfileWorkload, PromptProfile, Timed

_PAIR_ORDERS = ((0, 1), (1, 0), (1, 0), (0, 1))
"""ABBA, then BAAB: linear drift cancels inside each quad of two pairs and the two quads cancel each other's order."""

_SQUARE = ((0, 1, 3, 2), (1, 2, 0, 3), (2, 3, 1, 0), (3, 0, 2, 1))
"""Williams' square: in four blocks each of four arms has every place once and follows each other arm once."""

BURN_IN = -1


@dataclass(frozen=True, slots=True)
class Design:
    """How often things are repeated.

    Attributes:
        warmup: First repetitions of a process that are discarded.
        repetitions: Repetitions that are kept.
        burn_in: Processes per arm that are run first and not scored.
        blocks: Process starts per arm that are scored, at most: the stopping rule may end the job before.
        timeout_s: Limit of one engine process, seconds.
        minutes: Budget of the whole job: no quad is begun that would not end within it; ``None``: no budget.
        calibration: Whether arms of equal content are wanted: an arm against itself tells how far speeds scatter.
        quiet: What is done against noise.
        slowdown: Share of its speed that a calibration takes from the candidate on purpose: a loss that must be found.
    """

    warmup: int = 4
    repetitions: int = 3
    burn_in: int = 1
    blocks: int = 4
    timeout_s: float = 600.0
    minutes: float | None = None
    calibration: bool = False
    quiet: Quiet = field(default_factory=Quiet)
    slowdown: float = 0.0


@dataclass(frozen=True)
class Job:
    """One lease of a slot: one node, one time window. Asked for its id at every event: no slots, so that it is kept.

    Attributes:
        arms: One arm; baseline and candidate; or the four arms of an attribution.
        workloads: All measured by every process start of an arm: the model is loaded once for them. Either plain ones,
            or quantities of one profile: only one request can be the first of a process.
        outputs: Prompts that the burn-in process of each arm answers, or where its tool can't a process apart;
            ``None``: no output check.
        node_class: Where it may run.
        design: How often things are repeated.
        cases: Ids of the cases that it answers.
        spreads: What is known beforehand of the scatter of its workloads' quads; part of the job, so that judging
            again from the journal uses what the run used.
        quarantines: Workloads that are not judged on some nodes, for the same reason a part of the job.
        tolerances: What calibrations found of outputs of this model, for the same reason a part of the job.
        output_checks: What is declared of the outputs of each arm but the first, in their order; empty where nothing
            is. Cases of speed need it too: the speed of wrong output is not judged.
        timed_alone: Whether some of them judge the speed of a single arm: these need starts enough of their own.
        references: Arms that are held against recorded outputs.
        goldens: What was recorded of them, as it was when the job began, for the same reason a part of it.
        sandboxing: Which engines of a run are sandboxed; no part of the identity.
    """

    arms: tuple[Arm, ...]
    workloads: tuple[Timed, ...]
    outputs: OutputProfile | None
    node_class: NodeClass
    design: Design
    cases: tuple[str, ...]
    spreads: tuple[Spread, ...] = ()
    quarantines: tuple[Quarantine, ...] = ()
    tolerances: tuple[Tolerance, ...] = ()
    output_checks: tuple[OutputCheck, ...] = ()
    timed_alone: bool = False
    references: tuple[ArmReference, ...] = ()
    goldens: tuple[Golden, ...] = ()
    sandboxing: Sandboxing = Sandboxing.AUTO

    @property
    def sandboxed(self) -> bool:
        """Whether its engines run in a sandbox: all or none, so that its arms differ in nothing else."""
        untrusted = any(not arm.build.trusted for arm in self.arms)
        return self.sandboxing is Sandboxing.REQUIRE or (self.sandboxing is Sandboxing.AUTO and untrusted)

    def spread_of(self, workload: str) -> Spread | None:
        """What is known of a workload's scatter, if anything."""
        return next((spread for spread in self.spreads if spread.workload == workload), None)

    def golden_of(self, key: str) -> Golden | None:
        """What is recorded under a key, if it was looked for."""
        return next((golden for golden in self.goldens if golden.key == key), None)

    @property
    def profile(self) -> PromptProfile | None:
        """The profile whose quantities are measured; ``None`` where the workloads are plain."""
        loads = (workload for workload in self.workloads if isinstance(workload, ProfileWorkload))
        return next((workload.profile for workload in loads), None)

    def __getstate__(self) -> dict[str, object]:
        """Without the id: a worker of another version, which calls the job otherwise, has to be found out."""
        return {name: value for name, value in self.__dict__.items() if name != "id"}

    @cached_property
    def id(self) -> str:
        """Stable id: equal arms, workloads, class and design give an equal id."""
        return "job-" + digest(
            [
                [arm.identity for arm in self.arms],
                [workload.name for workload in self.workloads],
                [self.outputs.name, self.outputs.identity] if self.outputs else "",
                self.node_class.name,
                *([self.profile.identity] if self.profile else []),
                *([self.design.slowdown] if self.design.slowdown else []),
            ]
        )

    @property
    def blocks_at_once(self) -> int:
        """Blocks that are begun, ended and voided together: the two of a quad, else one."""
        return 2 if len(self.arms) == 2 else 1  # noqa: PLR2004 - baseline and candidate

    @property
    def process_starts(self) -> int:
        """Length of the schedule: process starts at most."""
        apart = sum(map(self.answers_apart, range(len(self.arms))))
        rounds = self.design.burn_in + self.design.blocks if self.workloads else 1
        return rounds * len(self.arms) + (apart if self.workloads else 0)

    def answers_apart(self, arm: int) -> bool:
        """Whether an arm's prompts are answered by another program of its build than the one that times."""
        return self.outputs is not None and self.profile is None and self.arms[arm].build.tool is Tool.LLAMA_BENCH

    def outputs_step(self, arm: int) -> Step:
        """The process of an arm that answers the prompts of its job."""
        return Step(arm, BURN_IN, outputs=True, apart=self.answers_apart(arm))

    def schedule(self) -> Iterator[Step]:
        """The process starts in order: what answers prompts apart, burn-in of every arm, then block after block."""
        arms = range(len(self.arms))
        apart = [arm for arm in arms if self.answers_apart(arm)]
        yield from (self.outputs_step(arm) for arm in apart)
        for _ in range(self.design.burn_in if self.workloads else 1):
            for arm in arms:
                if arm not in apart:
                    yield Step(arm, BURN_IN, outputs=self.outputs is not None)
                elif self.workloads:
                    yield Step(arm, BURN_IN)
        seed = self.id
        for block in range(self.design.blocks if self.workloads else 0):
            for arm in block_order(len(self.arms), block, seed):
                yield Step(arm, block)


def block_order(arms: int, block: int, seed: str = "") -> tuple[int, ...]:
    """In which order a block starts its arms.

    Args:
        arms: Number of arms: 1, 2 or 4.
        block: Index of the block.
        seed: What the order of four arms is drawn from; a job gives its id, so that a run can be repeated.

    Returns:
        Indices of arms.
    """
    if arms == 1:
        return (0,)
    if arms == len(_SQUARE):
        return _drawn_order(block, seed)
    return _PAIR_ORDERS[block % len(_PAIR_ORDERS)]


def _drawn_order(block: int, seed: str) -> tuple[int, ...]:
    """One row of the square, its rows shuffled and its arms renamed anew for every four blocks."""
    group, row = divmod(block, len(_SQUARE))
    rows, names = (_shuffled([seed, group, what]) for what in ("rows", "arms"))
    return tuple(names[arm] for arm in _SQUARE[rows[row]])


def _shuffled(seed: list[object]) -> list[int]:
    """The four numbers in an order that follows from a seed, on every version of Python."""
    return sorted(range(len(_SQUARE)), key=lambda number: digest([*seed, number]))
