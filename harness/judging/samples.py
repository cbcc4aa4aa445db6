"""Process medians: the one number that a process start contributes, on a log scale, refused where it is not a speed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median, stdev

from harness.domain.measurement import NS, ProcessRun, Samples, is_plausible_ns
from harness.domain.verdict import ArmSpeed

MS_PER_S = 1000.0
DEFAULT_CEILING_TPS = 1e6
"""No engine of this family is faster than this on any machine known today; what claims to be was not measured."""


class Implausible(ValueError):  # noqa: N818 - reads as what it is at the raise
    """A measurement that cannot be a speed: NaN, infinite, zero, negative, or faster than the ceiling."""


class NothingKept(ValueError):  # noqa: N818 - reads as what it is at the raise
    """A process reported fewer repetitions than its warm-up, so nothing of it can be judged."""


@dataclass(frozen=True, slots=True)
class ProcessMedian:
    """The speed of one workload in one process start.

    Attributes:
        block: The block of the schedule.
        log_tps: Natural logarithm of the median speed in tokens per second.

    Raises:
        Implausible: If the logarithm is not a finite number.
    """

    block: int
    log_tps: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.log_tps):
            raise Implausible(f"block {self.block}: log speed is {self.log_tps}")

    @property
    def tps(self) -> float:
        """Tokens per second."""
        return math.exp(self.log_tps)

    @classmethod
    def of(cls, samples: Samples, block: int, ceiling_tps: float = DEFAULT_CEILING_TPS) -> ProcessMedian:
        """Take the median of the repetitions that were kept.

        Args:
            samples: The repetitions.
            block: The block of the process.
            ceiling_tps: Tokens per second above which a repetition is not believed.

        Raises:
            Implausible: If any kept repetition is not a speed.
            NothingKept: If no repetition was kept.
        """
        if not samples.kept_ns:
            raise NothingKept(
                f"{samples.workload}: {len(samples.all_ns)} repetitions reported, {samples.discarded} are warm-up"
            )
        return cls(block, median(_log_tps(samples, ns, ceiling_tps) for ns in samples.kept_ns))


def _log_tps(samples: Samples, ns: float, ceiling_tps: float) -> float:
    if samples.tokens <= 0 or not is_plausible_ns(ns):
        raise Implausible(f"{samples.workload}: a repetition of {samples.tokens} tokens took {ns} ns")
    log_tps = math.log(samples.tokens) + math.log(NS) - math.log(ns)
    if log_tps > math.log(ceiling_tps):
        raise Implausible(
            f"{samples.workload}: {samples.tokens * NS / ns:.3g} t/s is above the ceiling of {ceiling_tps:g} t/s"
        )
    return log_tps


def process_medians(
    runs: Iterable[ProcessRun], workload: str, ceiling_tps: float = DEFAULT_CEILING_TPS
) -> dict[int, ProcessMedian]:
    """The scored process medians of one arm, by block.

    Args:
        runs: Processes of one arm; burn-ins and processes without the workload are passed over.
        workload: The workload's name.
        ceiling_tps: Plausibility ceiling, tokens per second.

    Returns:
        One entry per block, blocks ascending; of two processes in one block the later one.

    Raises:
        Implausible: If a kept repetition is not a speed.
        NothingKept: If a process kept no repetition.
    """
    medians = {
        run.step.block: ProcessMedian.of(samples, run.step.block, ceiling_tps)
        for run in runs
        if run.step.scored and (samples := run.samples_of(workload)) is not None
    }
    return dict(sorted(medians.items()))


def arm_speed(label: str, medians: Sequence[ProcessMedian], *, in_ms: bool = False) -> ArmSpeed | None:
    """Sum an arm up for the closing table.

    Args:
        label: The arm's label.
        medians: Its process medians.
        in_ms: Whether they are of a time to the first token.

    Returns:
        Geometric mean of the processes' speeds, of which the ratio of a contrast is made too, and their relative
        standard deviation; ``None`` where the arm has no process.
    """
    if not medians:
        return None
    speeds = [entry.tps for entry in medians]
    spread = stdev(speeds) / (sum(speeds) / len(speeds)) if len(speeds) > 1 else None
    tps = geometric_mean(speeds)
    return ArmSpeed(label, tps, spread, len(speeds), MS_PER_S / tps if in_ms else None)
