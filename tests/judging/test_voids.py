"""Voids: by the machine's state alone, the whole quad, the same blocks whichever arm was hit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging_support import run

from harness.domain.job import BURN_IN, block_order
from harness.domain.measurement import GpuState, ProcessRun
from harness.judging.disturbance import disturbance_text
from harness.judging.voids import voided_blocks, voids_text

GPU = GpuState("GPU-1", "580.1", used=True, samples=5, performance_state=0, power_limit_w=700.0)

FAULTS: dict[str, dict[str, object]] = {
    "niceness 15": {"niceness": 15},
    "cores throttled": {"throttled": 0.2},
    "GPU throttled (hw_thermal_slowdown)": {"gpus": (replace(GPU, slowdowns=("hw_thermal_slowdown", "sw_power_cap")),)},
    "another process computed on the GPU": {"gpus": (replace(GPU, foreign_processes=1),)},
    "the GPU's driver changed": {"gpus": (replace(GPU, driver="590.2"),)},
    "the GPU's power limit changed": {"gpus": (replace(GPU, power_limit_w=400.0),)},
    "the GPU's performance state differed": {"gpus": (replace(GPU, performance_state=8),)},
}
HARMLESS: dict[str, dict[str, object]] = {
    "nothing": {},
    "load of other work": {"foreign_load": 0.9, "steal": 0.5, "swapped_bytes": 1 << 30},
    "little throttling": {"throttled": 0.005},
    "the power cap": {"gpus": (replace(GPU, slowdowns=("gpu_idle", "sw_power_cap")),)},
    "other clocks": {"gpus": (replace(GPU, sm_mhz=900.0, temperature_c=88.0),)},
    "nothing known of the GPU": {"gpus": (GpuState("GPU-1", "580.1", used=True, samples=0),)},
}


def job_runs(faults: dict[tuple[int, int], dict[str, object]], arms: int = 2, blocks: int = 4) -> list[ProcessRun]:
    """A whole job on a GPU; faults by arm and block."""
    steps = [(arm, BURN_IN) for arm in range(arms)]
    steps += [(arm, block) for block in range(blocks) for arm in block_order(arms, block)]
    return [spoiled(run(arm, block, 100), faults.get((arm, block), {})) for arm, block in steps]


def spoiled(process: ProcessRun, fault: dict[str, object]) -> ProcessRun:
    return replace(process, conditions=replace(process.conditions, **{"gpus": (GPU,), **fault}))  # type: ignore[arg-type]


@pytest.mark.parametrize("why", FAULTS)
def test_one_process_voids_its_quad_on_both_arms(why: str) -> None:
    runs = job_runs({(1, 2): FAULTS[why]})
    assert voided_blocks(runs) == {2: why, 3: why}


@pytest.mark.parametrize("what", HARMLESS)
def test_what_is_no_reason_to_void(what: str) -> None:
    runs = job_runs({(0, 1): HARMLESS[what]})
    assert voided_blocks(runs) == {}
    assert voids_text(runs) == ""


def test_a_burn_in_voids_nothing() -> None:
    assert voided_blocks(job_runs({(0, BURN_IN): {"niceness": 15}})) == {}


def test_a_single_arm_is_voided_block_by_block() -> None:
    assert list(voided_blocks(job_runs({(0, 2): {"niceness": 5}}, arms=1))) == [2]


def test_a_gpu_that_no_engine_used_voids_nothing() -> None:
    idle: dict[str, object] = {"gpus": (replace(GPU, used=False, foreign_processes=3, slowdowns=("hw_slowdown",)),)}
    assert voided_blocks(job_runs({(arm, 0): idle for arm in (0, 1)}, blocks=1)) == {}


def test_a_driver_that_changed_voids_what_comes_later() -> None:
    new: dict[str, object] = {"gpus": (replace(GPU, driver="590.2"),)}
    runs = job_runs({(arm, block): new for arm in (0, 1) for block in (2, 3)})
    assert set(voided_blocks(runs)) == {2, 3}


def test_void_data_are_counted_by_arm_in_words() -> None:
    runs = job_runs({(1, 0): FAULTS["cores throttled"], (1, 1): FAULTS["cores throttled"]})
    assert voids_text(runs) == (
        "1 quad void on all arms: cores throttled (processes that gave cause: baseline 0, candidate 2)"
    )


@given(
    st.dictionaries(
        st.tuples(st.sampled_from((0, 1)), st.integers(0, 3)),
        st.sampled_from([*FAULTS.values(), *HARMLESS.values()]),
    )
)
def test_swapping_the_arms_voids_the_same_blocks(faults: dict[tuple[int, int], dict[str, object]]) -> None:
    runs = job_runs(faults)
    swapped = [replace(each, step=replace(each.step, arm=1 - each.step.arm)) for each in runs]
    assert voided_blocks(swapped) == voided_blocks(runs)


@given(st.lists(st.floats(1, 1000), min_size=8, max_size=8))
def test_speeds_decide_nothing(speeds: list[float]) -> None:
    runs = job_runs({(0, 1): FAULTS["niceness 15"]})
    other = [
        replace(each, samples=run(each.step.arm, each.step.block, tps).samples)
        for each, tps in zip(runs[2:], speeds, strict=True)
    ]
    assert voided_blocks([*runs[:2], *other]) == voided_blocks(runs)


def test_disturbance_is_told_with_its_share() -> None:
    busy = [job_runs({(0, 0): {"foreign_load": 0.55}})[2]] + [
        spoiled(run(0, block, 100), {"foreign_load": 0.31, "steal": 0.1}) for block in (1, 2)
    ]
    assert disturbance_text(busy) == (
        "the pinned cores were 31 % busy with other work (at most 55 %), "
        "the hypervisor gave 10 % of the pinned cores to others"
    )


def test_a_cold_start_among_warm_ones_is_told() -> None:
    states = [spoiled(run(0, block, 100), {"model_cached": share}) for block, share in enumerate((1.0, 0.4, 1.0))]
    assert disturbance_text(states) == "1 of 3 processes found the model partly on the disk"
    assert disturbance_text([states[1]]) == ""  # all cold is the same for all


def test_quiet_and_unknown_machines_have_nothing_to_tell() -> None:
    assert disturbance_text([]) == ""
    assert disturbance_text([run(0, 0, 100)]) == ""
    assert disturbance_text([spoiled(run(0, 0, 100), {"foreign_load": 0.004, "steal": 0.0})]) == ""
