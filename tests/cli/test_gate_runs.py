"""A merge gate's run on the real wheel: what changed paths ask for and its minutes decide; the rest is the night's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "plugin"))

from click.testing import CliRunner
from mini_matrix import CASES, MINI

from harness.cli.main import cli
from harness.domain.cell import cell_of
from harness.domain.choice import WhyLeft
from harness.execution.node import probe_node
from harness.reporting.replay import read_journal
from harness.reporting.state import JournalState
from harness.running.gate_choice import choose_for_gate
from harness.running.options import known_spreads, plan_matrix
from harness.running.spread_file import Record, change_spreads, spreads_path

POLICY = """
name = "merge"
{head}
[[cells]]
cells = ["throughput/*..*", "equivalence/*"]
stage = "block"
[[cells]]
cells = ["memory/*"]
stage = "warn"
[[paths]]
paths = ["src/**"]
cells = ["*..*"]
[[paths]]
paths = ["limits/**"]
cells = ["memory/*fa=1*"]
"""
LOCAL = ("-m", "moe", "--moe-executor=local", "-p", "no:cacheprovider")


@pytest.fixture
def project(pytester: pytest.Pytester, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A repository with a matrix and a merge gate; nothing is calibrated."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("MOE_SPREADS", str(pytester.path / "spreads.json"))
    (pytester.mkdir("matrices") / "local.toml").write_text(MINI.format(model=tiny_model))
    write_policy(pytester)
    return pytester


def write_policy(project: pytest.Pytester, head: str = "") -> Path:
    file = project.path / "gate.toml"
    file.write_text(POLICY.format(head=head))
    return file


def merge(project: pytest.Pytester, *changed: str, more: tuple[str, ...] = ()) -> pytest.RunResult:
    (project.path / "changed").write_text("\n".join(changed) + "\n")
    return project.runpytest(*LOCAL, "--moe-gate=gate.toml", "--moe-changed=changed", *more)


def journal(project: pytest.Pytester) -> JournalState:
    return read_journal(project.path / "moe-reports")


def gate(project: pytest.Pytester, *more: str) -> tuple[int, str]:
    arguments = ["gate", "--policy", str(project.path / "gate.toml"), str(project.path / "moe-reports"), *more]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False, standalone_mode=False)
    return int(done.return_value or 0), done.output


@pytest.mark.parametrize("how", [(), ("-n", "1")])
def test_where_no_changed_path_asks_for_a_case_nothing_runs_and_that_is_said(
    project: pytest.Pytester, how: tuple[str, ...]
) -> None:
    """Exit code 0, a journal that says so, and a gate that believes it: for this change, and for no other."""
    result = merge(project, "docs/x.md", more=how)
    assert result.ret == pytest.ExitCode.OK
    state = journal(project)
    assert (len(state.planned), len(state.left), len(state.jobs), state.finished) == (0, CASES, 0, True)
    assert gate(project)[0] == 0
    assert gate(project)[1].startswith("not needed: no cell is asked for by 1 changed path")
    (project.path / "other").write_text("src/a.c\n")
    assert gate(project, "--changed", str(project.path / "other"))[0] == 3


def test_a_changed_path_runs_its_cases_alone_and_the_gate_does_not_miss_the_others(project: pytest.Pytester) -> None:
    result = merge(project, "limits/a.c", "docs/x.md")
    result.stdout.re_match_lines(
        [rf"matrix mini: gate merge: 1 of {CASES} cases for 1 of 2 changed paths; left to the night: 8 that no .*"]
    )
    result.assert_outcomes(passed=1)
    state = journal(project)
    assert [case.split("/")[0] for case in state.planned] == ["memory"]
    assert {each.why for each in state.left.values()} == {WhyLeft.PATHS}
    code, told = gate(project, "--changed", str(project.path / "changed"))
    assert (code, told.splitlines()[0]) == (
        0,
        "go: 1 cell of 1 journal, nothing found, none of them may block, 8 left to the night",
    )


def test_changed_paths_without_a_policy_are_refused(project: pytest.Pytester) -> None:
    (project.path / "changed").write_text("src/a.c\n")
    result = project.runpytest(*LOCAL, "--moe-changed=changed")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*E-changed-without-gate*--moe-gate*"])


def test_a_fault_of_the_policy_ends_the_run_before_it_starts(project: pytest.Pytester) -> None:
    write_policy(project, 'budget = "20"')
    result = merge(project, "src/a.c")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*E-gate-policy-invalid*budget*did you mean 'budget_minutes'*"])


def calibrate(project: pytest.Pytester, quad_sd: float, quarantine: str = "") -> None:
    """Let a calibration have found this scatter for both workloads, and half a second for a process."""
    arm = plan_matrix(str(project.path / "matrices" / "local.toml")).jobs[0].arms[0]
    for workload in ("pp32", "tg4"):
        fields = {"when": "2026-11-30T12:00:00Z", "quads": 12, "quad_sd": quad_sd, "process_s": 0.3, "start_s": 0.2}
        fields |= {"load_s": None, "repetition_s": 0.05, "quarantine": quarantine if workload == "tg4" else ""}
        record, cell = Record.model_validate(fields), cell_of(arm, workload)
        change_spreads(spreads_path(), lambda file, c=cell, r=record: file.with_record(probe_node(), c, r))


def choice(project: pytest.Pytester, head: str) -> tuple[set[str], dict[str, str]]:
    """What is chosen for a change of ``src``, and why each case that its paths ask for is left."""
    (project.path / "changed").write_text("src/a.c\n")
    plan = plan_matrix(str(project.path / "matrices" / "local.toml"))
    found = choose_for_gate(plan, write_policy(project, head), project.path / "changed", known_spreads())
    left = {each.case: each.reason for each in found.left if each.why is not WhyLeft.PATHS}
    return {case.id.split("/", 1)[0] + ":" + case.case.workload_name for case in found.plan.cases}, left


CHOSEN = {"throughput:pp32", "throughput:tg4", "equivalence:answers"}


def test_the_budget_takes_what_has_room_and_says_what_it_lacks(project: pytest.Pytester) -> None:
    """Processes of half a second: the job of ten takes 0.083 minutes."""
    calibrate(project, 0.01)
    assert choice(project, "budget_minutes = 1.0") == (CHOSEN, {})
    chosen, left = choice(project, "budget_minutes = 0.05")
    assert chosen == set()
    assert set(left.values()) == {"its job takes up to 0.083 min, 0.05 of 0.05 min are left for it"}


def test_contrasts_that_could_not_be_decided_are_left_to_the_night_and_outputs_are_not(
    project: pytest.Pytester,
) -> None:
    calibrate(project, 0.05, quarantine="a planted loss was not found")
    chosen, left = choice(project, "finds = 0.02")
    assert chosen == {"equivalence:answers"}
    assert sorted(reason.split(":")[0].split(" (")[0] for reason in left.values()) == [
        "inconclusive whatever is measured",
        "its budget finds losses of 50 % at best, the policy asks for 2 %",
    ]


def test_jobs_of_which_nobody_knows_what_they_take_are_limited_to_the_budget(project: pytest.Pytester) -> None:
    """Not calibrated, and the matrix has no minutes of its own: the job gets what there is, and ends by it."""
    plan = plan_matrix(str(project.path / "matrices" / "local.toml"))
    found = choose_for_gate(plan, write_policy(project, "budget_minutes = 0.5"), None, known_spreads())
    assert len(found.plan.cases) == CASES
    assert [found.limited(job).design.minutes for job in found.plan.jobs] == [0.5]
    assert found.choice.planned_minutes == 0.5


def test_a_gates_broken_run_is_resumed_with_what_it_chose(project: pytest.Pytester) -> None:
    """Its job got the gate's minutes, and what was found out since would have the gate choose nothing any more."""
    write_policy(project, "budget_minutes = 5.0")
    merge(project, "limits/a.c").assert_outcomes(passed=1)
    file = project.path / "moe-reports" / "journal.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    broken = next(number for number, line in enumerate(lines) if '"event": "process"' in line)
    file.write_text("".join(lines[:broken]))
    calibrate(project, 0.5)
    write_policy(project, "budget_minutes = 0.001")
    result = merge(project, "src/a.c", more=("--moe-resume=moe-reports",))
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["matrix mini: resumed from *: 0 of 1 cases are whole and kept, 1 job is run again*"])
    state = journal(project)
    (job,) = state.jobs.values()
    assert job.job is not None
    assert (job.job.design.minutes, len(state.left), state.finished) == (5.0, CASES - 1, True)
