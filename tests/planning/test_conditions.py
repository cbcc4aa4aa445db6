"""Conditions on build numbers, commits and placement."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning_support import load, refusal

from harness.domain.errors import BadInput
from harness.planning.expand import expand
from harness.planning.plan import PlannedCase

BUILDS = """
[builds.old]
fork = "ik_llama.cpp"
path = "old/llama-bench"
source = { number = 4000, commit = "aaaaaaa1" }

[builds.new]
fork = "ik_llama.cpp"
path = "new/llama-bench"
source = { number = 5318, commit = "bbbbbbb2" }
"""


def ids(tmp_path: Path, text: str) -> list[str]:
    return [case.id for case in cases(tmp_path, text)]


def cases(tmp_path: Path, text: str) -> tuple[PlannedCase, ...]:
    return expand(load(tmp_path, text))


@pytest.mark.parametrize(
    ("asked", "met"),
    [
        ('build_number = ">=5318"', ["new"]),
        ('build_number = "<5318"', ["old"]),
        ('build_number = ">3999, <=5318"', ["old", "new"]),
        ('build_number = "=4000"', ["old"]),
        ('build_number = "!=4000"', ["new"]),
        ('commit = "aaaaaaa"', ["old"]),
        ('commit = ["aaaaaaa1ffff", "bbbbbbb2"]', ["old", "new"]),
    ],
)
def test_builds_by_number_and_commit(tmp_path: Path, asked: str, met: list[str]) -> None:
    """Either of two commits may be the beginning of the other."""
    text = BUILDS + f'[[when]]\nbuild = ["old", "new"]\n{asked}\nflags = {{ mqkv = [0, 1] }}\n'
    found = [case for case in ids(tmp_path, text) if "mqkv=1/pp64" in case]
    assert [case.split("/")[2] for case in found] == [f"{build}+mqkv=1" for build in met]


def test_a_number_that_is_not_known_is_said_and_not_guessed(tmp_path: Path) -> None:
    """Each build once; narrowing the builds helps. Verified wheels tell their numbers, but not all their commits."""
    unknown = '[builds.one]\nfork = "ik_llama.cpp"\npath = "one"\n[builds.two]\nfork = "ik_llama.cpp"\npath = "two"\n'
    error = refusal(
        tmp_path, BUILDS + unknown + '[[exclude]]\nbuild_number = ">=1"\n[[exclude]]\nbuild_number = ">=2"\n'
    )
    assert error.slug == "E-unknown-build-number"
    assert error.message.count("build 'one'") == 1
    assert error.message.count("build 'two'") == 1
    assert "[builds.two.source] number = ..." in error.message
    assert refusal(tmp_path, '[[exclude]]\ncommit = "aaaaaaa"\nbuild = "mainline"\n').slug == "E-unknown-build-commit"


def test_the_number_is_read_in_the_build_folder(tmp_path: Path) -> None:
    """Nothing is run for it."""
    program = tmp_path / "build" / "bin" / "llama-bench"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    (tmp_path / "build" / "CMakeCache.txt").write_text("GGML_CUDA:BOOL=OFF\n")
    (tmp_path / "build" / "build-info.cpp").write_text("int LLAMA_BUILD_NUMBER = 6000;\n")
    text = '[builds.made]\nfork = "ik_llama.cpp"\npath = "build/bin"\n'
    text += '[[when]]\nbuild = "made"\nbuild_number = ">=6000"\nflags = { mqkv = [0, 1] }\n'
    assert "throughput/tiny/made+mqkv=1/pp64@any" in ids(tmp_path, text)


@pytest.mark.parametrize("wrong", ['"5318"', "5318", '">=b5318"', '">=1,"', '""'])
def test_what_is_no_range_is_refused(tmp_path: Path, wrong: str) -> None:
    """With an example of one."""
    error = refusal(tmp_path, f"[[exclude]]\nbuild_number = {wrong}\n")
    assert error.slug == "E-matrix-invalid"
    assert 'a range like ">=5318"' in str(error)


PLACED = (
    BUILDS
    + """
[node_classes.one]
[node_classes.none]
no_gpu = true
[axes]
offload = [
  { name = "all", flags = {} },
  { name = "host", flags = { ngl = 0 } },
  { name = "experts", flags = { ot = "exps=CPU" } },
  { name = "layers", flags = { ncmoe = 3 } },
  { name = "to-gpu", flags = { ot = "exps=CUDA0" } },
]
"""
)


def test_flags_by_placement(tmp_path: Path) -> None:
    """A class without GPUs and a wheel place everything on the CPU."""
    text = PLACED + '[[when]]\nplacement = "hybrid"\nflags = { no_ooae = [0, 1] }\n'
    found = [case for case in ids(tmp_path, text) if "no-ooae=1/pp64" in case or "no_ooae=1" in case]
    arms = {(case.split("/")[2], case.split("@")[1]) for case in found}
    assert arms == {
        (f"{build}+no_ooae=1+offload={value}", "one") for build in ("old", "new") for value in ("experts", "layers")
    }


def test_ids_do_not_show_what_no_placement_of_their_class_can_add(tmp_path: Path) -> None:
    """Where there is no GPU nothing is hybrid: a flag has the one value of its axis there."""
    text = PLACED + '[flags]\nfa = 1\n[[when]]\nplacement = "hybrid"\nflags = { fa = 0 }\n'
    found = ids(tmp_path, text)
    assert "throughput/tiny/old+fa=0+offload=experts/pp64@one" in found
    assert "throughput/tiny/old+offload=experts/pp64@none" in found
    assert "throughput/tiny/ik+offload=experts/pp64@one" in found


@pytest.mark.parametrize(
    ("placement", "values"), [("cpu", {"host"}), ("hybrid", {"experts", "layers"}), ("gpu", {"all", "to-gpu"})]
)
def test_arms_are_left_out_by_placement(tmp_path: Path, placement: str, values: set[str]) -> None:
    """Excludes and every `where` look at arms."""
    text = PLACED + f'[[exclude]]\nplacement = "{placement}"\n'
    kept = {case for case in ids(tmp_path, text) if "/old" in case and "@one" in case}
    assert not any(f"offload={value}/" in case for case in kept for value in values)
    assert len({case.split("/")[2] for case in kept}) == 5 - len(values)
    wheels = {case for case in ids(tmp_path, text) if "/ik" in case}
    assert bool(wheels) == (placement != "cpu")


def test_a_placement_can_not_decide_itself(tmp_path: Path) -> None:
    """Nor be a word that there is none of."""
    error = refusal(tmp_path, '[[when]]\nplacement = "gpu"\nflags = { ngl = 3 }\n')
    assert (error.slug, error.where) == ("E-contradictory-flags", "m.toml: when[0].flags.ngl")
    error = refusal(tmp_path, '[[exclude]]\nplacement = "hybird"\n')
    assert (error.slug, error.hint) == ("E-unknown-placement", "did you mean 'hybrid'?")


def test_a_contrast_pairs_arms_of_one_placement(tmp_path: Path) -> None:
    """Its `where` holds for both."""
    contrast = '[[contrasts]]\nname = "c"\nfactor = "build"\nbaseline = "old"\ncandidate = "new"\n'
    text = PLACED + contrast + 'where = { placement = "gpu", node_class = "one" }\n'
    found = [case.case.arms for case in cases(tmp_path, text) if case.case.contrast]
    assert {tuple(dict(arm.named)["offload"] for arm in arms) for arms in found} == {
        ("all", "all"),
        ("to-gpu", "to-gpu"),
    }


def test_flags_that_contradict_one_another_are_refused_unless_excluded(tmp_path: Path) -> None:
    """A quantized V cache needs flash attention in both forks."""
    axes = '[flags]\nfa = [0, 1]\nctv = ["f16", "q8_0"]\n'
    with pytest.raises(BadInput, match=r"(?s)E-contradictory-flags.*fa=0 with ctv=q8_0"):
        ids(tmp_path, axes)
    assert len(ids(tmp_path, axes + '[[exclude]]\nflags = { fa = 0, ctv = "q8_0" }\n')) == 12
    included = axes + "[[exclude]]\nflags = { fa = 0 }\n"
    included += '[[include]]\nbuild = "ik"\nmodel = "tiny"\nflags = { fa = 0, ctv = "q8_0" }\n'
    with pytest.raises(BadInput, match="E-contradictory-flags"):
        ids(tmp_path, included)
