"""The benchmark of planning: what it compares, and what a collection does without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import planning

from harness.planning.load import load_matrix
from harness.planning.planner import make_plan


def test_the_matrix_has_as_many_cases_as_it_says(tmp_path: Path) -> None:
    """All of them can run: nothing is cheap because it is refused."""
    planning.prepared(tmp_path)
    plan = make_plan(load_matrix(tmp_path / "many.toml"))
    assert len(plan.cases) == planning.CASES
    assert all(case.status is None for case in plan.cases)
    assert len(plan.jobs) == planning.CASES // 10


def test_planning_and_collecting_load_no_heavy_library() -> None:
    """Each of them would cost more than the plan: time, and memory in every worker of xdist."""
    code = "import sys, harness.matrix_plugin; print(*{'numpy', 'scipy', 'ray', 'lxml', 'xdist'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_differences_and_ratios_are_of_the_least() -> None:
    """What disturbs only adds."""
    costs = [planning.Cost(2.0, 90.0), planning.Cost(1.5, 95.0)]
    found = {"empty pytest": planning.Cost(0.5, 30.0), "10,000 cases": planning.least(costs)}
    figures = planning.figures(found)
    assert (figures["ratio_cpu"], figures["above_cpu_s"], figures["above_mib"]) == (3.0, 1.0, 60.0)
    assert planning.page(found).splitlines()[-1].split() == (
        ["above", "empty", "1.00", "s", "of", "CPU", "60.0", "MiB,", "3.0", "times", "the", "CPU"]
    )
