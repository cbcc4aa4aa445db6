"""A dozen faults on a real fleet: nothing is lost, nothing is double, nothing stays, every report is valid."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

_CAMPAIGN = Path(__file__).parents[2] / "benchmarks" / "fault_campaign.py"
_FAULTS = 12


@pytest.mark.timeout(900)  # a host that does other things beside
def test_a_dozen_faults_lose_nothing(tmp_path: Path) -> None:
    """Twelve of the kinds that cost no minute; `docs/explanation/survival.md` has a campaign over all of them."""
    counts = tmp_path / "counts.json"
    line = [sys.executable, str(_CAMPAIGN), f"--faults={_FAULTS}", "--seed=2", "--soon", f"--json={counts}"]
    done = subprocess.run([*line, f"--keep={tmp_path}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    found = json.loads(counts.read_text())
    assert sum(found["injected"].values()) == _FAULTS
    assert set(found["losses"].values()) == {0}
    slugs = {slug for told in found["told"].values() for slug in told}
    assert {"E-worker-lost", "E-killed"} & slugs, "no fault was told: did any hit?"
