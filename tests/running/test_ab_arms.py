"""Two words become two arms: builds by name or path, flags of each, and in what the arms differ."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.domain.build import Build, Fork
from harness.domain.errors import BadInput
from harness.domain.flags import FlagValue
from harness.domain.model import Model
from harness.engines.bench import BenchEngine
from harness.running.ab_arms import AbArms, make_arms, read_arm

STANDIN = Path(__file__).parent.parent / "standin" / "llama_bench.py"
TINY = Model("tiny", card="tiny-moe", quant="IQ4_XS")


def arms_of(old: str, new: str, common: dict[str, FlagValue] | None = None, fork: Fork | None = None) -> AbArms:
    return make_arms((read_arm("OLD", old), read_arm("NEW", new)), TINY, common or {}, fork)


def bench(folder: Path, *, text: str = "") -> Path:
    """A folder with a stand-in of ik's llama-bench; or with a program that prints a text."""
    folder.mkdir(parents=True)
    program = folder / "llama-bench"
    shutil.copy(STANDIN, program)
    (folder / "standin.json").write_text(json.dumps({"do": "rows"}))
    if text:
        program.write_text(f"#!/bin/sh\nprintf '{text}'\n")
    return folder


def test_wheels_go_by_their_short_names_and_their_own() -> None:
    for old, new in (("mainline", "ik"), ("xllamacpp", "ik-llama-cpp-python"), ("XLLAMACPP", "ik_llama_cpp_python")):
        found = arms_of(old, new)
        assert [arm.build for arm in found.arms] == [
            Build("mainline", Fork.LLAMA_CPP, wheel="xllamacpp"),
            Build("ik", Fork.IK_LLAMA_CPP, wheel="ik-llama-cpp-python"),
        ]
        assert found.difference.factors == ("build",)


def test_an_arms_own_flags_go_before_those_of_both() -> None:
    found = arms_of("ik", "ik+rtr=1+ub=128", {"ub": 256, "fa": 0})
    assert [(arm.flags.get("ub"), arm.flags.get("fa")) for arm in found.arms] == [(256, 0), (128, 0)]
    assert found.names == ("ik", "ik+rtr=1+ub=128")
    assert [arm.label for arm in found.arms] == ["ik+fa=0+rtr=0+ub=256", "ik+fa=0+rtr=1+ub=128"]


@pytest.mark.parametrize(
    ("old", "new", "factors", "consequences"),
    [
        ("ik+rtr=0", "ik+rtr=1", ("rtr",), ("mmap 1 -> 0",)),
        ("ik", "ik+fa=0", ("fa",), ()),
        ("ik", "ik+fa=0+rtr=1", ("fa", "rtr"), ("mmap 1 -> 0",)),
        ("mainline", "ik+fmoe=1", ("build",), ()),
        ("mainline", "ik+rtr=1", ("build", "rtr"), ("mmap 1 -> 0",)),
        ("mainline", "ik+fa=0", ("build", "fa"), ()),
    ],
)
def test_what_differs_is_known(old: str, new: str, factors: tuple[str, ...], consequences: tuple[str, ...]) -> None:
    """A flag that has its default value is no difference; what follows from a flag is none of its own."""
    difference = arms_of(old, new).difference
    assert difference.factors == factors
    assert difference.consequences == consequences


def test_a_plus_of_a_pattern_is_no_flag() -> None:
    assert arms_of("ik", "ik+ot=ffn_.+exps=CPU+fa=0").arms[1].flags.get("ot") == "ffn_.+exps=CPU"


def test_a_build_by_path_is_recognised_and_called_after_what_tells_it(tmp_path: Path) -> None:
    old, new = (bench(tmp_path / name / "ik_llama.cpp" / "build" / "bin") for name in ("old", "new"))
    (new / "llama-bench").write_text((new / "llama-bench").read_text() + "# another build\n")
    found = arms_of(str(old), f"{new}/llama-bench+rtr=1")
    assert [arm.build.name for arm in found.arms] == ["old-ik_llama.cpp", "new-ik_llama.cpp"]
    assert {arm.build.fork for arm in found.arms} == {Fork.IK_LLAMA_CPP}
    assert found.difference.factors == ("build", "rtr")
    assert "-fmoe" in found.options["old-ik_llama.cpp"]


def test_a_fork_that_is_not_told_can_be_said(tmp_path: Path) -> None:
    folder = bench(tmp_path / "old", text="  -p, --n-prompt <n>\n  -pg <pp,tg>\n")
    assert arms_of(str(folder), "ik", fork=Fork.LLAMA_CPP).arms[0].build.fork is Fork.LLAMA_CPP


def test_a_wheel_and_a_path_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    found = arms_of("ik", f"{bench(tmp_path / 'ik')}/")
    assert [arm.build.name for arm in found.arms] == ["ik-embedded", "ik-llama-bench"]


@pytest.mark.parametrize(
    ("old", "new", "slug", "said"),
    [
        ("ik", "ik", "E-no-contrast", "moe-harness calibrate"),
        ("ik", "ik+fa=1", "E-no-contrast", "ik+fa=0 ik+fa=1"),
        ("mainlin", "ik", "E-unknown-build", "OLD (mainlin): no build is called 'mainlin' (did you mean 'mainline'?"),
        ("ik", "./nowhere", "E-build-missing", "NEW (./nowhere)"),
        ("ik", "/bin/ls", "E-not-llama-bench", "NEW (/bin/ls)"),
        ("ik", "/etc/passwd", "E-build-not-executable", "chmod +x"),
        ("ik+fmo=1", "ik", "E-unknown-flag", "OLD (ik+fmo=1): no fork has a flag 'fmo' (did you mean 'fmoe'?)"),
        ("ik+fa=7", "ik", "E-bad-flag-value", "expected 0 or 1"),
        ("ik+fa=0,1", "ik", "E-several-values", "ik+fa=0,1"),
        ("mainline+rtr=1", "ik", "E-unsupported-flag", "llama.cpp has no 'rtr'"),
        ("ik", "ik+mmap=1+rtr=1", "E-contradictory-flags", "NEW (ik+mmap=1+rtr=1)"),
    ],
)
def test_what_is_wrong_is_one_message_with_its_place(old: str, new: str, slug: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        arms_of(old, new)
    assert caught.value.slug == slug
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("word", "hint"),
    [("ik+rtr", "write rtr=0|1"), ("ik+fa=1+rtr", "write rtr=0|1"), ("mainline+ub", "write ub=VALUE")],
)
def test_a_flag_without_a_value_is_asked_for_one(word: str, hint: str) -> None:
    with pytest.raises(BadInput) as caught:
        arms_of(word, "ik")
    assert (caught.value.slug, caught.value.hint, caught.value.where) == ("E-bad-flag-value", hint, f"OLD ({word})")


def test_a_flag_of_one_fork_is_no_flag_of_both() -> None:
    with pytest.raises(BadInput, match=r"OLD \(mainline\).*say it with the build that has it: ik\+fmoe=0"):
        arms_of("mainline", "ik", {"fmoe": 0})


def test_copies_of_one_program_are_no_contrast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts are opaque: nobody knows what they start. A program's copy is the same program."""
    for name in ("old", "new"):
        bench(tmp_path / name)
    assert arms_of(f"{tmp_path}/old", f"{tmp_path}/new").difference.factors == ("build",)
    monkeypatch.setattr(BenchEngine, "opaque", lambda _: "")  # as if the stand-in were no script
    with pytest.raises(BadInput, match="are the same bytes"):
        arms_of(f"{tmp_path}/old", f"{tmp_path}/new")
    assert arms_of(f"{tmp_path}/old", f"{tmp_path}/new+rtr=1").difference.factors == ("build", "rtr")


def test_a_fork_that_is_told_is_not_overruled(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="leave --fork out"):
        arms_of(str(bench(tmp_path / "old")), "ik", fork=Fork.LLAMA_CPP)


def test_a_fork_that_nobody_tells_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"E-fork-unknown.*it printed: -p.*--fork llama.cpp or --fork ik_llama.cpp"):
        arms_of(str(bench(tmp_path / "old", text="  -p, --n-prompt <n>\n  -pg <pp,tg>\n")), "ik")


def test_a_name_that_is_a_wheel_and_a_folder_is_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench(tmp_path / "ik")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=r"E-ambiguous-build.*write \./ik"):
        arms_of("mainline", "ik")
    assert arms_of("mainline", "./ik").arms[1].build.path == str(tmp_path / "ik")
