"""Which process starts a selection costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from planning_support import matrix, node

from harness.domain.job import Job
from harness.domain.words import Status
from harness.planning.plan import Plan
from harness.planning.planner import make_plan, narrowed
from harness.planning.schema import Matrix

FA = {"name": "fa", "factor": "fa", "baseline": 0, "candidate": 1}
OUTPUTS = {"kind": "outputs", "name": "same", "prompts": ["a"]}
MEMORY = {"kind": "memory", "max_rss_mib": 100.0}
IK_ONLY = {"builds": {"ik": {"fork": "ik_llama.cpp", "wheel": "w"}}}


def shape(job: Job) -> tuple[str, str, str]:
    """Arms, workloads and outputs of a job as words."""
    return (
        "..".join(arm.label for arm in job.arms),
        " ".join(workload.name for workload in job.workloads),
        job.outputs.name if job.outputs else "",
    )


def shapes(made: Matrix, patterns: Sequence[str] = ()) -> list[tuple[str, str, str]]:
    return [shape(job) for job in make_plan(made, patterns).jobs]


def test_each_case_is_answered_by_exactly_one_job() -> None:
    """Nothing is measured twice and nothing is forgotten."""
    made = matrix(flags={"fa": [0, 1]}, contrasts=[FA], checks=[OUTPUTS | {"contrasts": ["fa"]}, MEMORY])
    plan = make_plan(made)
    answered = [case for job in plan.jobs for case in job.cases]
    assert sorted(answered) == sorted(case.id for case in plan.cases)


def test_a_pair_is_one_job_with_all_its_workloads() -> None:
    """Both workloads, the output check, single arms and memory share the pair's process starts."""
    made = matrix(**IK_ONLY, flags={"fa": [0, 1]}, contrasts=[FA], checks=[OUTPUTS | {"contrasts": ["fa"]}, MEMORY])
    assert shapes(made) == [("ik+fa=0..ik+fa=1", "pp64 tg8", "same")]


def test_a_pitfall_and_a_contrast_of_one_pair_share_a_job() -> None:
    """Two questions about the same arms are one measurement."""
    trap = FA | {"name": "trap", "kind": "pitfall", "source": "s", "instead": "i"}
    assert len(make_plan(matrix(**IK_ONLY, flags={"fa": [0, 1]}, contrasts=[FA, trap])).jobs) == 1


def test_arms_that_nothing_compares_have_a_job_each() -> None:
    """Single arms cost their own starts only where no pair has them."""
    made = matrix(flags={"fa": [0, 1]}, contrasts=[FA | {"where": {"build": "ik"}}])
    assert shapes(made) == [
        ("ik+fa=0..ik+fa=1", "pp64 tg8", ""),
        ("mainline+fa=0", "pp64 tg8", ""),
        ("mainline+fa=1", "pp64 tg8", ""),
    ]


@pytest.mark.parametrize(("selected", "alone"), [([], True), (["..", "!memory"], False), (["memory"], False)])
def test_a_job_knows_whether_speeds_of_single_arms_ride_in_it(selected: list[str], alone: bool) -> None:
    """They need starts enough of their own; a peak of memory does not."""
    made = matrix(**IK_ONLY, flags={"fa": [0, 1]}, contrasts=[FA], checks=[MEMORY])
    assert {job.timed_alone for job in make_plan(made, selected).jobs} == {alone}


def test_outputs_alone_are_a_job_without_workloads() -> None:
    """Comparing outputs only costs one process start an arm; the arms' speeds are measured apart."""
    check = OUTPUTS | {"factor": "fa", "baseline": 0, "candidate": 1}
    made = matrix(**IK_ONLY, flags={"fa": [0, 1]}, checks=[check])
    assert shapes(made) == [
        ("ik+fa=0..ik+fa=1", "", "same"),
        ("ik+fa=0", "pp64 tg8", ""),
        ("ik+fa=1", "pp64 tg8", ""),
    ]
    job = make_plan(made).jobs[0]
    assert [(step.arm, step.outputs) for step in job.schedule()] == [(0, True), (1, True)]


def test_an_output_check_with_its_own_arms_rides_with_a_contrast_of_them() -> None:
    """It is the pair that counts, not how the check names it."""
    check = OUTPUTS | {"factor": "fa", "baseline": 0, "candidate": 1}
    made = matrix(**IK_ONLY, flags={"fa": [0, 1]}, contrasts=[FA], checks=[check])
    assert shapes(made) == [("ik+fa=0..ik+fa=1", "pp64 tg8", "same")]


def test_a_deselected_output_check_runs_inside_the_job_all_the_same() -> None:
    """Speed is not judged without the required check; its own case is not answered, though."""
    made = matrix(**IK_ONLY, flags={"fa": [0, 1]}, contrasts=[FA], checks=[OUTPUTS | {"contrasts": ["fa"]}])
    plan = make_plan(made, ["*..*/pp64@any", "!equivalence"])
    (job,) = plan.jobs
    assert shape(job) == ("ik+fa=0..ik+fa=1", "pp64", "same")
    assert job.cases == ("throughput/tiny/ik+fa=0..ik+fa=1/pp64@any",)


def test_a_selected_output_check_alone_times_nothing() -> None:
    """Deselected speed costs no work."""
    made = matrix(**IK_ONLY, flags={"fa": [0, 1]}, contrasts=[FA], checks=[OUTPUTS | {"contrasts": ["fa"]}])
    assert shapes(made, ["equivalence"]) == [("ik+fa=0..ik+fa=1", "", "same")]


def test_deselected_workloads_cost_nothing() -> None:
    """Only what was asked for is measured."""
    made = matrix(**IK_ONLY, flags={"fa": [0, 1]}, contrasts=[FA])
    assert shapes(made, ["*..*tg8*"]) == [("ik+fa=0..ik+fa=1", "tg8", "")]
    assert shapes(made, ["throughput/tiny/ik+fa=1/tg8"]) == [("ik+fa=1", "tg8", "")]


def test_single_arms_prefer_a_job_that_measures_their_workload() -> None:
    """tg8 of fa = 0 rides with the contrast that measures tg8, not with the first one that has the arm."""
    ub = {"name": "ub", "factor": "ub", "baseline": 64, "candidate": 128, "where": {"flags": {"fa": 0}}}
    made = matrix(
        **IK_ONLY,
        flags={"fa": [0, 1], "ub": [64, 128]},
        contrasts=[FA | {"workloads": ["pp64"], "where": {"flags": {"ub": 64}}}, ub | {"workloads": ["tg8"]}],
    )
    plan = make_plan(made, ["*..*", "ik+fa=0+ub=64/tg8"])
    assert [shape(job)[1] for job in plan.jobs] == ["pp64", "tg8"]
    assert "throughput/tiny/ik+fa=0+ub=64/tg8@any" in plan.jobs[1].cases


def test_memory_measures_everything_the_arm_is_asked_for() -> None:
    """A memory verdict does not depend on what else was selected; alone it needs one process start."""
    made = matrix(**IK_ONLY, flags={"fa": [0, 1]}, contrasts=[FA], checks=[MEMORY])
    (job,) = make_plan(made, ["memory/tiny/ik+fa=0/*"]).jobs
    assert shape(job) == ("ik+fa=0", "pp64 tg8", "")
    assert [(step.arm, step.block) for step in job.schedule()] == [(0, 0)]
    assert shapes(made, ["*..*pp64*", "memory"]) == [("ik+fa=0..ik+fa=1", "pp64 tg8", "")]


def test_what_cannot_run_costs_nothing() -> None:
    """Unsupported and not applicable cases have no jobs."""
    unsupported = make_plan(matrix(flags={"fmoe": 1}), ["mainline"])
    assert {case.status for case in unsupported.cases} == {Status.UNSUPPORTED}
    assert unsupported.jobs == ()
    misfit = make_plan(matrix(node_classes={"gpu": {"min_gpus": 1}}), (), [node()])
    assert {case.status for case in misfit.cases} == {Status.NOT_APPLICABLE}
    assert misfit.jobs == ()


def test_jobs_of_one_model_stand_together() -> None:
    """A node reads a model from disk once: pairs and single arms of one model come before the next one's."""
    models = {name: {"card": "tiny-moe", "quant": quant} for name, quant in (("a", "Q8_0"), ("b", "IQ4_XS"))}
    made = matrix(models=models, flags={"fa": [0, 1]}, contrasts=[FA | {"where": {"build": "ik"}}])
    assert [job.arms[0].model.name for job in make_plan(made).jobs] == ["a"] * 3 + ["b"] * 3


def test_classes_do_not_share_jobs() -> None:
    """One arm on two classes is two jobs."""
    made = matrix(**IK_ONLY, node_classes={"a": {}, "b": {}})
    assert [job.node_class.name for job in make_plan(made).jobs] == ["a", "b"]


def test_job_ids_are_stable_and_unique() -> None:
    """Equal plans have equal ids, different jobs different ones."""
    made = matrix(flags={"fa": [0, 1]}, contrasts=[FA], checks=[OUTPUTS | {"contrasts": ["fa"]}])
    first, second = ([job.id for job in make_plan(made).jobs] for _ in range(2))
    assert first == second
    assert len(set(first)) == len(first)


def test_the_policy_becomes_the_design() -> None:
    """Repetitions, blocks and limits are the matrix's."""
    made = matrix(policy={"warmup": 1, "repetitions": 2, "blocks": 8, "burn_in": 2, "timeout_s": 9.0})
    design = make_plan(made).jobs[0].design
    assert (design.warmup, design.repetitions, design.blocks, design.burn_in, design.timeout_s) == (1, 2, 8, 2, 9.0)


@pytest.fixture
def whole() -> Plan:
    return make_plan(matrix(**IK_ONLY, flags={"fa": [0, 1]}, contrasts=[FA], checks=[OUTPUTS | {"contrasts": ["fa"]}]))


def test_narrowing_keeps_required_checks(whole: Plan) -> None:
    """What -k leaves is planned like what was selected at once."""
    kept = "throughput/tiny/ik+fa=0..ik+fa=1/tg8@any"
    fewer = narrowed(whole, [kept])
    assert fewer.ids() == (kept,)
    assert [shape(job) for job in fewer.jobs] == [("ik+fa=0..ik+fa=1", "tg8", "same")]


def test_narrowing_to_all_changes_nothing(whole: Plan) -> None:
    """The jobs are the same ones."""
    assert narrowed(whole, whole.ids()) == whole


def test_what_a_build_cannot_do_is_not_part_of_its_jobs(tmp_path: Path) -> None:
    """A process would be refused as a whole for one such workload, or for outputs that it can't give."""
    (tmp_path / "llama-bench").touch()
    made = matrix(
        builds={"ik": {"fork": "ik_llama.cpp", "path": str(tmp_path)}},
        flags={"fa": [0, 1]},
        workloads=[{"pp": 64}, {"pp": 64, "depth": 32}],
        contrasts=[FA],
        checks=[OUTPUTS | {"contrasts": ["fa"]}, MEMORY],
    )
    assert shapes(made) == [("ik+fa=0..ik+fa=1", "pp64", "")]
    assert shapes(made, ["memory/*"]) == [("ik+fa=0", "pp64", ""), ("ik+fa=1", "pp64", "")]
