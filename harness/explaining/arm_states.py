"""The arms of a case side by side: what the machine did while they ran, and where their weights lay."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

from harness.domain.measurement import Conditions, GpuState, ProcessRun
from harness.reporting.clean import one_line

MIB = 1024**2
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
_SHOWN = 16
"""Digits of a digest that are shown."""
_APART = 0.02
"""From which share on medians are told to differ."""


@dataclass(frozen=True, slots=True)
class Row:
    """One fact of every arm.

    Attributes:
        name: What it is.
        values: In words, one for each arm.
        differs: Whether the arms differ in it.
        basic: Whether it is shown where they do not.
    """

    name: str
    values: tuple[str, ...]
    differs: bool
    basic: bool = False


_Runs: TypeAlias = Sequence[ProcessRun]
_OfConditions: TypeAlias = Callable[[Conditions], float | None]


def state_rows(arms: Sequence[_Runs]) -> list[Row]:
    """Machine and process facts of the arms; a fact that no arm tells is left out.

    Args:
        arms: Scored processes of each arm.
    """
    rows = [
        _numbers("processes", [[float(len(runs))] for runs in arms], "{:.0f}", basic=True),
        _numbers("wall time of a process, s", [[run.wall_s for run in runs] for runs in arms], "{:.1f}"),
        _numbers("loading the model, s", [[run.load_s for run in runs] for runs in arms], "{:.2f}"),
        _numbers(
            "peak memory, MiB", [[run.max_rss_bytes / MIB for run in runs] for runs in arms], "{:.0f}", basic=True
        ),
    ]
    rows += [_of_conditions(arms, name, value, form, basic) for name, value, form, basic in _CONDITIONS]
    rows += [_words(name, [_seen(runs, value) for runs in arms]) for name, value in _CONDITION_WORDS]
    gpus = list(dict.fromkeys(gpu.uuid for runs in arms for run in runs for gpu in run.conditions.gpus if gpu.used))
    for number, uuid in enumerate(gpus):
        rows += _gpu_rows(f"GPU {number}" if len(gpus) > 1 else "GPU", uuid, arms)
    return [row for row in rows if any(row.values)]


def load_rows(arms: Sequence[_Runs]) -> list[Row]:
    """What each arm's build said when it loaded the model: buffers, layers, graph splits, notices."""
    loads = [next((run.load for run in runs if run.load), None) for runs in arms]
    if not any(loads):
        return []
    keys = dict.fromkeys((each.use, each.device) for load in loads if load for each in load.buffers)
    rows = [
        _numbers(
            f"{use} on {device}, MiB",
            [
                [each.mib for each in load.buffers if (each.use, each.device) == (use, device)] if load else []
                for load in loads
            ],
            "{:.0f}",
        )
        for use, device in keys
    ]
    rows += [
        _words(
            "layers on GPUs", ["{} of {}".format(*load.offloaded) if load and load.offloaded else "" for load in loads]
        ),
        _words("graph splits", [_splits(load.splits, load.splits_of_one) if load else "" for load in loads]),
        _words("graph nodes", [str(load.nodes or "") if load else "" for load in loads]),
        _words("tensors repacked", [str(load.repacked) if load else "" for load in loads]),
        _words(
            "tensors placed apart",
            [
                "; ".join(f"blk {each.layers} {', '.join(each.tensors)} on {each.buffer}" for each in load.overrides)
                if load
                else ""
                for load in loads
            ],
        ),
        _words("the build said", ["; ".join(notice.line for notice in load.notices) if load else "" for load in loads]),
    ]
    settings = dict.fromkeys(name for load in loads if load for name, _ in load.settings)
    rows += [
        _words(f"{name} as the build did it", [load.values.get(name, "") if load else "" for load in loads])
        for name in settings
    ]
    return [row for row in rows if any(row.values)]


def content_rows(arms: Sequence[_Runs]) -> list[Row]:
    """What really ran: content keys, versions and commits, hashes of libraries."""
    facts = [_facts(runs) for runs in arms]
    names = dict.fromkeys(name for each in facts for name in each)
    return [_words(name, [each.get(name, "") for each in facts]) for name in names]


def engine_facts(runs: _Runs) -> dict[str, str]:
    """What an arm's engines said of themselves, libraries by file name with their hashes; no folders."""
    found: dict[str, str] = {}
    for run in runs:
        for name, value in run.engine.items():
            found.update(_libraries(value) if name == "libraries" else {name: value})
    return found


def _facts(runs: _Runs) -> dict[str, str]:
    keys = dict.fromkeys(run.content_key for run in runs if run.content_key and not run.step.apart)
    told = {name: _DIGEST.sub(lambda found: found[0][:_SHOWN], value) for name, value in engine_facts(runs).items()}
    return {"content key": ", ".join(keys), **told}


def _libraries(text: str) -> dict[str, str]:
    try:
        listed = json.loads(text)
        return {f"library {one_line(entry['path']).rpartition('/')[2]}": str(entry["sha256"])[:16] for entry in listed}
    except (ValueError, TypeError, KeyError):
        return {"libraries": one_line(text)}


def _splits(whole: int | None, of_one: int | None) -> str:
    if whole is None:
        return ""
    return f"{whole}" + (f", {of_one} for one token" if of_one is not None else "")


def _of_conditions(arms: Sequence[_Runs], name: str, value: _OfConditions, form: str, basic: bool) -> Row:
    return _numbers(name, [[value(run.conditions) for run in runs] for runs in arms], form, basic=basic)


def _percent(value: float | None) -> float | None:
    return None if value is None else 100 * value


_CONDITIONS: tuple[tuple[str, _OfConditions, str, bool], ...] = (
    ("niceness", lambda state: float(state.niceness), "{:.0f}", False),
    ("compute threads", lambda state: float(state.threads), "{:.0f}", False),
    ("load average before", lambda state: state.load_before, "{:.1f}", True),
    ("cores' clock, MHz", lambda state: state.mhz, "{:.0f}", False),
    ("cores throttled, %", lambda state: _percent(state.throttled), "{:.1f}", False),
    ("model in page cache, %", lambda state: _percent(state.model_cached), "{:.0f}", False),
    ("cores busy with other work, %", lambda state: _percent(state.foreign_load), "{:.0f}", True),
    ("stolen by the hypervisor, %", lambda state: _percent(state.steal), "{:.1f}", False),
    ("waited for a core, s", lambda state: state.queue_wait_s, "{:.2f}", False),
    ("lost its core, times", lambda state: _float(state.involuntary_switches), "{:.0f}", False),
    ("page faults from disk", lambda state: _float(state.major_faults), "{:.0f}", False),
    (
        "machine swapped, MiB",
        lambda state: None if state.swapped_bytes is None else state.swapped_bytes / MIB,
        "{:.0f}",
        False,
    ),
)
_CONDITION_WORDS: tuple[tuple[str, Callable[[Conditions], str]], ...] = (
    ("cores", lambda state: _ranges(state.cpus)),
    ("NUMA nodes", lambda state: _ranges(state.numa_nodes)),
    ("governor", lambda state: state.governor),
    ("huge pages", lambda state: state.huge_pages),
    ("GPU telemetry", lambda state: state.gpu_telemetry),
    ("sandbox", lambda state: state.sandbox),
)
_GPU: tuple[tuple[str, Callable[[GpuState], float | None], str], ...] = (
    ("clock, MHz", lambda gpu: gpu.sm_mhz, "{:.0f}"),
    ("memory clock, MHz", lambda gpu: gpu.memory_mhz, "{:.0f}"),
    ("performance state", lambda gpu: _float(gpu.performance_state), "{:.0f}"),
    ("power, W", lambda gpu: gpu.power_w, "{:.0f}"),
    ("power limit, W", lambda gpu: gpu.power_limit_w, "{:.0f}"),
    ("temperature, C", lambda gpu: gpu.temperature_c, "{:.0f}"),
    ("memory peak, MiB", lambda gpu: None if gpu.memory_peak_bytes is None else gpu.memory_peak_bytes / MIB, "{:.0f}"),
    (
        "memory before, MiB",
        lambda gpu: None if gpu.memory_before_bytes is None else gpu.memory_before_bytes / MIB,
        "{:.0f}",
    ),
    ("foreign processes", lambda gpu: float(gpu.foreign_processes), "{:.0f}"),
)


def _gpu_rows(title: str, uuid: str, arms: Sequence[_Runs]) -> list[Row]:
    states = [[gpu for run in runs for gpu in run.conditions.gpus if gpu.uuid == uuid] for runs in arms]
    rows = [
        _numbers(f"{title}: {name}", [[value(state) for state in of_arm] for of_arm in states], form, basic=True)
        for name, value, form in _GPU
    ]
    slowed = [", ".join(sorted({why for state in of_arm for why in state.slowdowns})) for of_arm in states]
    rows.append(_words(f"{title}: clocks held down by", [text or "nothing" for text in slowed]))
    rows.append(_words(f"{title}: driver", [", ".join(sorted({state.driver for state in each})) for each in states]))
    return rows


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)


def _ranges(numbers: Iterable[int]) -> str:
    found = sorted(numbers)
    return (
        f"{found[0]}-{found[-1]}"
        if found and found == list(range(found[0], found[-1] + 1)) and len(found) > 1
        else ",".join(map(str, found))
    )


def _seen(runs: _Runs, value: Callable[[Conditions], str]) -> str:
    return ", ".join(dict.fromkeys(text for run in runs if (text := value(run.conditions))))


def _numbers(name: str, arms: Sequence[Sequence[float | None]], form: str, *, basic: bool = False) -> Row:
    """Medians, with the smallest and largest beside where they print otherwise."""
    known = [[value for value in values if value is not None] for values in arms]
    middles = [median(values) for values in known if values]
    apart = len(middles) > 1 and max(middles) - min(middles) > _APART * max(map(abs, middles))
    shown = tuple(_spread(values, form) for values in known)
    # What prints alike does not differ to a reader.
    return Row(name, shown, apart and len({text.split(" ")[0] for text in shown if text}) > 1, basic)


def _spread(values: Sequence[float], form: str) -> str:
    if not values:
        return ""
    middle, low, high = (form.format(each) for each in (median(values), min(values), max(values)))
    return middle if low == high else f"{middle} ({low} to {high})"


def _words(name: str, values: Sequence[str]) -> Row:
    told = [value for value in values if value]
    return Row(name, tuple(values), len(set(told)) > 1 or 0 < len(told) < len(values))
