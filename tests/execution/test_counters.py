"""Counters of the kernel, read from a machine that is made of files; shares by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.execution import machine
from harness.execution.telemetry.counters import Counters, Shares, huge_pages, mean_mhz, queue_waits_s

STAT = """\
cpu  40 0 0 0 0 0 0 0 0 0
cpu0 900 0 0 100 0 0 0 0 0 0
cpu1 100 20 30 700 50 5 15 80 90 10
cpu11 7 7 7 7 7 7 7 7 7 7
"""
QUIET = Counters(at_s=0.0, busy_s=0.0, steal_s=0.0, total_s=0.0, throttled_s=0.0, swapped_bytes=0)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    return tmp_path


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_only_the_cores_of_the_engine_count(root: Path) -> None:
    """Ticks of 10 ms: user, nice, system and both interrupts are work; idle and waiting for a disk are not."""
    put(root, "proc/stat", STAT)
    counters = Counters.now([1])
    assert (counters.busy_s, counters.steal_s, counters.total_s) == (1.7, 0.8, 10.0)


def test_a_kernel_that_tells_nothing(root: Path) -> None:
    counters = Counters.now([0, 1])
    assert (counters.busy_s, counters.throttled_s, counters.swapped_bytes) == (None, None, None)
    assert Shares.between(counters, counters, 0.0) == Shares(None, None, None, None)
    assert mean_mhz([0]) is None
    assert huge_pages() == "unknown"
    assert queue_waits_s([1]) == {}


def test_what_the_engine_did_not_use_is_foreign() -> None:
    after = replace(QUIET, at_s=5.0, busy_s=9.0, steal_s=0.5, total_s=10.0, throttled_s=1.0, swapped_bytes=4096)
    shares = Shares.between(QUIET, after, own_s=6.0)
    assert shares == Shares(foreign_load=0.3, steal=0.05, throttled=0.2, swapped_bytes=4096)


@given(st.floats(0.01, 1e6), st.floats(0, 1), st.floats(0, 1))
def test_a_share_is_a_share(total: float, busy: float, own: float) -> None:
    """Whatever two clocks of the kernel disagree on, nobody used less than nothing."""
    after = replace(QUIET, at_s=total, busy_s=busy * total, total_s=total)
    foreign = Shares.between(QUIET, after, own_s=own * total).foreign_load
    assert foreign is not None
    assert 0 <= foreign <= 1


def test_throttling_is_the_cores_or_the_packages(root: Path) -> None:
    for cpu, core_ms, package_ms in ((0, 3000, 1000), (1, 0, 1000)):
        folder = f"sys/devices/system/cpu/cpu{cpu}/thermal_throttle"
        put(root, f"{folder}/core_throttle_total_time_ms", f"{core_ms}\n")
        put(root, f"{folder}/package_throttle_total_time_ms", f"{package_ms}\n")
    assert Counters.now([0, 1]).throttled_s == 2.0
    assert Counters.now([1]).throttled_s == 1.0


def test_clocks_come_from_the_driver_or_from_cpuinfo(root: Path) -> None:
    put(root, "proc/cpuinfo", "processor\t: 0\ncpu MHz\t\t: 2600.5\n\nprocessor\t: 1\ncpu MHz\t\t: 3000\n")
    assert mean_mhz([0, 1]) == 2800.25
    assert mean_mhz([1]) == 3000.0
    put(root, "sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "1200000\n")
    assert mean_mhz([1]) == 1200.0


def test_swapping_counts_both_ways(root: Path) -> None:
    put(root, "proc/vmstat", "pgpgin 9\npswpin 3\npswpout 4\n")
    assert Counters.now([]).swapped_bytes == 7 * 4096


def test_the_setting_of_huge_pages_is_the_word_in_brackets(root: Path) -> None:
    put(root, "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
    assert huge_pages() == "madvise"
