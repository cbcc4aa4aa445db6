"""What is known beforehand of how far measurements scatter where nothing changes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """The scatter of one workload's quads on one node class, two arms that are alike.

    Attributes:
        workload: The workload's name.
        quad_sd: Standard deviation of a quad's log ratio (four processes, ABBA), e.g. 0.01 for one per cent.
        df: Degrees of freedom it rests on: quads it was estimated from, less one.
        source: Where it is from, in words for reasons: ``calibration of 2026-11-30``, ``this run's first quads``.
    """

    workload: str
    quad_sd: float
    df: float
    source: str


@dataclass(frozen=True, slots=True)
class Quarantine:
    """A workload that a calibration found unfit to be judged on one node.

    Attributes:
        workload: The workload's name.
        node: Fingerprint of the node.
        reason: Which calibration found what, in words.
    """

    workload: str
    node: str
    reason: str
