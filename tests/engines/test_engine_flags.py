"""The flag table and complete sets of flags."""

from __future__ import annotations

import pickle

import pytest
from engine_support import path_build, recording, wheel_build
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork, Tool
from harness.domain.errors import BadInput
from harness.domain.flags import Flags
from harness.domain.model import Model
from harness.engines.bench_help import help_flags
from harness.engines.embedded.flags import RULES
from harness.engines.flags import Unsupported, complete, embedded_request_flags, known_flags, specs

FORKS = tuple(Fork)
IK, MAINLINE = path_build(Fork.IK_LLAMA_CPP), path_build(Fork.LLAMA_CPP)
BUILDS = (IK, MAINLINE, wheel_build(Fork.IK_LLAMA_CPP), wheel_build(Fork.LLAMA_CPP))


def refused(build: Build, **flags: object) -> BadInput:
    with pytest.raises(BadInput) as caught:
        complete(build, flags)
    return caught.value


@pytest.mark.parametrize("fork", FORKS)
def test_every_option_of_the_table_is_in_the_recorded_help_of_its_fork(fork: Fork) -> None:
    """The newest spelling of each flag is one that the recorded revision lists."""
    listed = help_flags(recording(fork, "help.txt"))
    for spec in specs(fork, Tool.LLAMA_BENCH).values():
        assert set(spec.spellings[0].options) <= listed, spec.name


@pytest.mark.parametrize("fork", FORKS)
def test_every_echo_of_the_table_is_a_field_of_the_recorded_rows(fork: Fork) -> None:
    """A field name with a typing error would switch the echo check of that flag off."""
    row = recording(fork, "full_1.json")
    for spec in specs(fork, Tool.LLAMA_BENCH).values():
        if spec.echoes:
            assert f'"{spec.echoes[0].field}"' in row, spec.name


@pytest.mark.parametrize("fork", FORKS)
def test_the_embedded_engine_takes_exactly_the_flags_the_table_says(fork: Fork) -> None:
    """The child refuses a flag it does not know and fills in one it is not told."""
    asked = set(specs(fork, Tool.EMBEDDED)) - {"t"}
    assert asked == set(RULES[str(fork)])


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: f"{build.fork}-{build.tool}")
def test_a_complete_set_has_every_flag_of_the_tool(build: Build) -> None:
    """Nothing is left to the build's own default."""
    assert set(complete(build, {}).as_dict()) == set(specs(build.fork, build.tool))


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: f"{build.fork}-{build.tool}")
def test_defaults_are_values_that_the_flag_accepts_unchanged(build: Build) -> None:
    """A default outside its own range could not be written down in a matrix."""
    for spec in specs(build.fork, build.tool).values():
        assert spec.normalised(spec.default) == spec.default, spec.name
        assert spec.normalised(spec.absent) == spec.absent, spec.name


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: f"{build.fork}-{build.tool}")
def test_the_arms_identity_changes_with_every_flag(build: Build) -> None:
    """A flag outside the identity would let two arms be taken for one."""
    whole = complete(build, {})
    model = Model("m", path="m.gguf")
    identities = {Arm(build, model, whole).identity}
    for name in whole.as_dict():
        identities.add(Arm(build, model, whole.merged({name: "another value"})).identity)
    assert len(identities) == len(whole.as_dict()) + 1


@pytest.mark.parametrize(("given_value", "value"), [("on", 1), ("off", 0), (True, 1), (False, 0), ("1", 1), (0, 0)])
def test_words_and_booleans_of_fa_are_one_value(given_value: object, value: int) -> None:
    assert complete(IK, {"fa": given_value}).get("fa") == value


def test_a_value_that_only_the_other_fork_takes_is_unsupported() -> None:
    """One axis of a matrix goes over both forks."""
    for name, value in (("ctk", "q6_0"), ("sm", "graph")):
        assert complete(IK, {name: value}).get(name) == value
        with pytest.raises(Unsupported, match=rf"llama\.cpp has no {name}={value} \(ik_llama\.cpp has\)"):
            complete(MAINLINE, {name: value})


def test_fa_auto_is_mainlines_llama_bench_only() -> None:
    """ik_llama.cpp would silently read the word as 0."""
    assert complete(MAINLINE, {"fa": "auto"}).get("fa") == "auto"
    with pytest.raises(Unsupported, match="auto"):
        complete(IK, {"fa": "auto"})
    with pytest.raises(Unsupported, match="auto"):
        complete(wheel_build(Fork.LLAMA_CPP), {"fa": "auto"})


@pytest.mark.parametrize(
    ("flag", "value", "expected"),
    [
        ("ub", 0, "a whole number from 1"),
        ("ub", True, "a whole number"),
        ("ub", "many", "a whole number"),
        ("ub", "8k", "a whole number"),
        ("ub", "512-2048", "a whole number"),
        ("ub", 99999999999, "a whole number from 1 to"),
        ("b", 512.5, "a whole number"),
        ("fmoe", 2, "0 or 1"),
        ("ctk", "q9_9", "f16"),
        ("ot", "exps", "pattern=BUFFER"),
        ("ts", "1,2", "joined by '/'"),
        ("ser", "6", "least experts"),
        ("ser", "1,6", "threshold from 0 to 1"),
        ("ser", "1,-0.5", "threshold from 0 to 1"),
        ("mla", 4, "from 0 to 3"),
        ("cuda", "a\nb", "control"),
    ],
)
def test_a_bad_value_is_refused_with_flag_value_and_expectation(flag: str, value: object, expected: str) -> None:
    error = refused(IK, **{flag: value})
    assert error.slug == "E-bad-flag-value"
    assert f"'{flag}'" in error.message
    assert repr(value) in error.message
    assert expected in error.message


@pytest.mark.parametrize(
    ("name", "meant"), [("fmo", "fmoe"), ("flash_attn", "fa"), ("--n-gpu-layers", "ngl"), ("n_cpu_moe", "ncmoe")]
)
def test_an_unknown_flag_is_refused_with_what_was_meant(name: str, meant: str) -> None:
    error = refused(IK, **{name: 1})
    assert error.slug == "E-unknown-flag"
    assert f"'{meant}'" in error.hint


def test_a_flag_of_the_other_fork_is_unsupported_and_says_whose_it_is() -> None:
    with pytest.raises(Unsupported, match=r"llama\.cpp has no 'rtr' .*ik_llama\.cpp only"):
        complete(MAINLINE, {"rtr": 1})
    with pytest.raises(Unsupported, match=r"ik_llama\.cpp has no 'nopo'"):
        complete(IK, {"nopo": 1})


def test_a_flag_of_the_other_tool_is_unsupported_and_says_which_tool_has_it() -> None:
    with pytest.raises(Unsupported, match=r"embedded of ik_llama\.cpp has no 'ncmoe' .*llama-bench has"):
        complete(wheel_build(Fork.IK_LLAMA_CPP), {"ncmoe": 3})


def test_unsupported_survives_pickling() -> None:
    """Workers of a cluster send it home."""
    assert pickle.loads(pickle.dumps(Unsupported("why"))).reason == "why"  # noqa: S301 - our own bytes


@pytest.mark.parametrize("cause", ["rtr", "mqkv", "muge"])
def test_what_rewrites_tensors_switches_mmap_off(cause: str) -> None:
    """The loader does so whatever is said, so the arm says what will be."""
    assert complete(IK, {cause: 1}).get("mmap") == 0
    assert complete(IK, {cause: 0}).get("mmap") == 1
    error = refused(IK, **{cause: 1, "mmap": 1})
    assert error.slug == "E-contradictory-flags"
    assert cause in error.message


def test_overrides_joined_by_commas_or_semicolons_are_one_arm() -> None:
    """The two forks' habits of joining are one meaning."""
    assert (
        complete(IK, {"ot": "a=CPU,b=CPU"})
        == complete(IK, {"ot": "a=CPU;b=CPU"})
        == complete(IK, {"ot": "a=CPU; b=CPU;"})
    )
    assert complete(IK, {"ot": ""}).get("ot") == "none"


def test_a_comma_inside_a_pattern_is_unsupported_by_llama_bench_and_fine_embedded() -> None:
    pattern = r"blk\.\d{1,2}\.ffn=CPU"
    with pytest.raises(Unsupported, match="commas"):
        complete(MAINLINE, {"ot": pattern})
    assert complete(wheel_build(Fork.LLAMA_CPP), {"ot": pattern}).get("ot") == pattern


@pytest.mark.parametrize("buffer", ["CUDA0", "CUDA_Host", "ROCm1", "Vulkan0", "SYCL0", "Metal"])
def test_a_buffer_of_gpus_is_unsupported_by_a_build_without_code_for_them(buffer: str) -> None:
    """Told before it runs, and not by an engine that refuses it."""
    with pytest.raises(Unsupported, match=f"no code for GPUs, so no buffer {buffer} for ot=a=CPU;exps={buffer}"):
        complete(wheel_build(Fork.IK_LLAMA_CPP), {"ot": f"a=CPU;exps={buffer}"})
    assert complete(IK, {"ot": f"exps={buffer}"}).get("ot") == f"exps={buffer}"
    for of_the_cpu in ("CPU", "CPU_REPACK", "BLAS"):
        assert complete(wheel_build(Fork.IK_LLAMA_CPP), {"ot": f"exps={of_the_cpu}"})


def test_a_flag_that_this_build_does_not_know_yet_is_unsupported_unless_it_says_nothing() -> None:
    """An older build without ``-muge`` behaves as with ``-muge 0``."""
    older = help_flags(recording(Fork.IK_LLAMA_CPP, "help.txt")) - {
        "-muge",
        "--merge-up-gate-experts",
        "-fmoe",
        "--fused-moe",
    }
    with pytest.raises(Unsupported, match="does not know -muge"):
        complete(IK, {"muge": 1}, options=older)
    assert complete(IK, {"muge": 0}, options=older).get("muge") == 0
    assert complete(IK, {}, options=older).get("fmoe") == 0
    assert complete(IK, {}).get("fmoe") == 1


@pytest.mark.parametrize("build", BUILDS)
def test_a_physical_batch_above_the_logical_one_is_not_measured_under_a_wrong_name(build: Build) -> None:
    """Both forks run it as the logical one and echo what was asked: seen with ub=64 and b=32."""
    with pytest.raises(Unsupported, match="ub=4096 with b=2048 would run as ub=2048: declare b=4096 too"):
        complete(build, {"ub": 4096})
    assert complete(build, {"ub": 4096, "b": 4096}).get("ub") == 4096
    assert complete(build, {"b": 256}).get("ub") == 256


def test_the_embedded_request_has_no_threads_and_no_word_for_none() -> None:
    flags = embedded_request_flags(complete(wheel_build(Fork.IK_LLAMA_CPP), {}))
    assert "t" not in flags
    assert flags["ot"] == ""


def test_known_flags_are_those_of_both_forks() -> None:
    assert {"fa", "rtr", "nopo", "repack", "ot", "t"} <= known_flags()


ANY_VALUE = st.one_of(st.text(max_size=20), st.integers(), st.booleans(), st.floats(allow_nan=True))


@given(name=st.sampled_from(sorted(known_flags())), value=ANY_VALUE, build=st.sampled_from(BUILDS))
def test_any_value_is_taken_refused_or_unsupported_and_taken_once_is_taken_again(
    name: str, value: object, build: Build
) -> None:
    """Normalising is idempotent, and nothing else than the two documented exceptions comes out."""
    try:
        once = complete(build, {name: value})
    except (BadInput, Unsupported):
        return
    assert complete(build, {name: once.get(name)}) == once
    assert isinstance(once, Flags)
