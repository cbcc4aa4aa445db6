"""Which arms a contrast compares, and when it is refused."""

from __future__ import annotations

import pytest
from planning_support import factors_differing, matrix

from harness.domain.case import ContrastCheck
from harness.domain.errors import BadInput
from harness.planning.expand import expand
from harness.planning.plan import PlannedCase
from harness.planning.schema import Matrix

FORK = {"name": "fork", "factor": "build", "baseline": "mainline", "candidate": "ik"}
RTR = {"name": "rtr", "factor": "rtr", "baseline": 0, "candidate": 1}
IK = {"fork": "ik_llama.cpp"}


def pairs(made: Matrix) -> list[PlannedCase]:
    """The first workload's case of each pair."""
    return [
        case
        for case in expand(made)
        if isinstance(case.case.check, ContrastCheck) and case.case.workload_name == "pp64"
    ]


def arms(made: Matrix) -> list[str]:
    return ["..".join(arm.label for arm in case.case.arms) for case in pairs(made)]


def test_a_build_contrast_pairs_equal_flags() -> None:
    """Each value of an axis gives its own pair; fa = 0 is never compared with fa = 1."""
    made = matrix(flags={"fa": [0, 1]}, contrasts=[FORK])
    assert arms(made) == ["mainline+fa=0..ik+fa=0", "mainline+fa=1..ik+fa=1"]


def test_flags_of_one_fork_are_part_of_the_build() -> None:
    """Flag fmoe exists in ik only: each value gives a pair, and pinning it does not lose mainline's arms."""
    made = matrix(when=[IK | {"flags": {"fmoe": [0, 1]}}], contrasts=[FORK])
    assert arms(made) == ["mainline..ik+fmoe=0", "mainline..ik+fmoe=1"]
    pinned = matrix(when=[IK | {"flags": {"fmoe": [0, 1]}}], contrasts=[FORK | {"where": {"flags": {"fmoe": 1}}}])
    assert arms(pinned) == ["mainline..ik+fmoe=1"]


def test_between_flags_a_condition_on_a_flag_needs_the_flag() -> None:
    """Asking for fmoe = 1 leaves mainline out of a contrast of fa: it has no fmoe."""
    made = matrix(
        flags={"fa": [0, 1]},
        when=[IK | {"flags": {"fmoe": [0, 1]}}],
        contrasts=[{"name": "fa", "factor": "fa", "baseline": 0, "candidate": 1, "where": {"flags": {"fmoe": 1}}}],
    )
    assert arms(made) == ["ik+fa=0+fmoe=1..ik+fa=1+fmoe=1"]


def test_a_side_whose_own_flags_cannot_be_dropped_is_confounded() -> None:
    """The difference stays when only the common flags are declared: it is no consequence of a fork's own."""
    made = matrix(when=[IK | {"flags": {"rtr": 1, "ub": 64}}], contrasts=[FORK])
    with pytest.raises(BadInput, match="E-confounded"):
        expand(made)


def test_a_common_flag_that_differs_is_confounded() -> None:
    """Flag ub exists in both forks: comparing 512 with 1024 is no comparison of builds."""
    made = matrix(flags={"ub": 512}, when=[IK | {"flags": {"ub": 1024}}], contrasts=[FORK])
    with pytest.raises(BadInput) as caught:
        expand(made)
    assert (caught.value.slug, caught.value.where) == ("E-confounded", "matrix: contrasts[0]")
    assert caught.value.message == "the arms differ in more than build: also in ub (512 v 1024)"


def test_a_common_flag_that_one_side_leaves_at_its_default_is_confounded_too() -> None:
    """What counts is the completed value, not what was written."""
    made = matrix(when=[IK | {"flags": {"ub": 1024}}], contrasts=[FORK])
    with pytest.raises(BadInput, match=r"also in ub \(512 v 1024\)"):
        expand(made)
    assert arms(matrix(when=[IK | {"flags": {"ub": 512}}], contrasts=[FORK])) == ["mainline..ik"]


def test_a_consequence_of_one_forks_flag_is_noted_between_builds() -> None:
    """Flag rtr = 1 switches ik's mmap off; that comes with the build's own flag and can't be held fixed."""
    made = matrix(when=[IK | {"flags": {"rtr": 1}}], contrasts=[FORK])
    assert [case.note for case in pairs(made)] == ["as a consequence of the builds' own flags: mmap 1 -> 0"]


def test_a_consequence_of_the_factor_is_noted() -> None:
    """Going from rtr 0 to 1 changes mmap along."""
    made = matrix(when=[IK | {"flags": {"rtr": [0, 1]}}], contrasts=[RTR])
    (case,) = pairs(made)
    assert case.note == "as a consequence of rtr: mmap 1 -> 0"
    assert set(factors_differing(*case.case.arms)) == {"rtr", "mmap"}


def test_a_declared_difference_beside_the_factor_is_confounded() -> None:
    """An include with fa = 1 *and* another ub is no partner of fa = 0."""
    made = matrix(
        builds={"ik": IK | {"wheel": "w"}},
        flags={"fa": 0, "ub": 512},
        include=[{"build": "ik", "model": "tiny", "flags": {"fa": 1, "ub": 1024}}],
        contrasts=[{"name": "fa", "factor": "fa", "baseline": 0, "candidate": 1}],
    )
    with pytest.raises(BadInput) as caught:
        expand(made)
    assert caught.value.slug == "E-confounded"
    assert caught.value.message == "the arms differ in more than fa: also in ub (512 v 1024)"


def test_mmap_declared_beside_rtr_is_still_one_factor_if_alike() -> None:
    """Declaring mmap = 0 for both leaves nothing to note."""
    made = matrix(when=[IK | {"flags": {"rtr": [0, 1], "mmap": 0}}], contrasts=[RTR])
    assert [case.note for case in pairs(made)] == [""]


def test_a_pair_differs_in_its_factor_only() -> None:
    """Two axes: each contrast holds the other one fixed."""
    made = matrix(
        builds={"ik": IK | {"wheel": "w"}},
        flags={"fa": [0, 1], "fmoe": [0, 1]},
        contrasts=[{"name": "fa", "factor": "fa", "baseline": 0, "candidate": 1}],
    )
    found = pairs(made)
    assert [factors_differing(*case.case.arms) for case in found] == [("fa",), ("fa",)]


def test_a_model_contrast_shows_both_models() -> None:
    """The id has both names, baseline first."""
    made = matrix(
        builds={"ik": IK | {"wheel": "w"}},
        models={"big": {"card": "tiny-moe", "quant": "Q8_0"}, "small": {"card": "tiny-moe", "quant": "IQ4_XS"}},
        contrasts=[{"name": "quant", "factor": "model", "baseline": "big", "candidate": "small"}],
    )
    assert pairs(made)[0].id == "throughput/big..small/ik..ik/pp64@any"


def test_an_environment_contrast_makes_its_arms() -> None:
    """Both sides are put over the matrix's own variables."""
    made = matrix(
        builds={"ik": IK | {"wheel": "w"}},
        environment={"A": "1", "B": "1"},
        contrasts=[{"name": "e", "factor": "environment", "baseline": {}, "candidate": {"B": "2"}}],
    )
    (case,) = pairs(made)
    assert [dict(arm.environment) for arm in case.case.arms] == [{"A": "1", "B": "1"}, {"A": "1", "B": "2"}]
    assert factors_differing(*case.case.arms) == ("environment",)


def test_arms_of_different_classes_are_never_paired() -> None:
    """A contrast is asked on one node."""
    made = matrix(
        node_classes={"a": {}, "b": {}},
        flags={"ub": 512},
        when=[{"node_class": "b", "flags": {"ub": 64}}],
        contrasts=[FORK],
    )
    assert [case.id for case in pairs(made)] == [
        "throughput/tiny/mainline..ik/pp64@a",
        "throughput/tiny/mainline..ik/pp64@b",
    ]


@pytest.mark.parametrize(
    ("contrast", "message", "hint"),
    [
        (RTR, "no baseline arm with rtr = 0: none of them meets 'where'", "mend 'where'"),
        (RTR | {"where": {}, "candidate": 2}, "no candidate arm with rtr = 2: the matrix has no such arm", "add it"),
        (
            FORK | {"where": {"flags": {"fa": 0}}},
            "no baseline arm with build = mainline: none of them meets 'where'",
            "mend 'where'",
        ),
    ],
)
def test_a_contrast_without_arms_is_refused(contrast: dict[str, object], message: str, hint: str) -> None:
    """E-no-contrast says which side is missing and why."""
    made = matrix(when=[IK | {"flags": {"rtr": [0, 1]}}], contrasts=[{"where": {"build": "mainline"}, **contrast}])
    with pytest.raises(BadInput) as caught:
        expand(made)
    assert caught.value.slug == "E-no-contrast"
    assert caught.value.message == message
    assert caught.value.hint.startswith(hint)


def test_sides_in_different_corners_are_refused() -> None:
    """Both sides exist, but never for the same model."""
    made = matrix(
        models={"a": {"card": "tiny-moe"}, "b": {"card": "tiny-moe", "quant": "Q8_0"}},
        exclude=[{"build": "ik", "model": "a"}, {"build": "mainline", "model": "b"}],
        contrasts=[FORK],
    )
    with pytest.raises(BadInput, match="no model and node class has an arm of both sides"):
        expand(made)


def test_an_environment_contrast_of_no_arm_is_refused() -> None:
    """The condition has to leave something."""
    made = matrix(
        contrasts=[
            {
                "name": "e",
                "factor": "environment",
                "baseline": {},
                "candidate": {"B": "2"},
                "where": {"flags": {"fa": 0}},
            }
        ]
    )
    with pytest.raises(BadInput, match="E-no-contrast: matrix: contrasts"):
        expand(made)
