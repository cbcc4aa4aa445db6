"""The benchmarks of what a job and what watching cost: their arithmetic."""

from __future__ import annotations

import cost_per_job
import pytest
from telemetry import Watching


def test_what_is_there_once_drops_out_and_rays_own_cost_is_taken_off() -> None:
    """Hundred jobs more take 1.0 s more of the driver and 0.5 s more of Ray; empty tasks take 0.6 s and 0.4 s."""
    short = {"driver_s": {"run": 9.0, "reports": 1.0}, "others_s": 20.0, "rss_bytes": {"100": 150 << 20}}
    long = {
        "driver_s": {"run": 9.8, "reports": 1.2},
        "others_s": 20.5,
        "rss_bytes": {"100": 150 << 20, "200": (150 << 20) + 51200},
    }
    lines = cost_per_job.table(100, 200, short, long, {"driver_s": 1.2, "others_s": 0.8})
    assert "| driver: run | 8.00 |" in lines
    assert "| driver: reports | 2.00 |" in lines
    assert "| Ray's processes and workers | 5.00 |" in lines
    assert "| **over Ray's own cost** | **5.00** |" in lines
    assert lines[-1] == "Memory of the driver: 150 MiB after 100 cases, 150 MiB after 200, 0.5 KiB a case."


def test_the_share_of_a_core_is_of_the_engines_time() -> None:
    assert Watching(cpu_s=[0.01, 0.03], looks=8, engine_s=[10.0, 30.0]).share == pytest.approx(0.001)
