"""What disturbed processes without voiding them, in words for the reasons of what stays undecided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from harness.domain.measurement import Conditions, ProcessRun

WORTH_TELLING = 0.02
"""Share of time from which other work is told of: the kernel counts in ticks of 10 ms, which is 1 % of a second."""

WARM = 0.99
"""Share of the model from which the page cache counts as warm."""

_MIB = 1024**2


def disturbance_text(runs: Sequence[ProcessRun]) -> str:
    """What the machine did beside the engine, e.g. ``the pinned cores were 31 % busy with other work``.

    Args:
        runs: The processes that a verdict rests on.

    Returns:
        A phrase; empty where nothing of note was seen, or nothing is known.
    """
    states = [run.conditions for run in runs]
    cores = "the pinned cores" if all(state.cpus for state in states) else "the cores"
    told = (
        _share(states, lambda state: state.foreign_load, f"{cores} were {{}} busy with other work"),
        _share(states, lambda state: state.steal, f"the hypervisor gave {{}} of {cores} to others"),
        _cold(states),
        _swapped(states),
    )
    return ", ".join(text for text in told if text)


def _share(states: Sequence[Conditions], value: Callable[[Conditions], float | None], words: str) -> str:
    known = [share for state in states if (share := value(state)) is not None]
    if not known or max(known) < WORTH_TELLING:
        return ""
    typical, most = (round(100 * share) for share in (median(known), max(known)))
    if not typical:
        return words.format(f"up to {most} %")
    return words.format(f"{typical} %") + (f" (at most {most} %)" if most > typical else "")


def _cold(states: Sequence[Conditions]) -> str:
    """Processes that found parts of the model on the disk, where others found it in memory."""
    known = [state.model_cached for state in states if state.model_cached is not None]
    cold = sum(share < WARM for share in known)
    return f"{cold} of {len(known)} processes found the model partly on the disk" if 0 < cold < len(known) else ""


def _swapped(states: Sequence[Conditions]) -> str:
    total = sum(state.swapped_bytes or 0 for state in states)
    return f"the machine swapped {total / _MIB:.0f} MiB" if total >= _MIB else ""
