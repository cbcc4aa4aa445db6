"""Which data are void: measured while the machine was not in the state that speed is judged in.

The rules look at the machine alone, never at a speed or at which arm was hurt. A process that breaks one voids all
processes of its quad (with one arm, or more than two: of its block), on every arm alike: swapping the arms voids the
same blocks. Void data are counted and shown, never averaged in.

What is a fact and no reason to void: load of other work on the engine's cores, which a paired comparison can bear and
`disturbance` puts into words; and the power cap of a GPU, which is the ordinary state of many cards under load and
holds the faster arm down more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.domain.measurement import Conditions, GpuState, ProcessRun

SLOWDOWNS = frozenset({"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown"})
"""Reasons of a GPU to hold its clocks down that mean heat or a failing supply."""

MAX_THROTTLED = 0.01
"""Share of a process's time for which its cores may have been throttled: a choice, as small as the margins judged."""

_PAIR = 2


@dataclass(frozen=True, slots=True)
class _Unit:
    """The scored processes of one quad, or block.

    Attributes:
        blocks: Their blocks.
        runs: They.
        gpus: States of the GPUs that an engine used, of all its processes: one that nobody uses is nobody's trouble.
        drivers: Of the job's GPUs before it.
    """

    blocks: tuple[int, ...]
    runs: tuple[ProcessRun, ...]
    gpus: tuple[GpuState, ...]
    drivers: Mapping[str, str]

    @classmethod
    def of(cls, blocks: tuple[int, ...], runs: Sequence[ProcessRun], drivers: Mapping[str, str]) -> _Unit:
        """Pick the states out of the processes."""
        states = [state for run in runs for state in run.conditions.gpus]
        used = {state.uuid for state in states if state.used}
        return cls(blocks, tuple(runs), tuple(state for state in states if state.uuid in used), drivers)


def voided_blocks(runs: Sequence[ProcessRun]) -> dict[int, str]:
    """The blocks of a job that count for nothing.

    Args:
        runs: Every process of the job so far, of all its arms, in order of time.

    Returns:
        Why, by block; both blocks of a quad where there are two arms.
    """
    return {block: why for unit in _units(runs) if (why := _why(unit)) for block in unit.blocks}


def voids_text(runs: Sequence[ProcessRun]) -> str:
    """How much is void and why, with the processes that gave cause counted by arm; empty where nothing is.

    Args:
        runs: Every process of the job.
    """
    voided = voided_blocks(runs)
    if not voided:
        return ""
    arms = _arms(runs)
    unit = "quad" if len(arms) == _PAIR else "block"
    count = sum(unit_.blocks[0] in voided for unit_ in _units(runs))
    reasons = ", ".join(dict.fromkeys(voided.values()))
    drivers = _first_drivers(runs)
    causes = Counter(run.step.arm for run in runs if run.step.block in voided and _gives_cause(run, drivers))
    told = ", ".join(f"{_arm_name(arm, len(arms))} {causes[arm]}" for arm in arms)
    return f"{count} {unit}{'s' * (count > 1)} void on all arms: {reasons} (processes that gave cause: {told})"


# ---- the rules -------------------------------------------------------------------------------------------------------


def _why(unit: _Unit) -> str:
    return next((why for rule in _RULES if (why := rule(unit))), "")


def _niceness(unit: _Unit) -> str:
    values = sorted({run.conditions.niceness for run in unit.runs} - {0})
    return f"niceness {', '.join(map(str, values))}" if values else ""


def _cpu_throttled(unit: _Unit) -> str:
    return "cores throttled" if any(_is_throttled(run.conditions) for run in unit.runs) else ""


def _gpu_slowed(unit: _Unit) -> str:
    seen = sorted({reason for state in unit.gpus for reason in state.slowdowns} & SLOWDOWNS)
    return f"GPU throttled ({', '.join(seen)})" if seen else ""


def _gpu_shared(unit: _Unit) -> str:
    return "another process computed on the GPU" if any(state.foreign_processes for state in unit.gpus) else ""


def _driver_changed(unit: _Unit) -> str:
    changed = any(state.driver != unit.drivers.get(state.uuid, state.driver) for state in unit.gpus)
    return "the GPU's driver changed" if changed else ""


def _power_limit_changed(unit: _Unit) -> str:
    return "the GPU's power limit changed" if _differ(unit, lambda state: state.power_limit_w) else ""


def _state_differs(unit: _Unit) -> str:
    return "the GPU's performance state differed" if _differ(unit, lambda state: state.performance_state) else ""


_RULES: tuple[Callable[[_Unit], str], ...] = (
    _niceness,
    _cpu_throttled,
    _gpu_slowed,
    _gpu_shared,
    _driver_changed,
    _power_limit_changed,
    _state_differs,
)


def _is_throttled(conditions: Conditions) -> bool:
    return conditions.throttled is not None and conditions.throttled > MAX_THROTTLED


def _differ(unit: _Unit, value: Callable[[GpuState], float | None]) -> bool:
    """Whether processes of one unit saw a GPU in unlike states."""
    seen: dict[str, set[float]] = {}
    for state in unit.gpus:
        told = value(state)
        if told is not None:
            seen.setdefault(state.uuid, set()).add(told)
    return any(len(values) > 1 for values in seen.values())


# ---- units -----------------------------------------------------------------------------------------------------------


def _units(runs: Sequence[ProcessRun]) -> list[_Unit]:
    size = 2 if len(_arms(runs)) == _PAIR else 1
    drivers = _first_drivers(runs)
    grouped: dict[int, list[ProcessRun]] = {}
    for run in runs:
        if run.step.scored:
            grouped.setdefault(run.step.block // size, []).append(run)
    return [
        _Unit.of(tuple(range(size * index, size * (index + 1))), members, drivers)
        for index, members in sorted(grouped.items())
    ]


def _first_drivers(runs: Iterable[ProcessRun]) -> dict[str, str]:
    """Per GPU, the driver at the job's first process: what comes later with another one is void."""
    drivers: dict[str, str] = {}
    for run in runs:
        for state in run.conditions.gpus:
            drivers.setdefault(state.uuid, state.driver)
    return drivers


def _arms(runs: Sequence[ProcessRun]) -> list[int]:
    return sorted({run.step.arm for run in runs})


def _gives_cause(run: ProcessRun, drivers: Mapping[str, str]) -> bool:
    """Whether this process gave cause by itself; states that only differ within the unit are nobody's."""
    return bool(_why(_Unit.of((run.step.block,), [run], drivers)))


def _arm_name(arm: int, arms: int) -> str:
    return ("baseline", "candidate")[arm] if arms == _PAIR else f"arm {arm + 1}"
