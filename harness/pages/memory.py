"""Memory of a job's arms: what they were estimated to need, what their builds printed, what was seen at most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.domain.load_facts import RAM, LoadFacts
from harness.domain.measurement import ProcessRun
from harness.judging.loading import planned_device
from harness.judging.memory import MIB

_KV = "KV"


def memory_data(runs: Sequence[ProcessRun]) -> list[list[str]]:
    """One arm's memory.

    Args:
        runs: Its processes.

    Returns:
        Rows of device, use, MiB estimated, MiB printed or seen; a figure that nobody knows is empty. Below the uses of
        a device stands its whole; the resident peak in RAM is of the process, whatever it holds beside.
    """
    load = next((run.load for run in runs if run.load), None) or LoadFacts()
    planned = {(buffer.device, buffer.use): buffer.mib for buffer in load.planned}
    printed: dict[tuple[str, str], float] = {}
    for buffer in load.buffers:
        key = (planned_device(buffer), _KV if buffer.use == "state" else buffer.use)
        printed[key] = printed.get(key, 0.0) + buffer.mib
    peaks = dict(_peaks(runs))
    devices = dict.fromkeys([*(device for device, _ in (*planned, *printed)), *peaks])
    return [row for device in devices for row in _device_rows(device, planned, printed, peaks.get(device))]


def _device_rows(
    device: str,
    planned: dict[tuple[str, str], float],
    printed: dict[tuple[str, str], float],
    peak: float | None,
) -> Iterator[list[str]]:
    uses = [use for found, use in dict.fromkeys((*planned, *printed)) if found == device]
    for use in uses:
        yield [device, use, _mib(planned.get((device, use))), _mib(printed.get((device, use)))]
    whole = sum(mib for (found, _), mib in planned.items() if found == device)
    if peak is not None:
        use = "resident peak" if device == RAM else "peak beside others' memory"
        yield [device, use, _mib(whole or None), _mib(peak)]


def _peaks(runs: Sequence[ProcessRun]) -> Iterator[tuple[str, float]]:
    """The largest peak of each device. Of a GPU it is what was added to what others held when the engine started."""
    resident = [run.max_rss_bytes / MIB for run in runs if run.max_rss_bytes > 0]
    if resident:
        yield RAM, max(resident)
    for index in range(max((len(run.conditions.gpus) for run in runs), default=0)):
        states = [run.conditions.gpus[index] for run in runs if index < len(run.conditions.gpus)]
        added = [
            (state.memory_peak_bytes - state.memory_before_bytes) / MIB
            for state in states
            if state.used and state.memory_peak_bytes is not None and state.memory_before_bytes is not None
        ]
        if added:
            yield f"GPU {index}", max(added)


def _mib(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}"
