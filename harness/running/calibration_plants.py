"""Which slowdowns are planted where: sleeping inside the timed part, or fewer threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from harness.domain.build import Tool
from harness.domain.job import Job
from harness.domain.node import NodeFacts
from harness.domain.spread import Spread
from harness.domain.workload import Timed, Workload
from harness.execution.preparing import threads_for
from harness.judging.budget import chance
from harness.judging.sequential import Limits
from harness.running.calibration import Target

_LADDER = (0.03, 0.05, 0.10, 0.15, 0.20, 0.30, 0.40, 0.50, 0.60, 0.75, 0.90)
_CLEAR = 0.50
_OF_THREADS = (0.20,)
"""What half of the threads cost at the least, where threads count."""
_NEARLY_CERTAIN = 0.99


@dataclass(frozen=True, slots=True)
class PlannedPlant:
    """A slowdown that can be planted.

    Attributes:
        loads: The workloads that it slows.
        threads: Threads of the candidate and of the baseline; ``None``: the candidate sleeps.
    """

    loads: tuple[Timed, ...]
    threads: tuple[int, int] | None = None

    @property
    def sleeps(self) -> bool:
        """Whether the candidate sleeps, so that its loss is known."""
        return self.threads is None

    def what(self, loss: float | None) -> str:
        """In words."""
        if self.threads:
            return f"{self.threads[0]} of {self.threads[1]} threads"
        return f"{loss:.0%} of the speed slept away" if loss else "a part of the speed slept away"

    def required(self, load: Timed) -> bool:
        """Whether the judge must find it: generation may be as fast with fewer threads, where memory is the limit."""
        return self.sleeps or (isinstance(load, Workload) and not load.n_gen)

    def loss_for(self, known: Sequence[tuple[Spread, Limits]], quads_at: Callable[[float], int]) -> float | None:
        """The smallest loss that all workloads nearly surely show.

        Args:
            known: Spreads of the workloads at their upper bounds: a plant that is missed must not be bad luck.
            quads_at: Quads that fit where the candidate is slower by a loss.

        Returns:
            ``None``: none is large enough.
        """
        ladder = _LADDER if self.sleeps else _OF_THREADS
        return next((loss for loss in ladder if self.is_sure(loss, known, quads_at)), None)

    @property
    def clear(self) -> float:
        """A loss that may be planted and shows in few quads."""
        return _CLEAR if self.sleeps else _OF_THREADS[0]

    def is_sure(self, loss: float, known: Sequence[tuple[Spread, Limits]], quads_at: Callable[[float], int]) -> bool:
        """Whether all workloads nearly surely show a loss; arguments as of `loss_for`."""
        named = {load.name for load in self.loads}
        own = [(spread, limits) for spread, limits in known if spread.workload in named]
        quads = quads_at(loss)
        return all(chance(loss, quads, spread, limits) >= _NEARLY_CERTAIN for spread, limits in own)

    def job(self, alike: Job) -> Job:
        """The job of an arm against itself, with those of its workloads that are slowed."""
        return replace(alike, workloads=self.loads)

    def slowed(self, job: Job, loss: float) -> Job:
        """The job with the slowdown in its candidate."""
        ours, theirs = job.arms
        if self.threads is None:
            return replace(job, design=replace(job.design, slowdown=loss))
        return replace(job, arms=(ours, replace(theirs, flags=theirs.flags.merged({"t": self.threads[0]}))))


def plants_for(target: Target, sound: Sequence[Timed], node: NodeFacts) -> tuple[PlannedPlant, ...]:
    """The slowdowns that can be planted in an arm.

    Args:
        target: The arm.
        sound: Those of its workloads whose scatter is known.
        node: Where it runs.
    """
    planned = []
    slowed = tuple(load for load in sound if isinstance(load, Workload))
    if slowed and target.arm.build.tool is Tool.EMBEDDED:
        planned.append(PlannedPlant(slowed))
    threads = threads_for(target.arm)
    on_cpu = not node.gpus or target.arm.flags.get("ngl") == 0
    if sound and threads > 1 and on_cpu:
        planned.append(PlannedPlant(tuple(sound), (threads // 2, threads)))
    return tuple(planned)
