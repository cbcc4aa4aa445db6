"""The matrices that come with the package."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from planning_support import node

from harness.domain.words import Kind, Status
from harness.domain.workload import ProfileWorkload
from harness.planning.load import find_matrix, load_matrix
from harness.planning.plan import Plan
from harness.planning.planner import make_plan
from harness.planning.presence import build_missing, model_missing


@pytest.fixture(scope="module")
def local() -> Plan:
    return make_plan(load_matrix(find_matrix("local")), (), [node(cores=2, ram_gib=8)])


@pytest.fixture(scope="module")
def hybrid() -> Plan:
    return make_plan(load_matrix(find_matrix("qwen3-30b-a3b")), (), [node(gpus=1, vram_gib=4, ram_gib=15.6)])


def test_local_runs_on_a_laptop(local: Plan) -> None:
    """Every case can run on two cores without a GPU, and the jobs' budgets stay within four minutes."""
    assert {case.status for case in local.cases} == {None}
    assert sum(job.design.minutes or math.inf for job in local.jobs) <= 4
    assert len(local.jobs) == 6


def test_local_asks_every_kind_of_question(local: Plan) -> None:
    """It is what users copy: all kinds of cases that a beginner needs are in it, and the contrasts of the mission."""
    assert {case.case.kind for case in local.cases} == set(Kind) - {Kind.ATTRIBUTION}
    names = {getattr(case.case.check, "name", "") for case in local.cases}
    assert {"fork", "cpu-flash-attention", "run-time-repack", "fused-experts", "same-answers"} <= names


def test_local_compares_outputs_inside_the_jobs_of_its_contrasts(local: Plan) -> None:
    """No job has only outputs: they cost no start of their own."""
    assert all(job.workloads for job in local.jobs)
    assert sum(job.outputs is not None for job in local.jobs) == 4


def test_the_repack_contrast_says_what_it_brings_along(local: Plan) -> None:
    """Run-time repack switches mmap off: the plan notes it."""
    notes = {case.note for case in local.cases if getattr(case.case.check, "factor", "") == "rtr"}
    assert notes == {"as a consequence of rtr: mmap 1 -> 0"}


def test_hybrid_cases_fit_the_machine_of_the_report(hybrid: Plan) -> None:
    """16 GB of RAM and a 4 GB card: hybrid cases run, CPU-only ones do not fit."""
    assert {(case.case.node_class.name, case.status) for case in hybrid.cases} == {
        ("hybrid", None),
        ("cpu", Status.NOT_APPLICABLE),
    }


def test_the_pitfalls_of_the_report_are_asked_about(hybrid: Plan) -> None:
    """Run-time repack at both batches, on prompt processing only; flash attention on the CPU and in hybrid."""
    pitfalls = [case.id for case in hybrid.cases if case.case.kind is Kind.PITFALL]
    arm = "ik+amb=512+fa=1+offload=experts"
    head = "pitfall/qwen3-30b-a3b-iq4xs"
    repacks = (
        f"{arm}+rtr=0+ub=512..{arm}+rtr=1+ub=512/pp512@hybrid",
        f"{arm}+rtr=0+ub=2048..{arm}+rtr=1+ub=2048/pp512@hybrid",
        f"{arm}+rtr=0+ub=2048..{arm}+rtr=1+ub=2048/pp2048@hybrid",
    )
    assert pitfalls == [
        f"{head}/mainline+fa=0+offload=all..mainline+fa=1+offload=all/pp512@cpu",
        f"{head}/ik+fa=0+offload=all..ik+fa=1+offload=all/pp512@cpu",
        f"{head}/mainline+fa=0+offload=experts..mainline+fa=1+offload=experts/pp512@hybrid",
        *(f"pitfall/{model}/{pair}" for model in ("qwen3-30b-a3b-iq4xs", "qwen3-30b-a3b-q4km") for pair in repacks),
    ]


def test_on_a_laptop_nothing_of_the_hybrid_matrix_runs_and_each_case_says_why() -> None:
    """No GPU and little memory: all cases are listed, none can run, no job is planned."""
    plan = make_plan(load_matrix(find_matrix("qwen3-30b-a3b")), (), [node(ram_gib=8)])
    assert {case.status for case in plan.cases} == {Status.NOT_APPLICABLE}
    assert all("needs" in case.reason for case in plan.cases)
    assert plan.jobs == ()


@pytest.fixture(scope="module")
def patched() -> Plan:
    return make_plan(load_matrix(find_matrix("patched-build")), (), [node(cores=2, ram_gib=8)])


def test_patched_build_runs_on_a_laptop(patched: Plan) -> None:
    """Stand-ins for builds and model: nothing is missing, nothing unsupported."""
    assert {case.status for case in patched.cases} == {None}
    assert {case.case.kind for case in patched.cases} == set(Kind) - {Kind.PITFALL}


def test_patched_build_asks_what_the_report_asks(patched: Plan) -> None:
    """The patch at fixed settings over all workloads, the settings at a fixed build, and both as one case."""
    asked: dict[str, list[str]] = {}
    for case in patched.cases:
        asked.setdefault(case.case.contrast, []).append(case.case.workload_name)
    plain = ["pp128", "tg32", "pp128.d256", "tg32.d256"]
    assert asked["patch-alone"][:4] == plain
    assert {name.split(".")[0] for name in asked["patch-alone"][4:]} == {"chat", "long-context", "rag", "code-edit"}
    assert asked["settings-alone"] == ["pp128", "tg32"]
    assert asked["patch-or-settings"][:4] == plain
    blocks = patched.policy.blocks
    assert blocks % 4 == 0, "four arms are balanced in every four blocks"


def test_ones_own_patch_is_a_few_lines_on_top(tmp_path: Path) -> None:
    """The example in the file's head: it loads, and what is not on this machine is a note."""
    head = find_matrix("patched-build").read_text().split("# `moe-harness plan")[0]
    lines = [line.removeprefix("#").removeprefix("   ") for line in head.splitlines()]
    text = "\n".join(lines[lines.index('name = "my-patch"') :])
    mine = tmp_path / "my-patch.toml"
    mine.write_text(text)
    matrix = load_matrix(mine)
    assert matrix.models["model"].path
    plan = make_plan(matrix, ["patch-or-settings"])
    assert {case.status for case in plan.cases} <= {None, Status.UNSUPPORTED}
    (four, *_) = [case.case.arms for case in plan.cases if case.case.workload_name == "pp128"]
    assert [arm.flags.get("ncmoe") for arm in four] == [30, 22, 30, 22]
    assert build_missing(four[0].build).startswith("build baseline: no llama-bench at /srv/")
    assert model_missing(four[0].model).startswith("model model: there is no file /srv/")


def test_the_guides_matrix_plans(tmp_path: Path) -> None:
    """The file of docs/how-to/patch-or-settings.md, as it stands there: it replaces what it says it replaces."""
    guide = Path(__file__).parents[2] / "docs" / "how-to" / "patch-or-settings.md"
    mine = tmp_path / "my-patch.toml"
    mine.write_text(guide.read_text().split("```toml\n")[1].split("```")[0])
    plan = make_plan(load_matrix(mine), ["patch-or-settings"])
    loads = {case.case.workload_name: case.case.workload for case in plan.cases}
    assert loads.keys() == {"pp128", "tg32", "pp2048.d16384", "long-context.prefill"}
    profile = loads["long-context.prefill"]
    assert isinstance(profile, ProfileWorkload)
    assert profile.profile.prompt_tokens == 8192
