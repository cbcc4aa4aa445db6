"""How far two arms' distributions of the next token may be apart, as somebody measured where nothing was wrong."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ContrastClass(StrEnum):
    """In what two arms differ, as far as rounding is concerned; each has tolerances of its own."""

    FLAGS = "flags"
    """One build, other flags or variables."""
    KERNELS = "kernels"
    """One fork, and a flag that has the weights multiplied by other kernels, such as ``rtr``."""
    BUILD = "build"
    """Two builds of one fork, without such a flag."""
    FORK = "fork"
    """Builds of two forks."""
    BACKEND = "backend"
    """Two backends, e.g. CPU and CUDA."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What is made of the Kullback-Leibler divergences at many positions, nats.

    Attributes:
        mean: Mean over all positions.
        decode_mean: Mean over the positions that were decoded one at a time.
        median: The value that half of the positions exceed.
        p90: The value that one position in ten exceeds.
        decode_p90: The same over the positions that were decoded one at a time.
        p99: The value that one position in a hundred exceeds.
        maximum: The largest.
        p25: The value that three positions in four exceed; 0 in what older versions calibrated: not set.
        decode_median: The value that half of the positions that were decoded one at a time exceed; 0: as above.
    """

    mean: float
    decode_mean: float
    median: float
    p90: float
    decode_p90: float
    p99: float
    maximum: float
    p25: float = 0.0
    decode_median: float = 0.0


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What a calibration found for the model and the backend of a job.

    Attributes:
        contrast: For which class of contrast.
        figures: The most that is tolerated of each.
        source: Where it is from, in words: ``calibration of 2026-11-30``.
        positions: Positions that they rest on; ``None``: not known, as in older journals, and every figure counts.
        decoded: How many of these were decoded one at a time; ``None``: not known.
    """

    contrast: ContrastClass
    figures: Figures
    source: str
    positions: int | None = None
    decoded: int | None = None
