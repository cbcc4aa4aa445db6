"""How long a calibration would have to be, from what a shorter one measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.domain.spread import Spread
from harness.judging.budget import Pace
from harness.judging.calibration import FEWEST_QUADS, sd_bounds
from harness.judging.sequential import Limits
from harness.running.calibration_plants import PlannedPlant

ALIKE_SHARE = 0.6
"""Of the time; the rest is for the plants."""
_STEP = 1.15
_MOST_TIMES = 64.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What is known of one target.

    Attributes:
        quad_sds: By workload, how far its quads scatter.
        limits: By workload, how strictly it is decided.
        pace: Of processes whose candidate is slower by a loss.
        plants: What is to be planted.
        most_quads: Quads that the policy's blocks have.
    """

    quad_sds: Mapping[str, float]
    limits: Mapping[str, Limits]
    pace: Callable[[float], Pace]
    plants: Sequence[PlannedPlant]
    most_quads: int

    def minutes(self, at_least: float) -> float | None:
        """Minutes of this target that prove it: quads enough to know its scatter, and for every plant to show.

        Args:
            at_least: Minutes that did not.

        Returns:
            ``None``: at this scatter the policy's quads are too few, whatever the minutes.
        """
        fewest = self.pace(0.0).minutes(FEWEST_QUADS) / ALIKE_SHARE
        minutes = max(fewest, at_least * _STEP)
        most = minutes * _MOST_TIMES
        while minutes <= most:
            if self._proves(minutes):
                return minutes
            minutes *= _STEP
        return None

    def _proves(self, minutes: float) -> bool:
        quads = self.pace(0.0).quads(minutes * ALIKE_SHARE)
        if quads < FEWEST_QUADS:
            return False
        share = minutes * (1 - ALIKE_SHARE) / max(1, len(self.plants))
        highest = [
            (Spread(name, sd_bounds(sd, quads - 1)[1], quads - 1.0, ""), self.limits[name])
            for name, sd in self.quad_sds.items()
        ]
        return all(
            plant.is_sure(plant.clear, highest, lambda loss: min(self.most_quads, self.pace(loss).quads(share)))
            for plant in self.plants
        )
