"""Memory: the peak of an engine process against a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.domain.measurement import ProcessRun
from harness.domain.verdict import Estimate
from harness.domain.words import Status

MIB = 1024**2


@dataclass(frozen=True, slots=True)
class MemoryVerdict:
    """What the processes' peaks say.

    Attributes:
        status: Pass or fail; error where no peak was measured.
        why: The deciding figure in words.
        peak: The largest peak in MiB; its bounds are the smallest and the largest peak seen.
    """

    status: Status
    why: str
    peak: Estimate | None


def judge_memory(runs: Sequence[ProcessRun], limit_mib: float) -> MemoryVerdict:
    """Judge the peak resident memory of every process, burn-in included.

    Args:
        runs: The processes.
        limit_mib: The limit, MiB.
    """
    peaks = [run.max_rss_bytes / MIB for run in runs if run.max_rss_bytes > 0]
    if not peaks:
        return MemoryVerdict(Status.ERROR, "no process has a measured peak", None)
    peak = Estimate(max(peaks), min(peaks), max(peaks), len(peaks), "MiB")
    if peak.value <= limit_mib:
        return MemoryVerdict(Status.PASS, f"within the limit of {limit_mib:g} MiB", peak)
    return MemoryVerdict(Status.FAIL, f"{peak.value - limit_mib:.1f} MiB over the limit of {limit_mib:g} MiB", peak)
