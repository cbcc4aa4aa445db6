"""Attributions: which four arms are compared, in which order, and when they are refused."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from planning_support import factors_differing, matrix, node

from harness.domain.case import AttributionCheck, Case, Expectation
from harness.domain.errors import BadInput
from harness.domain.words import Kind, Status
from harness.planning.expand import expand
from harness.planning.plan import PlannedCase
from harness.planning.planner import make_plan
from harness.planning.schema import Matrix

BUILD = {"factor": "build", "baseline": "mainline", "candidate": "ik"}
FLAG = {"factor": "fa", "baseline": 0, "candidate": 1}
SETTINGS = {
    "name": "settings",
    "factor": "configuration",
    "baseline": {"fa": 0, "ub": 512},
    "candidate": {"fa": 1, "ub": 64},
}
OUTPUTS = {"kind": "outputs", "name": "same", "prompts": ["a"], "contrasts": ["which"]}


def which(*factors: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"name": "which", "kind": "attribution", "factors": list(factors), **changes}


def fours(made: Matrix) -> list[PlannedCase]:
    """The first workload's case of each four."""
    return [case for case in expand(made) if case.case.kind is Kind.ATTRIBUTION and case.case.workload_name == "pp64"]


def steps(case: Case) -> list[tuple[str, ...]]:
    """What differs along the square: old/old, old/new, new/new, new/old, old/old."""
    old, second, first, both = case.arms
    return [factors_differing(*pair) for pair in pairwise((old, second, both, first, old))]


def test_build_and_configuration() -> None:
    """Report 2's question: both builds at both settings, the first factor's side first."""
    (case,) = fours(matrix(contrasts=[which(BUILD, SETTINGS)]))
    assert case.id == (
        "attribution/tiny/mainline+fa=0+ub=512..mainline+fa=1+ub=64..ik+fa=0+ub=512..ik+fa=1+ub=64/pp64@any"
    )
    assert [names[0] for names in steps(case.case)] == ["fa", "build", "fa", "build"]
    assert case.case.check == AttributionCheck("which", ("build", "settings"), Expectation.REPORT)


def test_one_case_for_each_workload() -> None:
    """Prompt processing and generation are judged apart, in one job."""
    plan = make_plan(matrix(contrasts=[which(BUILD, SETTINGS)]), ["attribution"])
    assert [case.case.workload_name for case in plan.cases] == ["pp64", "tg8"]
    (job,) = plan.jobs
    assert (len(job.arms), job.process_starts) == (4, 4 * (1 + plan.policy.blocks))


def test_two_flags_that_are_axes() -> None:
    """No arm has to be made: amb and fa of report 1 interact, do they?"""
    made = matrix(
        builds={"ik": {"fork": "ik_llama.cpp", "wheel": "w"}},
        flags={"fa": [0, 1], "ub": [64, 128]},
        contrasts=[which(FLAG, {"factor": "ub", "baseline": 64, "candidate": 128})],
    )
    (case,) = fours(made)
    assert steps(case.case) == [("ub",), ("fa",), ("ub",), ("fa",)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (BUILD, FLAG),
        (FLAG, BUILD),
        (SETTINGS, BUILD),
        (SETTINGS, {"factor": "environment", "baseline": {}, "candidate": {"A": "1"}}),
        (SETTINGS, SETTINGS | {"name": "cache", "baseline": {"ctk": "f16"}, "candidate": {"ctk": "q8_0"}}),
        (BUILD, {"factor": "environment", "baseline": {"A": "0"}, "candidate": {"A": "1"}}),
        ({"factor": "model", "baseline": "tiny", "candidate": "other"}, BUILD),
    ],
)
def test_any_two_factors(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Each side of the square is one factor, whatever the two are."""
    made = matrix(
        models={"tiny": {"card": "tiny-moe"}, "other": {"card": "tiny-moe", "quant": "Q8_0"}},
        flags={"fa": [0, 1]},
        contrasts=[which(first, second, where={"flags": {}})],
    )
    found = fours(made)
    assert found
    for case in found:
        one, two, same_as_one, same_as_two = steps(case.case)
        assert (one, two) == (same_as_one, same_as_two)
        assert not set(one) & set(two)


def test_where_may_name_a_flag_of_one_build() -> None:
    """Between builds a flag that only one has says nothing about the other, here too."""
    made = matrix(
        when=[{"fork": "ik_llama.cpp", "flags": {"fmoe": [0, 1]}}],
        contrasts=[which(BUILD, SETTINGS, where={"flags": {"fmoe": 1}})],
    )
    assert [[arm.flags.get("fmoe") for arm in case.case.arms] for case in fours(made)] == [[None, None, 1, 1]]


def test_where_is_asked_before_settings_are_put_over() -> None:
    """Arms with fa = 0 are chosen, and the new settings change just that."""
    made = matrix(flags={"fa": [0, 1]}, contrasts=[which(BUILD, SETTINGS, where={"flags": {"fa": 0}})])
    assert [[arm.flags.get("fa") for arm in case.case.arms] for case in fours(made)] == [[0, 1, 0, 1]]


def test_a_flag_that_the_old_build_lacks_makes_it_unsupported() -> None:
    """The reason says which corner can't be run; the old settings do not suffer from the new ones' flag."""
    new = SETTINGS | {"baseline": {}, "candidate": {"fmoe": 0}}
    (case,) = fours(matrix(contrasts=[which(BUILD, new)]))
    assert case.status is Status.UNSUPPORTED
    assert case.reason.startswith("only the second factor new: llama.cpp has no 'fmoe'")
    assert make_plan(matrix(contrasts=[which(BUILD, new)]), ["attribution"]).jobs == ()


def test_consequences_are_noted_once() -> None:
    """All four steps are pairs; what they bring along is said."""
    repack = SETTINGS | {"baseline": {"rtr": 0}, "candidate": {"rtr": 1}}
    other = BUILD | {"baseline": "ik", "candidate": "ik2"}
    ik = {"fork": "ik_llama.cpp", "wheel": "w"}
    (case,) = fours(matrix(builds={"ik": ik, "ik2": ik}, contrasts=[which(other, repack)]))
    assert case.note == "as a consequence of configuration: mmap 1 -> 0"


@pytest.mark.parametrize(
    ("changes", "slug", "where", "message"),
    [
        pytest.param(
            {"contrasts": [which(FLAG, SETTINGS)], "flags": {"fa": [0, 1]}},
            "E-confounded",
            "matrix: contrasts[0]",
            "both factors set fa: its effect can't be attributed to either",
            id="one flag in both",
        ),
        pytest.param(
            {"contrasts": [which(BUILD, FLAG)], "flags": {"fa": 0}},
            "E-no-contrast",
            "matrix: contrasts[0].factors[1]",
            "no candidate arm with fa = 1: the matrix has no such arm",
            id="side without an arm",
        ),
        pytest.param(
            {"contrasts": [which(BUILD, SETTINGS, where={"build": "ik"})]},
            "E-no-contrast",
            "matrix: contrasts[0].factors[0]",
            "no baseline arm with build = mainline: none of them meets 'where'",
            id="side that where excludes",
        ),
        pytest.param(
            {"contrasts": [which(SETTINGS, SETTINGS | {"name": "e"}, where={"flags": {"fa": 7}})]},
            "E-confounded",
            "matrix: contrasts[0]",
            "both factors set fa, ub: its effect can't be attributed to either",
            id="the same factor twice",
        ),
        pytest.param(
            {"contrasts": [which(BUILD, SETTINGS, where={"flags": {"ub": 7}})]},
            "E-no-contrast",
            "matrix: contrasts[0]",
            "no arm meets 'where'",
            id="where that nothing meets",
        ),
        pytest.param(
            {
                "contrasts": [which(BUILD, FLAG)],
                "flags": {"fa": [0, 1]},
                "exclude": [{"build": "ik", "flags": {"fa": 1}}],
            },
            "E-no-contrast",
            "matrix: contrasts[0]",
            "the matrix has no four arms that combine both sides of build with both of fa",
            id="three corners of four",
        ),
        pytest.param(
            {
                "contrasts": [which(BUILD, SETTINGS)],
                "flags": {"ctk": "f16"},
                "when": [{"build": "ik", "flags": {"ctk": "q8_0"}}],
            },
            "E-confounded",
            "matrix: contrasts[0].factors[0]",
            "the arms differ in more than build: also in ctk (f16 v q8_0)",
            id="something else changes with the build",
        ),
        pytest.param(
            {
                "contrasts": [which(BUILD, SETTINGS, workloads=["pp64"])],
                "workloads": [{"tg": 8}, {"pp": 64, "where": {"build": "ik"}}],
            },
            "E-no-workload",
            "matrix: contrasts[0]",
            "the contrast has nothing to time: no workload applies to its arms",
            id="workload of two arms only",
        ),
    ],
)
def test_refusals(changes: dict[str, Any], slug: str, where: str, message: str) -> None:
    """Slug, place and message say what is wrong with the square."""
    with pytest.raises(BadInput) as caught:
        expand(matrix(**changes))
    assert (caught.value.slug, caught.value.where, caught.value.message) == (slug, where, message)


def test_output_checks_compare_each_arm_with_the_first_inside_the_job() -> None:
    """Three cases, one job; a contrast of a pair that is among them asks nothing twice."""
    plan = make_plan(matrix(contrasts=[which(BUILD, SETTINGS)], checks=[OUTPUTS]), ["*..*"], [node()])
    checks = [case.case for case in plan.cases if case.case.kind is Kind.EQUIVALENCE]
    old = checks[0].arms[0]
    assert [case.arms[0] for case in checks] == [old] * 3
    assert [case.check.factor for case in checks] == ["settings", "build", "build and settings"]  # type: ignore[union-attr]
    (job,) = plan.jobs
    assert job.outputs == checks[0].workload
    assert len(job.cases) == 5


def test_the_output_check_runs_where_only_the_speed_was_selected() -> None:
    """Equivalence comes before throughput, whatever is selected."""
    plan = make_plan(matrix(contrasts=[which(BUILD, SETTINGS)], checks=[OUTPUTS]), ["attribution/*pp64*"])
    assert plan.jobs[0].outputs is not None
    assert plan.jobs[0].cases == (plan.cases[0].id,)


def test_an_output_check_of_one_step_is_not_asked_of_the_others() -> None:
    """A lossy setting may be meant; that the build alone changes nothing is another question."""
    patch = {"name": "patch", **BUILD}
    made = matrix(
        flags={"fa": 0, "ub": 512},
        contrasts=[patch, which(BUILD, SETTINGS)],
        checks=[OUTPUTS | {"contrasts": ["patch"]}],
    )
    jobs = {len(job.arms): job for job in make_plan(made).jobs}
    assert jobs[2].outputs is not None
    assert jobs[4].outputs is None


def test_an_attribution_says_where_outputs_are_not_compared(tmp_path: Path) -> None:
    """Builds with a bench alone give none: the speeds are judged all the same, and the plan tells."""
    (tmp_path / "llama-bench").touch()
    by_path = {name: {"fork": "llama.cpp", "path": str(tmp_path)} for name in ("mainline", "ik")}
    made = matrix(builds=by_path, contrasts=[which(BUILD, SETTINGS)], checks=[OUTPUTS])
    notes = {case.note for case in expand(made) if case.case.kind is Kind.ATTRIBUTION}
    assert len(notes) == 1
    assert notes.pop().startswith("outputs are not compared: baseline: ")
    one_step = matrix(
        builds=by_path,
        flags={"fa": 0, "ub": 512},
        contrasts=[{"name": "patch", **BUILD}, which(BUILD, SETTINGS)],
        checks=[OUTPUTS | {"contrasts": ["patch"]}],
    )
    assert {case.note for case in expand(one_step) if case.case.kind is Kind.ATTRIBUTION} == {""}


def test_a_contrasts_name_selects_its_cases() -> None:
    """The whole name in either case, or a glob over it; a part of it is a part of an id only."""
    made = matrix(flags={"fa": 0, "ub": 512}, contrasts=[{"name": "Patch", **BUILD}, which(BUILD, SETTINGS)])
    assert {case.case.contrast for case in make_plan(made, ["patch"]).cases} == {"Patch"}
    assert {case.case.contrast for case in make_plan(made, ["WH*H"]).cases} == {"which"}
    assert {case.case.contrast for case in make_plan(made, ["!which", "!patch"]).cases} == {""}
    with pytest.raises(BadInput, match=r"E-nothing-selected.*did you mean 'which'"):
        make_plan(made, ["whic"])
