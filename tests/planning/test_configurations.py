"""Contrasts of configurations: several flags and variables at once, put over the arms of the matrix."""

from __future__ import annotations

from typing import Any

import pytest
from planning_support import factors_differing, matrix

from harness.domain.case import ContrastCheck
from harness.domain.errors import BadInput
from harness.domain.words import Kind, Status
from harness.planning.expand import expand
from harness.planning.plan import PlannedCase
from harness.planning.schema import Matrix

IK = {"builds": {"ik": {"fork": "ik_llama.cpp", "wheel": "w"}}}
OLD, NEW = {"ctk": "f16", "ctv": "f16"}, {"ctk": "q8_0", "ctv": "q8_0"}
SETTINGS = {"name": "settings", "factor": "configuration", "baseline": OLD, "candidate": NEW}


def pairs(made: Matrix) -> list[PlannedCase]:
    """The first workload's case of each pair."""
    return [
        case
        for case in expand(made)
        if isinstance(case.case.check, ContrastCheck) and case.case.workload_name == "pp64"
    ]


def test_both_sides_are_made_of_an_arm_of_the_matrix() -> None:
    """No axis says ctk: the contrast makes its arms, and their labels show what either side sets."""
    (case,) = pairs(matrix(**IK, flags={"fa": 1}, contrasts=[SETTINGS]))
    assert case.id == "throughput/tiny/ik+ctk=f16+ctv=f16..ik+ctk=q8_0+ctv=q8_0/pp64@any"
    assert factors_differing(*case.case.arms) == ("ctk", "ctv")


def test_ids_of_other_cases_do_not_change() -> None:
    """A contrast that is added to a matrix leaves all ids as they were."""
    before = [case.id for case in expand(matrix(flags={"nkvo": [0, 1]}))]
    after = [case.id for case in expand(matrix(flags={"nkvo": [0, 1]}, contrasts=[SETTINGS]))]
    assert [name for name in after if ".." not in name] == before


def test_every_arm_that_meets_where_gives_a_pair() -> None:
    """The axes that the configuration leaves alone stay as they are."""
    made = matrix(flags={"nkvo": [0, 1]}, contrasts=[SETTINGS | {"where": {"build": "ik"}}])
    assert [[dict(arm.flags.items)["nkvo"] for arm in case.case.arms] for case in pairs(made)] == [[0, 0], [1, 1]]


def test_an_axis_that_the_configuration_sets_is_not_multiplied() -> None:
    """Arms that differ only in what is set become the same pair."""
    assert len(pairs(matrix(**IK, flags={"ctk": ["f16", "q8_0"], "ctv": "f16", "fa": 1}, contrasts=[SETTINGS]))) == 1


def test_a_name_stands_for_its_table() -> None:
    """The same pair, whether the sides are written out or named."""
    named = matrix(
        **IK,
        flags={"fa": 1},
        configurations={"old": OLD, "new": NEW},
        contrasts=[SETTINGS | {"baseline": "old", "candidate": "new"}],
    )
    written = matrix(**IK, flags={"fa": 1}, contrasts=[SETTINGS])
    assert [case.case for case in pairs(named)] == [case.case for case in pairs(written)]


def test_what_a_side_does_not_set_is_as_the_arm_has_it() -> None:
    """An empty baseline is the arm itself; its label says what it has."""
    made = matrix(**IK, flags={"ub": 128}, contrasts=[SETTINGS | {"baseline": {}, "candidate": {"ub": 64, "fa": 0}}])
    (case,) = pairs(made)
    assert [arm.label for arm in case.case.arms] == ["ik+fa=1+ub=128", "ik+fa=0+ub=64"]


def test_variables_belong_to_a_configuration() -> None:
    """They are put over the matrix's own and shown in the label."""
    made = matrix(
        **IK,
        environment={"A": "1"},
        contrasts=[SETTINGS | {"baseline": {}, "candidate": {"ub": 64, "environment": {"A": "2"}}}],
    )
    (case,) = pairs(made)
    assert [dict(arm.environment) for arm in case.case.arms] == [{"A": "1"}, {"A": "2"}]
    assert [arm.label for arm in case.case.arms] == ["ik+a=1+ub=512", "ik+a=2+ub=64"]


def test_a_consequence_of_a_configuration_is_noted() -> None:
    """Flag rtr brings mmap = 0 along."""
    made = matrix(**IK, contrasts=[SETTINGS | {"baseline": {"rtr": 0}, "candidate": {"rtr": 1, "ub": 64}}])
    assert [case.note for case in pairs(made)] == ["as a consequence of configuration: mmap 1 -> 0"]


def test_a_flag_that_the_build_lacks_makes_the_case_unsupported() -> None:
    """Mainline has no fmoe: the case is listed with the reason."""
    made = matrix(contrasts=[SETTINGS | {"baseline": {}, "candidate": {"fmoe": 0, "ub": 64}}])
    assert [case.status for case in pairs(made)] == [Status.UNSUPPORTED, None]
    assert pairs(made)[0].reason.startswith("candidate: llama.cpp has no 'fmoe'")


def test_sides_that_leave_the_same_settings_are_refused() -> None:
    """Setting what the arm has anyway is no contrast, whatever was written."""
    made = matrix(**IK, flags={"ub": 64}, contrasts=[SETTINGS | {"baseline": {}, "candidate": {"ub": 64}}])
    with pytest.raises(BadInput, match=r"E-no-contrast: matrix: contrasts.*both sides of configuration leave the same"):
        expand(made)


def test_memory_limits_are_asked_about_the_made_arms_once() -> None:
    """A gain may be paid in buffers; floors and speeds of single arms stay with the matrix's own arms."""
    twice = [SETTINGS, SETTINGS | {"name": "again", "candidate": NEW | {"ub": 64}}]
    made = matrix(**IK, flags={"fa": 1}, contrasts=twice, checks=[{"kind": "memory", "max_rss_mib": 5.0}])
    asked: dict[Kind, list[str]] = {}
    for case in expand(made):
        if len(case.case.arms) == 1 and case.case.workload_name in ("peak", "pp64"):
            asked.setdefault(case.case.kind, []).append(case.case.arms[0].label)
    assert asked[Kind.THROUGHPUT] == ["ik"]
    assert asked[Kind.MEMORY] == ["ik", "ik+ctk=q8_0+ctv=q8_0", "ik+ctk=q8_0+ctv=q8_0+ub=64"]


def test_memory_of_made_arms_is_asked_where_they_are_timed() -> None:
    """No process is started for the peak of a profile that no contrast of the arm asks for."""
    made = matrix(
        **IK,
        workloads=[{"pp": 64}, {"profile": "chat"}],
        contrasts=[SETTINGS | {"workloads": ["pp64"]}],
        checks=[{"kind": "memory", "max_rss_mib": 5.0}],
    )
    memory = [
        (case.case.arms[0].label, case.case.workload_name) for case in expand(made) if case.case.kind is Kind.MEMORY
    ]
    assert memory == [("ik", "peak"), ("ik", "chat.peak"), ("ik+ctk=q8_0+ctv=q8_0", "peak")]


def test_builds_are_compared_under_equal_variables_only() -> None:
    """Arms of an environment contrast do not leak into others."""
    made = matrix(
        contrasts=[
            {"name": "e", "factor": "environment", "baseline": {}, "candidate": {"B": "2"}},
            {"name": "fork", "factor": "build", "baseline": "mainline", "candidate": "ik"},
        ]
    )
    names: list[Any] = [case.case.contrast for case in pairs(made)]
    assert names == ["e", "e", "fork"]
