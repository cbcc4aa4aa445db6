"""Places as the order of jobs knows them: their slots, the models at hand, and what runs there."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.domain.node import GIB
from harness.execution.at_hand import Models, ModelsAtHand
from harness.execution.order_tasks import Task

_LOAD_S_PER_BYTE = 1 / (0.5 * GIB)
_OVERRUN = 0.25
"""What a run that takes longer than was thought is thought to take yet, as a share of what it took."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where jobs run.

    Attributes:
        id: As the executor calls it.
        slots: Jobs that can be there at once.
        cache_bytes: What fits there of models that were used last.
        load_s_per_byte: What a model takes that does not lie there: it is fetched, made or read.
        holds: Models that lie there when the place comes.
    """

    id: str
    slots: int = 1
    cache_bytes: int = 64 * GIB
    load_s_per_byte: float = _LOAD_S_PER_BYTE
    holds: Models = ()


@dataclass(frozen=True, slots=True)
class Run:
    """A task that was placed.

    Attributes:
        task: The task.
        place: Where.
        began: When, seconds.
        load_s: What loading its models takes of its time.
    """

    task: Task
    place: str
    began: float
    load_s: float

    def left_s(self, now: float, pace: float) -> float:
        """Seconds that it is thought to take yet.

        Args:
            now: Seconds.
            pace: What a second that was thought really takes.
        """
        took = now - self.began
        return max(self.load_s + pace * self.task.seconds - took, _OVERRUN * took)


@dataclass(slots=True)
class Site:
    """A place as it stands.

    Attributes:
        place: The place.
        at_hand: Models that lie there.
        runs: What runs there, by task.
    """

    place: Place
    at_hand: ModelsAtHand
    runs: dict[str, Run] = field(default_factory=dict)

    @property
    def is_free(self) -> bool:
        """Whether it has a slot for another task."""
        return len(self.runs) < self.place.slots

    def load_s(self, models: Models) -> float:
        """Seconds to load what does not lie there."""
        return self.place.load_s_per_byte * self.at_hand.missing(models)
