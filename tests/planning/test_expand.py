"""What a matrix expands to: the cases are written out here and have to come out exactly."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning_support import matrix

from harness.domain.case import (
    ContrastCheck,
    Expectation,
    FloorCheck,
    MemoryCheck,
    OutputCheck,
    PitfallCheck,
)
from harness.domain.errors import BadInput
from harness.domain.words import Kind, Status
from harness.domain.workload import OutputProfile
from harness.planning.expand import expand
from harness.planning.plan import PlannedCase
from harness.planning.schema import Matrix

FA = {"name": "fa", "factor": "fa", "baseline": 0, "candidate": 1}
OUTPUTS = {"kind": "outputs", "name": "same", "prompts": ["a", "b"]}
FMOE_ON_IK = {"fork": "ik_llama.cpp", "flags": {"fmoe": [0, 1]}}


def ids(made: Matrix) -> list[str]:
    return [case.id for case in expand(made)]


def one(made: Matrix, case_id: str) -> PlannedCase:
    return next(case for case in expand(made) if case.id == case_id)


def test_the_product_of_builds_axes_and_workloads() -> None:
    """Each arm has one throughput case a workload; a flag with one value is not in the id."""
    assert ids(matrix(flags={"fa": [0, 1], "ub": 256})) == [
        "throughput/tiny/mainline+fa=0/pp64@any",
        "throughput/tiny/mainline+fa=0/tg8@any",
        "throughput/tiny/mainline+fa=1/pp64@any",
        "throughput/tiny/mainline+fa=1/tg8@any",
        "throughput/tiny/ik+fa=0/pp64@any",
        "throughput/tiny/ik+fa=0/tg8@any",
        "throughput/tiny/ik+fa=1/pp64@any",
        "throughput/tiny/ik+fa=1/tg8@any",
    ]


def test_flags_are_complete_and_environment_is_given() -> None:
    """An arm carries every flag, also those that the matrix does not name, and the matrix's variables."""
    arm = one(matrix(flags={"ub": 256}, environment={"B": "2", "A": "1"}), "throughput/tiny/ik/pp64@any").case.arms[0]
    assert arm.flags.get("ub") == 256
    assert arm.flags.get("rtr") == 0
    assert arm.environment == (("A", "1"), ("B", "2"))


def test_axes_of_a_when_exist_only_there() -> None:
    """The flag fmoe is an axis of ik's arms and no word of mainline's."""
    made = matrix(when=[FMOE_ON_IK], workloads=[{"pp": 64}])
    assert ids(made) == [
        "throughput/tiny/mainline/pp64@any",
        "throughput/tiny/ik+fmoe=0/pp64@any",
        "throughput/tiny/ik+fmoe=1/pp64@any",
    ]


def test_threads_of_the_policy_are_a_flag_of_every_arm() -> None:
    """They are part of the identity; a declared ``t`` wins; ``auto`` is left to the node."""

    def threads(**changes: object) -> set[object]:
        return {case.case.arms[0].flags.get("t") for case in expand(matrix(**changes))}

    assert threads() == {0}
    assert threads(policy={"threads": 3}) == {3}
    assert threads(policy={"threads": 3}, flags={"t": 2}) == {2}


@pytest.mark.parametrize(
    "condition",
    [
        {"fork": "ik_llama.cpp"},
        {"build": ["ik"]},
        {"build": "ik", "model": "tiny", "quant": "iq4_xs", "node_class": "any"},
    ],
)
def test_each_condition_of_a_when(condition: dict[str, object]) -> None:
    """All conditions have to hold."""
    made = matrix(when=[condition | {"flags": {"ub": 64}}], workloads=[{"pp": 64}])
    flags = {case.case.arms[0].build.name: case.case.arms[0].flags.get("ub") for case in expand(made)}
    assert flags == {"mainline": 512, "ik": 64}


def test_a_later_when_replaces_an_axis() -> None:
    """The file's order decides."""
    made = matrix(
        flags={"ub": [128, 256]}, when=[{"build": "ik", "flags": {"ub": 64}}, {"build": "ik", "flags": {"ub": 32}}]
    )
    assert {case.case.arms[0].flags.get("ub") for case in expand(made)} == {128, 256, 32}


def test_an_exclude_removes_what_it_describes_and_nothing_else() -> None:
    """Conditions and flags have to hold together."""
    made = matrix(flags={"fa": [0, 1]}, exclude=[{"build": "ik", "flags": {"fa": 0}}], workloads=[{"pp": 64}])
    assert ids(made) == [
        "throughput/tiny/mainline+fa=0/pp64@any",
        "throughput/tiny/mainline+fa=1/pp64@any",
        "throughput/tiny/ik+fa=1/pp64@any",
    ]


def test_an_exclude_knows_normalised_values() -> None:
    """``fa = "on"`` is excluded by ``fa = 1``."""
    made = matrix(flags={"fa": ["off", "on"]}, exclude=[{"flags": {"fa": 1}}], workloads=[{"pp": 64}])
    assert ids(made) == ["throughput/tiny/mainline+fa=0/pp64@any", "throughput/tiny/ik+fa=0/pp64@any"]


def test_a_flag_that_an_arm_does_not_have_excludes_nothing() -> None:
    """An exclude of ik's flag leaves mainline alone."""
    made = matrix(when=[FMOE_ON_IK], exclude=[{"flags": {"fmoe": [0, 1]}}], workloads=[{"pp": 64}])
    assert ids(made) == ["throughput/tiny/mainline/pp64@any"]


def test_an_include_adds_an_arm_that_an_exclude_would_remove() -> None:
    """Includes come after excludes; flags that they do not name have the first value of their axis."""
    made = matrix(
        flags={"fa": [1, 0]},
        exclude=[{"build": "ik"}],
        include=[{"build": "ik", "model": "tiny", "flags": {"ub": 64}}],
        workloads=[{"pp": 64}],
    )
    assert ids(made) == [
        "throughput/tiny/mainline+fa=1/pp64@any",
        "throughput/tiny/mainline+fa=0/pp64@any",
        "throughput/tiny/ik+fa=1+ub=64/pp64@any",
    ]


def test_an_include_of_an_arm_that_is_there_adds_nothing() -> None:
    """Two declarations of the same flags are one arm."""
    made = matrix(include=[{"build": "ik", "model": "tiny", "flags": {"ub": 512}}], workloads=[{"pp": 64}])
    assert len(ids(made)) == 2


def test_one_case_for_each_declared_node_class() -> None:
    """Classes multiply; an include may be for one of them."""
    made = matrix(
        builds={"ik": {"fork": "ik_llama.cpp", "wheel": "w"}},
        node_classes={"cpu": {}, "gpu": {"min_gpus": 1}},
        include=[{"build": "ik", "model": "tiny", "node_class": "gpu", "flags": {"ub": 64}}],
        workloads=[{"pp": 64}],
    )
    assert ids(made) == [
        "throughput/tiny/ik/pp64@cpu",
        "throughput/tiny/ik+ub=512/pp64@gpu",
        "throughput/tiny/ik+ub=64/pp64@gpu",
    ]


def test_a_build_without_a_flag_has_unsupported_cases_with_the_reason() -> None:
    """Nothing is silently gone: mainline has no fmoe."""
    made = matrix(flags={"fmoe": 1}, workloads=[{"pp": 64}])
    mainline, ik = expand(made)
    assert (mainline.status, ik.status) == (Status.UNSUPPORTED, None)
    assert "fmoe" in mainline.reason


def test_a_contrast_with_an_unsupported_side_is_unsupported() -> None:
    """The reason says which side it is."""
    made = matrix(
        flags={"fmoe": 1}, contrasts=[{"name": "f", "factor": "build", "baseline": "mainline", "candidate": "ik"}]
    )
    case = one(made, "throughput/tiny/mainline..ik/pp64@any")
    assert case.status is Status.UNSUPPORTED
    assert case.reason.startswith("baseline: ")


def test_options_of_a_build_decide_what_it_supports() -> None:
    """A llama-bench whose --help lacks -fmoe can't do fmoe = 1."""
    made = matrix(
        builds={"old": {"fork": "ik_llama.cpp", "path": "llama-bench"}}, flags={"fmoe": 1}, workloads=[{"pp": 64}]
    )
    assert expand(made)[0].status is None
    assert expand(made, {"old": frozenset({"-m", "-p"})})[0].status is Status.UNSUPPORTED


def test_checks_of_each_kind() -> None:
    """Kind, check, workload and origin of one case of every kind."""
    made = matrix(
        flags={"fa": [0, 1]},
        contrasts=[
            FA | {"where": {"build": "ik"}, "workloads": ["tg8"], "expect": "improved"},
            FA | {"name": "trap", "kind": "pitfall", "where": {"build": "mainline"}, "source": "s", "instead": "i"},
        ],
        checks=[
            {"kind": "floor", "tokens_per_second": 3.0, "workloads": ["pp64"], "where": {"build": "ik"}},
            OUTPUTS | {"contrasts": ["fa"], "n_predict": 4, "positions": 5},
            {"kind": "memory", "max_rss_mib": 9.0, "where": {"build": "ik", "flags": {"fa": 1}}},
        ],
    )
    found = {case.id: case for case in expand(made)}
    ik, mainline = "ik+fa=0..ik+fa=1", "mainline+fa=0..mainline+fa=1"
    assert found["throughput/tiny/ik+fa=0/pp64@any"].case.check == FloorCheck(3.0)
    assert found["throughput/tiny/ik+fa=0/tg8@any"].case.check == FloorCheck(None)
    assert found["throughput/tiny/mainline+fa=0/pp64@any"].case.check == FloorCheck(None)
    contrast = found[f"throughput/tiny/{ik}/tg8@any"]
    assert contrast.case.check == ContrastCheck("fa", "fa", Expectation.IMPROVED)
    assert contrast.origin == "matrix: contrasts[0]"
    assert found[f"pitfall/tiny/{mainline}/pp64@any"].case.check == PitfallCheck("trap", "fa", "s", "i")
    outputs = found[f"equivalence/tiny/{ik}/same@any"]
    assert outputs.case.check == OutputCheck("same", "fa", changes_numbers=True)
    profile = outputs.case.workload
    assert isinstance(profile, OutputProfile)
    assert [(prompt.name, prompt.text) for prompt in profile.prompts] == [("p1", "a"), ("p2", "b")]
    assert (profile.n_predict, profile.positions) == (4, 5)
    memory = found["memory/tiny/ik+fa=1/peak@any"]
    assert memory.case.check == MemoryCheck(9.0)
    assert memory.case.workload is None
    assert len(found) == 8 + 1 + 2 + 1 + 1


def test_the_last_floor_that_applies_wins() -> None:
    """General first, special after it."""
    floor = {"kind": "floor", "tokens_per_second": 1.0}
    made = matrix(checks=[floor, floor | {"tokens_per_second": 2.0, "where": {"build": "ik"}}])
    assert one(made, "throughput/tiny/ik/pp64@any").case.check == FloorCheck(2.0)
    assert one(made, "throughput/tiny/mainline/pp64@any").case.check == FloorCheck(1.0)


def test_an_output_check_may_have_its_own_arms() -> None:
    """factor, baseline and candidate as in a contrast, without a speed to compare."""
    made = matrix(
        flags={"fa": [0, 1]},
        checks=[OUTPUTS | {"factor": "fa", "baseline": 0, "candidate": 1, "where": {"build": "ik"}}],
    )
    assert [case.id for case in expand(made) if case.case.kind is Kind.EQUIVALENCE] == [
        "equivalence/tiny/ik+fa=0..ik+fa=1/same@any"
    ]


def test_an_output_check_of_two_contrasts_of_one_pair_is_one_case() -> None:
    """A pitfall and a contrast of the same arms do not double their output check."""
    trap = FA | {"name": "trap", "kind": "pitfall", "source": "s", "instead": "i"}
    made = matrix(flags={"fa": [0, 1]}, contrasts=[FA, trap], checks=[OUTPUTS | {"contrasts": ["fa", "trap"]}])
    assert sum(case.case.kind is Kind.EQUIVALENCE for case in expand(made)) == 2


def test_a_workload_may_be_for_some_arms_only() -> None:
    """Its condition holds for single arms and for both arms of contrasts, also where they name it."""
    made = matrix(
        flags={"fa": [0, 1]},
        workloads=[{"pp": 64}, {"pp": 99, "where": {"build": "ik"}}],
        contrasts=[FA | {"workloads": ["pp99"]}],
    )
    assert [case for case in ids(made) if "pp99" in case] == [
        "throughput/tiny/ik+fa=0/pp99@any",
        "throughput/tiny/ik+fa=1/pp99@any",
        "throughput/tiny/ik+fa=0..ik+fa=1/pp99@any",
    ]


def test_a_contrast_has_a_workload_only_if_both_arms_have_it() -> None:
    """A workload of ik's arms is not measured between the builds."""
    made = matrix(
        workloads=[{"pp": 64}, {"pp": 99, "where": {"build": "ik"}}],
        contrasts=[{"name": "f", "factor": "build", "baseline": "mainline", "candidate": "ik"}],
    )
    assert [case for case in ids(made) if ".." in case] == ["throughput/tiny/mainline..ik/pp64@any"]


@pytest.mark.parametrize(
    ("changes", "slug", "where", "message"),
    [
        pytest.param(
            {"flags": {"fa": [0, 1]}, "contrasts": [FA, FA | {"name": "again"}]},
            "E-duplicate-case",
            "matrix: contrasts[1]",
            "asks the same as matrix: contrasts[0]: case throughput/tiny/mainline+fa=0..mainline+fa=1/pp64@any",
            id="two contrasts of one question",
        ),
        pytest.param(
            {"checks": [{"kind": "memory", "max_rss_mib": 1.0}, {"kind": "memory", "max_rss_mib": 2.0}]},
            "E-duplicate-case",
            "matrix: checks[1]",
            "asks the same as matrix: checks[0]: case memory/tiny/mainline/peak@any",
            id="two limits of one arm",
        ),
        pytest.param(
            {
                "flags": {"fa": [0, 1]},
                "contrasts": [FA],
                "checks": [OUTPUTS | {"contrasts": ["fa"]}, OUTPUTS | {"name": "other", "contrasts": ["fa"]}],
            },
            "E-two-output-checks",
            "matrix",
            "compares the same arms as matrix: checks[0]",
            id="two output checks of one pair",
        ),
        pytest.param(
            {"exclude": [{"model": "tiny"}]}, "E-no-arm", "matrix: exclude", "every arm is excluded", id="no arm at all"
        ),
        pytest.param(
            {"checks": [{"kind": "floor", "tokens_per_second": 1.0, "where": {"flags": {"fa": 0}}}]},
            "E-no-arm",
            "matrix: checks[0].where",
            "no arm of the matrix meets this condition",
            id="floor of no arm",
        ),
        pytest.param(
            {"flags": {"fa": [0, 1]}, "workloads": [], "contrasts": [FA]},
            "E-no-workload",
            "matrix: contrasts[0]",
            "no workload applies",
            id="contrast without workload",
        ),
        pytest.param(
            {"flags": {"ub": -3}},
            "E-bad-flag-value",
            "matrix: flags.ub",
            "flag 'ub': got -3, expected a whole number",
            id="bad value",
        ),
        pytest.param(
            {"when": [{"build": "ik", "flags": {"rtr": 1, "mmap": 1}}]},
            "E-contradictory-flags",
            "matrix: when[0].flags.mmap",
            "mmap=1 with rtr=1",
            id="contradiction",
        ),
    ],
)
def test_faults_of_a_whole_matrix(changes: dict[str, object], slug: str, where: str, message: str) -> None:
    """What only shows when the parts are put together is named with its place, too."""
    with pytest.raises(BadInput) as caught:
        expand(matrix(**changes))
    assert (caught.value.slug, caught.value.where) == (slug, where)
    assert message in caught.value.message


def test_faults_of_a_whole_matrix_are_reported_together() -> None:
    """Two contrasts without arms are one error."""
    with pytest.raises(BadInput) as caught:
        expand(matrix(contrasts=[FA, FA | {"name": "b"}]))
    assert caught.value.message.startswith("2 problems")


BY_PATH = {
    "mainline": {"fork": "llama.cpp", "path": "/none/mainline"},
    "ik": {"fork": "ik_llama.cpp", "path": "/none/ik"},
}
DEEP = [{"pp": 64}, {"pp": 64, "depth": 32}, {"tg": 8, "depth": 32}]


def unsupported(made: Matrix, options: dict[str, frozenset[str]] | None = None) -> dict[str, str]:
    """Ids of the cases that can't run, and why."""
    return {case.id: case.reason for case in expand(made, options) if case.status is Status.UNSUPPORTED}


def test_a_workload_that_the_builds_tool_cannot_time_is_unsupported_by_itself() -> None:
    """The other workloads of the arm stay; ik_llama.cpp's llama-bench times generation at a depth, not prompts."""
    found = unsupported(matrix(builds=BY_PATH, workloads=DEEP))
    assert list(found) == ["throughput/tiny/ik/pp64.d32@any"]
    assert "cannot time pp64.d32" in found["throughput/tiny/ik/pp64.d32@any"]
    assert not unsupported(matrix(workloads=DEEP))


def test_a_contrast_of_such_a_workload_names_the_side() -> None:
    fork = {"name": "fork", "factor": "build", "baseline": "mainline", "candidate": "ik"}
    found = unsupported(matrix(builds=BY_PATH, workloads=DEEP, contrasts=[fork]))
    assert found["throughput/tiny/mainline..ik/pp64.d32@any"].startswith("candidate: ")
    assert len(found) == 2


def test_a_workload_that_needs_an_option_which_the_build_lacks_is_unsupported() -> None:
    """An older llama.cpp without -d: found in its --help, not by a lost job."""
    found = unsupported(matrix(builds=BY_PATH, workloads=DEEP), {"mainline": frozenset({"-p", "-n"})})
    assert set(found) == {
        "throughput/tiny/mainline/pp64.d32@any",
        "throughput/tiny/mainline/tg8.d32@any",
        "throughput/tiny/ik/pp64.d32@any",
    }
    assert found["throughput/tiny/mainline/tg8.d32@any"] == "build 'mainline' does not know -d, which tg8.d32 needs"


def _with_programs(folder: Path, *programs: str) -> dict[str, object]:
    """A matrix of builds in folders of their own with the same programs."""
    builds = {name: {"fork": entry["fork"], "path": str(folder / name)} for name, entry in BY_PATH.items()}
    for name in builds:
        (folder / name).mkdir()
        for program in programs:
            (folder / name / program).touch()
    return matrix(builds=builds, flags={"fa": [0, 1]}, contrasts=[FA], checks=[OUTPUTS | {"contrasts": ["fa"]}])


def test_outputs_of_a_bench_alone_are_unsupported_and_its_speeds_say_so(tmp_path: Path) -> None:
    """The contrast is judged as if nobody had asked for outputs, and a reader is told what to compile."""
    made = _with_programs(tmp_path, "llama-bench")
    found = unsupported(made)
    assert set(found) == {
        "equivalence/tiny/mainline+fa=0..mainline+fa=1/same@any",
        "equivalence/tiny/ik+fa=0..ik+fa=1/same@any",
    }
    speed = one(made, "throughput/tiny/ik+fa=0..ik+fa=1/pp64@any")
    assert speed.status is None
    assert speed.note.startswith("outputs are not compared: baseline: no llama-server lies beside llama-bench in build")
    assert "compile with the target llama-server" in speed.note
    assert one(made, "throughput/tiny/ik+fa=0/pp64@any").note == ""


@pytest.mark.parametrize("program", ["llama-server", "llama-perplexity"])
def test_outputs_of_a_build_by_path_are_compared_where_a_program_gives_some(tmp_path: Path, program: str) -> None:
    assert unsupported(_with_programs(tmp_path, "llama-bench", program)) == {}


@pytest.mark.parametrize("program", ["llama-server", "llama-perplexity"])
def test_llama_perplexity_is_not_compared_with_a_wheel(tmp_path: Path, program: str) -> None:
    """Each of the two builds alone could be asked; said where it is planned, and no job asks for it."""
    for name in ("llama-bench", program):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    builds = {
        "mine": {"fork": "llama.cpp", "path": str(tmp_path)},
        "wheel": {"fork": "llama.cpp", "wheel": "xllamacpp"},
    }
    pair = {"name": "ab", "factor": "build", "baseline": "wheel", "candidate": "mine"}
    made = matrix(builds=builds, contrasts=[pair], checks=[OUTPUTS | {"contrasts": ["ab"]}])
    found = unsupported(made)
    if program == "llama-server":
        assert found == {}
        return
    assert list(found) == ["equivalence/tiny/wheel..mine/same@any"]
    (reason,) = found.values()
    assert reason.startswith("no llama-server lies beside llama-bench in build 'mine'")
    assert "llama-perplexity can be compared with itself only, not with a wheel ('wheel')" in reason
    assert one(made, "throughput/tiny/wheel..mine/pp64@any").note.startswith(
        "outputs are not compared: no llama-server"
    )


def test_what_a_build_on_another_machine_has_is_told_there() -> None:
    checks = [OUTPUTS | {"contrasts": ["fa"]}]
    assert unsupported(matrix(builds=BY_PATH, flags={"fa": [0, 1]}, contrasts=[FA], checks=checks)) == {}
