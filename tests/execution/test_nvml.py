"""GPU telemetry on a fake NVML (marked so): every word and unit, what is not told, whose processes are foreign."""

from __future__ import annotations

import importlib
from dataclasses import replace

import pytest
from fake_nvml import FakeNvml

from harness.domain.measurement import GpuState
from harness.domain.node import Gpu
from harness.execution.telemetry.gpus import GpuReading, Look, summarize
from harness.execution.telemetry.nvml import open_nvidia, open_nvml

UUID = "GPU-1"
GPU = Gpu("NVIDIA H200", 143771 << 20, "580.159.04", UUID)
ENGINE, OTHER, HOST_NUMBER = 41, 77, 3_000_000
READING = GpuReading(UUID, "580.159.04", memory_used_bytes=1 << 30)


HERE = frozenset({ENGINE, OTHER})
"""Processes of this namespace; the driver of a container speaks of others."""


def test_one_reading_has_every_figure_in_its_unit() -> None:
    nvml = FakeNvml(UUID)
    nvml.reasons, nvml.pids = 0x1 | 0x4 | 0x40, (ENGINE,)
    source = open_nvml(nvml, [GPU])
    (reading,) = source.read()
    assert reading == GpuReading(
        uuid=UUID,
        driver="580.159.04",
        busy=True,
        sm_mhz=1980,
        memory_mhz=3201,
        performance_state=0,
        power_limit_w=700.0,
        power_w=412.5,
        temperature_c=44,
        slowdowns=("sw_power_cap", "hw_thermal_slowdown"),
        memory_used_bytes=5 << 30,
        pids=(ENGINE,),
    )
    source.close()
    assert nvml.open == 0


def test_what_the_driver_does_not_tell_is_none() -> None:
    nvml = FakeNvml(UUID)
    for answer in ("reasons", "busy", "clocks", "state", "limit_mw", "draw_mw", "celsius", "used", "pids", "driver"):
        setattr(nvml, answer, None)
    (reading,) = open_nvml(nvml, [GPU]).read()
    assert reading == GpuReading(UUID, "unknown")
    assert summarize([reading], []) == (GpuState(UUID, "unknown", used=False, samples=0),)


def test_an_unknown_performance_state_is_none() -> None:
    nvml = FakeNvml(UUID)
    nvml.state = 32
    assert open_nvml(nvml, [GPU]).read()[0].performance_state is None


def test_older_bindings_know_the_older_name() -> None:
    nvml = FakeNvml(UUID)
    old = type("OldNvml", (FakeNvml,), {"nvmlDeviceGetCurrentClocksThrottleReasons": lambda *_: 0x8})(UUID)
    old.reasons = None
    assert open_nvml(old, [GPU]).read()[0].slowdowns == ("hw_slowdown",)
    assert open_nvml(nvml, [GPU]).read()[0].slowdowns == ()


def test_missing_bindings_are_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def refuse(name: str, package: str | None = None) -> object:
        if name == "pynvml":
            raise ImportError(name)
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", refuse)
    assert "moe-harness[gpu]" in open_nvidia([GPU]).unavailable


def test_a_driver_that_does_not_start_is_said() -> None:
    nvml = FakeNvml(UUID)
    nvml.starts = False
    assert open_nvml(nvml, [GPU]).unavailable == "NVML does not start: Driver Not Loaded"


def test_a_gpu_that_nvml_does_not_know_is_said_and_nothing_stays_open() -> None:
    nvml = FakeNvml("GPU-2")
    assert "does not know" in open_nvml(nvml, [GPU]).unavailable
    assert nvml.open == 0


def looks(*pids: tuple[int, ...], **changes: object) -> list[Look]:
    return [
        Look((replace(READING, pids=each, **changes),), frozenset({ENGINE}), HERE)  # type: ignore[arg-type]
        for each in pids
    ]


@pytest.mark.parametrize(
    ("before", "during", "used", "foreign"),
    [
        ((), [(), (ENGINE,)], True, 0),
        ((), [(ENGINE,), (ENGINE, OTHER), (ENGINE,)], True, 1),
        ((OTHER,), [(OTHER,), (OTHER, ENGINE)], True, 1),
        ((OTHER,), [(OTHER,)], False, 1),
        ((), [(OTHER,)], False, 1),
        ((), [(), (HOST_NUMBER,)], True, 0),
        ((), [(HOST_NUMBER, HOST_NUMBER + 1)], True, 1),
        ((HOST_NUMBER,), [(HOST_NUMBER,)], False, 1),
        ((HOST_NUMBER,), [(HOST_NUMBER, HOST_NUMBER + 1)], True, 1),
    ],
    ids=[
        "own",
        "a visitor",
        "beside one",
        "not ours",
        "a visitor alone",
        "in a container",
        "two there",
        "idle",
        "both",
    ],
)
def test_whose_processes_they_are(
    before: tuple[int, ...], during: list[tuple[int, ...]], used: bool, foreign: int
) -> None:
    (state,) = summarize([replace(READING, pids=before)], looks(*during))
    assert (state.used, state.foreign_processes) == (used, foreign)


def test_where_no_processes_are_told_memory_shows_the_use() -> None:
    grown = looks((), memory_used_bytes=3 << 30)
    assert summarize([READING], grown)[0].used
    assert not summarize([READING], looks(()))[0].used


def test_figures_are_of_the_busy_time_and_the_worst_seen() -> None:
    idle = replace(READING, sm_mhz=345.0, performance_state=8, temperature_c=30, power_w=70.0)
    hot = replace(
        READING,
        busy=True,
        sm_mhz=1980.0,
        performance_state=0,
        temperature_c=81,
        power_w=690.0,
        slowdowns=("hw_slowdown",),
    )
    warm = replace(hot, sm_mhz=1900.0, temperature_c=70, slowdowns=("sw_power_cap",))
    seen = [Look((each,), frozenset({ENGINE}), HERE) for each in (idle, hot, warm)]
    (state,) = summarize([READING], seen)
    assert (state.samples, state.sm_mhz, state.performance_state) == (3, 1940.0, 0)
    assert (state.temperature_c, state.power_w) == (81, 690.0)
    assert state.slowdowns == ("hw_slowdown", "sw_power_cap")


def test_gpus_are_kept_apart() -> None:
    other = replace(READING, uuid="GPU-2")
    seen = [Look((replace(READING, pids=(ENGINE,)), replace(other, pids=(OTHER,))), frozenset({ENGINE}), HERE)]
    first, second = summarize([READING, other], seen)
    assert (first.used, first.foreign_processes) == (True, 0)
    assert (second.used, second.foreign_processes) == (False, 1)
