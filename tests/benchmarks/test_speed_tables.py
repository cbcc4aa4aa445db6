"""The benchmarks of the harness beside its engines and its peers: their arithmetic, and what they start."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import overhead
import peers
import peers_ways
import pytest


def at(second: float, event: str, **fields: Any) -> dict[str, Any]:
    return {"event": event, "t": f"2026-01-01T00:00:{second:09.6f}+00:00", **fields}


def test_overhead_is_what_is_there_beside_the_engines() -> None:
    """Two jobs of one process, 4 s of engines; 0.5 s in jobs beside them, 0.1 s between, 3 s of start and reports."""
    events = [at(0, "run_started")]
    for began, took in ((1.0, 1.0), (2.6, 3.0)):
        events += [
            at(began, "job_started"),
            at(began + took, "process", run={"wall_s": took}),
            at(began + took + 0.25, "job_finished"),
            at(began + took + 0.3, "verdict"),
        ]
    found = overhead.measure([*events, at(6, "run_finished")], whole_s=7.85)
    assert found["engines alone, s"] == pytest.approx(4.0)
    assert found["ms a process in jobs"] == pytest.approx(250)
    assert found["ms a case once started"] == pytest.approx(425)
    assert found["once started, over engines"] == pytest.approx(4.85 / 4)
    assert found["start and reports, s"] == pytest.approx(3.0)
    assert found["whole command, over engines"] == pytest.approx(7.85 / 4)


def test_ratios_are_to_the_loop_of_the_same_round() -> None:
    """A machine that is twice as slow in one round changes no ratio."""
    loop, ours = peers.Taken([1.0, 2.0, 1.0], [1.0, 2.0, 1.0]), peers.Taken([2.0, 4.0, 2.2], [0.5, 1.0, 0.5])
    rows = peers.table({"shell loop": loop, "the harness": ours}, [0.8, 1.6, 0.8], 72, 18)
    assert "| the harness | 2.20 | 2.00 (2.00 to 2.20) | 0.50 | 0.50 (0.50 to 0.50) |" in rows
    assert rows[-1] == "Of the harness's 18 engine processes alone: 0.80 s of wall time; the others start 72."


def test_a_case_is_started_with_its_arguments_variables_and_input(tmp_path: Path) -> None:
    """Whatever characters they hold: the loop runs it as the harness does."""
    program = "import os, sys; print(sys.argv[1:], os.environ['X'], sys.stdin.read())"
    case = peers_ways.CaseCommand(("python3", "-c", program, "a b", "$HOME", "'"), {"X": "y z"}, "told")
    peers_ways.write_cases(tmp_path, [case])
    subprocess.run(peers_ways.shell_loop(tmp_path, tmp_path).argv, cwd=tmp_path, check=True)
    assert peers_ways.outputs_of(tmp_path) == ["""['a b', '$HOME', "'"] y z told\n"""]
