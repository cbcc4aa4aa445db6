"""How much more an inconclusive case would need: by simulating the rule on quads like those that it had."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import fmean, stdev

from harness.domain.job import Job
from harness.domain.spread import Spread
from harness.judging.budget import LIKELY, normal_paths
from harness.judging.sequential import Limits, decide

FEWEST = 3
"""Quads from which their scatter is known well enough to look ahead."""
_MOST = 256
_PATHS = 60
"""Enough for a number that is told as "about"."""
_DIGITS = 3
_PROCESSES = 4
"""Of a quad, and of a block of four arms."""
_MINUTE_S = 60
_BALANCED = {4: 4}
"""By the arms of a job: its blocks are a multiple of this."""
_POLICY_MINUTES = re.compile(r"\[policy\] (?:blocks = \d+ and )?minutes = (\d+)")
_POLICY_BLOCKS = re.compile(r"\[policy\] blocks = \d+")
_UNITS = {1: "block", 2: "quad"}
"""By the blocks that a job begins at once."""


def shortfall_text(undecided: Sequence[Sequence[float]], limits: Limits, job: Job, process_s: float) -> str:
    """What would decide an open case, if the change is what it seems to be and quads go on to scatter like this.

    Args:
        undecided: Of each open effect, the log ratios: one per quad, or per block of four arms.
        limits: How strictly is decided.
        job: Its job: what of its schedule and budget is too small is named.
        process_s: Mean wall time of its process starts, seconds.

    Returns:
        Empty where nothing is open.
    """
    if not undecided:
        return ""
    unit = _UNITS[job.blocks_at_once]
    had = len(undecided[0])
    if had < FEWEST:
        room = _room_text(FEWEST, job, process_s)
        needed = f", {FEWEST} need {room}" if room else ""
        return f"fewer than {FEWEST} {unit}s do not show how many it takes{needed}"
    totals = [quads_likely_to_decide(log_ratios, limits) for log_ratios in undecided]
    known = [total for total in totals if total is not None]
    if len(known) < len(totals):
        return (
            f"even if the estimate stands, not even {_MOST} {unit}s are likely to decide it at this scatter: "
            f"less noise is needed, or a wider margin"
        )
    total = max(*known, had + 1)
    more = total - had
    seconds = _PROCESSES * more * process_s
    time = f"{seconds / 60:.0f} min" if seconds >= _MINUTE_S else f"{seconds:.0f} s"
    room = _room_text(total, job, process_s)
    wanted = f": a new run needs {room}" if room else ""
    plural = "s" * (more != 1)
    return f"about {more} more {unit}{plural} ({time}) would likely decide it if the estimate stands{wanted}"


def _room_text(quads: int, job: Job, process_s: float) -> str:
    """The keys of the policy that leave no room for so many quads, with values that do; empty where all do."""
    design = job.design
    blocks = quads * job.blocks_at_once
    blocks += -blocks % _BALANCED.get(len(job.arms), 1)
    processes = design.burn_in * len(job.arms) + _PROCESSES * quads
    minutes = processes * process_s / _MINUTE_S
    keys = [f"blocks = {blocks}"] if blocks > design.blocks else []
    if design.minutes is not None and minutes > design.minutes:
        keys.append(f"minutes = {math.ceil(minutes)}")
    return f"[policy] {' and '.join(keys)}" if keys else ""


def without_policy(reason: str) -> str:
    """A reason in the words of a command: it has no matrix, minutes are its option, and it has blocks enough for them.

    Args:
        reason: A verdict's, with what `shortfall_text` says of a matrix.
    """
    return _POLICY_BLOCKS.sub("more of them than a run makes", _POLICY_MINUTES.sub(r"--minutes \1", reason))


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
