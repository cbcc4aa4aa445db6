"""How much more an inconclusive contrast would need: by simulating the rule on quads like those that it had."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import fmean, stdev

from harness.domain.spread import Spread
from harness.judging.budget import LIKELY, normal_paths
from harness.judging.sequential import Limits, decide

FEWEST = 3
"""Quads from which their scatter is known well enough to look ahead."""
_MOST = 256
_PATHS = 60
"""Enough for a number that is told as "about"."""
_DIGITS = 3


def shortfall_text(log_ratios: Sequence[float], limits: Limits, process_s: float) -> str:
    """What would decide an open contrast, if the change is what it seems to be and quads go on to scatter like this.

    Args:
        log_ratios: One per quad.
        limits: How strictly is decided.
        process_s: Mean wall time of its process starts, seconds.

    Returns:
        Empty where there are too few quads to say.
    """
    had = len(log_ratios)
    if had < FEWEST:
        return ""
    total = quads_likely_to_decide(log_ratios, limits)
    if total is None:
        return (
            f"at this scatter not even {_MOST} quads are likely to decide it: less noise is needed, or a wider margin"
        )
    more = max(1, total - had)
    minutes = 4 * more * process_s / 60
    time = f"{minutes:.0f} min" if minutes >= 1 else f"{60 * minutes:.0f} s"
    return f"about {more} more quad{'' if more == 1 else 's'} ({time}) would likely decide it"


def quads_likely_to_decide(log_ratios: Sequence[float], limits: Limits) -> int | None:
    """Quads in all that would likely decide an open contrast.

    Args:
        log_ratios: Those that it had, at least ``FEWEST``.
        limits: How strictly is decided.

    Returns:
        ``None``: not even the longest schedule that was tried.
    """
    mean, sd = fmean(log_ratios), stdev(log_ratios)
    return quads_to_decide(round(mean, _DIGITS), max(round(sd, _DIGITS), 10**-_DIGITS), limits, len(log_ratios))


@lru_cache(maxsize=256)
def quads_to_decide(mean: float, quad_sd: float, limits: Limits, had: int) -> int | None:
    """Quads in all that decide with ``LIKELY``, in a schedule long enough for them.

    Args:
        mean: Of the log ratios.
        quad_sd: Their standard deviation.
        limits: How strictly is decided; ``max_quads`` is not held to.
        had: Quads that did not decide it.

    Returns:
        ``None``: not even the longest schedule that was tried.
    """
    spread = Spread("", quad_sd, float(had - 1), "")
    most = had
    while most < _MOST:
        most = min(2 * most, _MOST)
        ends = [
            decide([mean + quad_sd * z for z in path[:most]], replace(limits, max_quads=most), spread)
            for path in normal_paths(most)[:_PATHS]
        ]
        took = sorted(end.next_look for end in ends if end.throughput != "inconclusive")
        if len(took) >= LIKELY * len(ends):
            return took[math.ceil(LIKELY * len(ends)) - 1]
    return None
