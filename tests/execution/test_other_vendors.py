"""GPUs of other vendors, on machines of files: names and units as the kernel's documentation of ``amdgpu`` has them."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import pytest

from harness.execution import machine
from harness.execution.telemetry.amd import AmdSource
from harness.execution.telemetry.gpus import GpuReading, Look, NoGpus, summarize
from harness.execution.telemetry.vendors import open_gpus

FILES = {
    "vendor": "0x1002\n",
    "unique_id": "8c3d9f0a12b4e567\n",
    "uevent": "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n",
    "gpu_busy_percent": "97\n",
    "mem_info_vram_total": "25753026560\n",
    "mem_info_vram_used": "5368709120\n",
    "pp_dpm_sclk": "0: 500Mhz \n1: 1733Mhz *\n2: 2482Mhz \n",
    "pp_dpm_mclk": "0: 96Mhz \n1: 456Mhz \n2: 1249Mhz *\n",
    "hwmon/hwmon4/power1_average": "287000000\n",
    "hwmon/hwmon4/power1_cap": "339000000\n",
    "hwmon/hwmon4/temp1_input": "61000\n",
}
ENGINE, OTHER = 4711, 815


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    return tmp_path


def put(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def gpu(root: Path, minor: int, files: dict[str, str], *, given: bool = True) -> None:
    put(root, {f"sys/class/drm/renderD{minor}/device/{name}": text for name, text in files.items()})
    if given:
        put(root, {f"dev/dri/renderD{minor}": ""})


def without(*names: str) -> dict[str, str]:
    return {path: text for path, text in FILES.items() if path not in names}


def test_one_reading_has_every_figure_in_its_unit(root: Path) -> None:
    gpu(root, 128, FILES)
    put(root, {"sys/module/amdgpu/version": "6.7.0\n"})
    (reading,) = open_gpus(()).read()
    assert reading == GpuReading(
        uuid="AMD-8c3d9f0a12b4e567",
        driver="amdgpu 6.7.0",
        busy=True,
        sm_mhz=1733.0,
        memory_mhz=1249.0,
        power_limit_w=339.0,
        power_w=287.0,
        temperature_c=61.0,
        memory_used_bytes=5 << 30,
    )


def test_other_kernels_have_other_names(root: Path) -> None:
    """Newer GPUs tell the draw of now, not a mean; older ones have no number; the kernel's own driver no version."""
    gpu(root, 128, without("hwmon/hwmon4/power1_average", "unique_id") | {"hwmon/hwmon4/power1_input": "31000000\n"})
    (reading,) = open_gpus(()).read()
    assert (reading.power_w, reading.uuid) == (31.0, "AMD-0000:03:00.0")
    assert reading.driver == f"amdgpu of Linux {platform.release()}"


def test_what_the_kernel_does_not_tell_is_none(root: Path) -> None:
    gpu(root, 128, {"vendor": "0x1002\n"})
    assert open_gpus(()).read() == (GpuReading("AMD-renderD128", f"amdgpu of Linux {platform.release()}"),)


def test_whose_memory_is_on_which_gpu(root: Path) -> None:
    """ROCm's processes, by the number that its driver gives a GPU: the engine's own and another's are told apart."""
    for minor in (128, 129):
        gpu(root, minor, FILES | {"unique_id": f"{minor}\n"})
        node = f"sys/class/kfd/kfd/topology/nodes/{minor - 127}"
        put(
            root, {f"{node}/properties": f"simd_count 192\ndrm_render_minor {minor}\n", f"{node}/gpu_id": f"{minor}0\n"}
        )
    put(root, {"sys/class/kfd/kfd/topology/nodes/0/properties": "cpu_cores_count 16\ndrm_render_minor 0\n"})
    source = open_gpus(())
    before = source.read()
    held = {f"{ENGINE}/vram_1280": "4096\n", f"{ENGINE}/vram_1290": "0\n", f"{OTHER}/vram_1290": "8192\n"}
    put(root, {f"sys/class/kfd/kfd/proc/{path}": text for path, text in held.items()})
    look = Look(tuple(source.read()), frozenset({ENGINE}), frozenset({ENGINE, OTHER}))
    first, second = summarize(before, [look])
    assert (first.uuid, first.used, first.foreign_processes) == ("AMD-128", True, 0)
    assert (second.uuid, second.used, second.foreign_processes) == ("AMD-129", False, 1)


def test_a_gpu_that_falls_off_the_bus_leaves_no_figures(root: Path) -> None:
    gpu(root, 128, FILES)
    source = open_gpus(())
    shutil.rmtree(root / "sys/class/drm")
    (reading,) = source.read()
    assert (reading.uuid, reading.busy, reading.power_w) == ("AMD-8c3d9f0a12b4e567", False, None)


@pytest.mark.parametrize(
    ("vendor", "reason"),
    [
        ("0x8086", "a GPU of Intel is not watched"),
        ("0x10de", "found by nvidia-smi, which is not installed"),
        ("0x1af4", ""),  # the screen of a virtual machine
    ],
)
def test_what_is_not_watched_says_why(root: Path, vendor: str, reason: str) -> None:
    gpu(root, 128, {"vendor": f"{vendor}\n"})
    source = open_gpus(())
    assert isinstance(source, NoGpus)
    assert reason in source.unavailable
    assert bool(source.unavailable) == bool(reason)


def test_gpus_of_nvidia_that_are_hidden_on_purpose_are_no_trouble(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/nvidia-smi")
    gpu(root, 128, {"vendor": "0x10de\n"})
    assert open_gpus(()) == NoGpus("")


def test_gpus_of_apple_say_why(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    assert "powermetrics" in open_gpus(()).unavailable


def test_a_machine_without_gpus_says_nothing(root: Path) -> None:
    """Nor does a container on a host with GPUs that it was not given."""
    assert open_gpus(()) == NoGpus("")
    gpu(root, 128, FILES, given=False)
    assert open_gpus(()) == NoGpus("")


def test_amd_comes_before_the_graphics_of_a_processor(root: Path) -> None:
    gpu(root, 128, {"vendor": "0x8086\n"})
    gpu(root, 129, FILES)
    source = open_gpus(())
    assert isinstance(source, AmdSource)
    assert [reading.uuid for reading in source.read()] == ["AMD-8c3d9f0a12b4e567"]
