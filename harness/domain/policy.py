"""The judging policy of a matrix: error rates, margins, and what becomes of the undecided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Policy:
    """How strictly measurements are judged.

    Attributes:
        alpha: Two-sided error rate of a contrast; intervals hold 1 - alpha.
        margin: Relative change that is still "equivalent", e.g. 0.05.
        ceiling_tps: Tokens per second above which a measurement is not believed.
        inconclusive: ``skip`` reports the undecided as skipped, ``error`` as errors.
    """

    alpha: float = 0.01
    margin: float = 0.05
    ceiling_tps: float = 1e6
    inconclusive: Literal["skip", "error"] = "skip"
