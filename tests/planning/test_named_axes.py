"""Named axes: several flags under one name, as one value of an axis."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning_support import load, refusal

from harness.planning.expand import expand
from harness.planning.plan import PlannedCase

OFFLOAD = """
[axes]
offload = [
  { name = "host", flags = { ngl = 0 } },
  { name = "hybrid", flags = { ngl = 99, ot = "exps=CPU" } },
]
"""
ONLY_IK = '[[exclude]]\nbuild = "mainline"\n'


def cases(tmp_path: Path, text: str) -> tuple[PlannedCase, ...]:
    return expand(load(tmp_path, text))


def test_ids_have_the_name_and_arms_have_the_flags(tmp_path: Path) -> None:
    """A label with two patterns of tensors could not be read."""
    found = {case.id: case.case.arms[0].flags for case in cases(tmp_path, OFFLOAD + ONLY_IK)}
    hybrid = found["throughput/tiny/ik+offload=hybrid/pp64@any"]
    assert (hybrid.get("ngl"), hybrid.get("ot")) == (99, "exps=CPU")
    assert found["throughput/tiny/ik+offload=host/pp64@any"].get("ngl") == 0
    assert len(found) == 4


def test_an_axis_of_one_value_is_not_in_ids(tmp_path: Path) -> None:
    """As with flags: labels show what differs."""
    text = '[axes]\nkv = [{ name = "small", flags = { ctk = "q8_0", ctv = "q8_0" } }]\n'
    found = cases(tmp_path, text + ONLY_IK)
    assert found[0].id == "throughput/tiny/ik/pp64@any"
    assert found[0].case.arms[0].flags.get("ctk") == "q8_0"


def test_where_and_exclude_and_include_know_the_names(tmp_path: Path) -> None:
    """They stand among the flags."""
    text = (
        OFFLOAD
        + '[[exclude]]\nflags = { offload = "hybrid" }\n'
        + '[[include]]\nbuild = "ik"\nmodel = "tiny"\nflags = { offload = "hybrid", fa = 0 }\n'
        + '[[workloads]]\npp = 32\nwhere = { flags = { offload = ["hybrid"] } }\n'
    )
    found = [case.id for case in cases(tmp_path, text)]
    assert [name for name in found if "pp32" in name] == ["throughput/tiny/ik+fa=0+offload=hybrid/pp32@any"]
    assert [name for name in found if "hybrid" in name and "mainline" in name] == []


def test_a_contrast_can_have_the_axis_as_its_factor(tmp_path: Path) -> None:
    """What the values set is not what else differs."""
    contrast = '[[contrasts]]\nname = "o"\nfactor = "offload"\nbaseline = "host"\ncandidate = "hybrid"\n'
    found = [case for case in cases(tmp_path, OFFLOAD + contrast) if case.case.contrast]
    assert [case.id for case in found] == [
        f"throughput/tiny/{build}+offload=host..{build}+offload=hybrid/{load}@any"
        for build in ("mainline", "ik")
        for load in ("pp64", "tg8")
    ]
    assert {case.note for case in found} == {""}


def test_other_contrasts_hold_the_axis_fixed(tmp_path: Path) -> None:
    """Two values that differ in a flag of one fork only are still two values."""
    axis = '[axes]\nway = [{ name = "a", flags = { fa = 1 } }, { name = "b", flags = { fa = 1, fmoe = 0 } }]\n'
    contrast = '[[contrasts]]\nname = "c"\nfactor = "build"\nbaseline = "mainline"\ncandidate = "ik"\n'
    found = [case for case in cases(tmp_path, axis + contrast) if case.case.contrast]
    named = [[dict(arm.named)["way"] for arm in case.case.arms] for case in found]
    assert named == [["a", "a"], ["a", "a"], ["b", "b"], ["b", "b"]]


def test_the_name_is_no_part_of_an_arms_identity(tmp_path: Path) -> None:
    """What is called otherwise is measured alike."""
    arms = [cases(tmp_path, OFFLOAD.replace("hybrid", name) + ONLY_IK)[-1].case.arms[0] for name in ("hybrid", "both")]
    assert arms[0].identity == arms[1].identity
    assert arms[0].label != arms[1].label


@pytest.mark.parametrize(
    ("text", "slug", "said"),
    [
        (OFFLOAD + '[[exclude]]\nflags = { offload = "hybird" }\n', "E-bad-flag-value", "did you mean 'hybrid'?"),
        (OFFLOAD.replace("ngl = 0", "ngll = 0"), "E-unknown-flag", "m.toml: axes.offload[0].flags.ngll"),
        (OFFLOAD.replace("offload", "ot"), "E-duplicate-name", "'ot' is a flag's name already"),
        (OFFLOAD.replace("offload", "build"), "E-duplicate-name", "'build' is taken"),
        (
            OFFLOAD + "[flags]\nngl = [0, 1]\n",
            "E-contradictory-flags",
            "axes.offload[0].flags.ngl: 'ngl' is set both here and at m.toml: flags.ngl",
        ),
        (
            OFFLOAD + '[[when]]\nbuild = "ik"\nflags = { ot = "none" }\n',
            "E-contradictory-flags",
            "at m.toml: when[0].flags.ot",
        ),
        (OFFLOAD.replace('"hybrid"', '"Host"'), "E-matrix-invalid", "value 'host' is listed twice"),
        (OFFLOAD.replace("flags = { ngl = 0 }", "flgs = {}"), "E-matrix-invalid", "did you mean 'flags'?"),
        ("[axes]\noffload = []\n", "E-matrix-invalid", "is empty"),
        (OFFLOAD + '[flags]\noffload = "host"\n', "E-unknown-flag", "it is one of [axes]"),
        (
            OFFLOAD + '[[contrasts]]\nname = "o"\nfactor = "offload"\nbaseline = "host"\ncandidate = "gpu"\n',
            "E-bad-flag-value",
            "axis 'offload' has no value 'gpu'",
        ),
    ],
)
def test_faults_of_axes_are_said(tmp_path: Path, text: str, slug: str, said: str) -> None:
    """With the place and what was probably meant."""
    error = refusal(tmp_path, text)
    assert error.slug == slug
    assert said in str(error)


def test_an_include_can_not_set_a_flag_beside_the_name_that_sets_it(tmp_path: Path) -> None:
    """Its label would show a name that is not true."""
    error = refusal(tmp_path, OFFLOAD + '[[include]]\nbuild = "ik"\nmodel = "tiny"\nflags = { ngl = 3 }\n')
    assert error.slug == "E-contradictory-flags"
