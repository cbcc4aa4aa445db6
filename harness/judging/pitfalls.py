"""Pitfalls: does a documented trap still show on this build and node?"""

from __future__ import annotations

from harness.domain.words import Pitfall, Throughput

_WORDS = {
    Throughput.REGRESSED: Pitfall.PRESENT,
    Throughput.IMPROVED: Pitfall.GONE,
    Throughput.EQUIVALENT: Pitfall.GONE,
}


def judge_pitfall(throughput: Throughput) -> Pitfall:
    """Read a contrast as a pitfall: slower means that the trap is there, equal or faster that it is gone."""
    return _WORDS.get(throughput, Pitfall.INCONCLUSIVE)
