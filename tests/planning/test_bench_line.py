"""Arguments of ``llama-bench``, as people paste them, are understood in either fork's spelling."""

from __future__ import annotations

import shlex
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.build import Fork, Tool
from harness.domain.errors import BadInput
from harness.engines.flag_spec import FlagKind
from harness.engines.flags import specs
from harness.planning.bench_line import BenchLine, read_bench_line


def read(text: str) -> BenchLine:
    return read_bench_line(shlex.split(text))


def names(text: str) -> list[str]:
    return [workload.name for workload in read(text).workloads(512, 128)]


def test_a_pasted_line_gives_flags_workloads_and_the_model() -> None:
    line = read(
        "-m model.gguf -fa on -ub 256 -ot 'exps=CPU;attn=CUDA0' -ngl 99 -mmp 0 -p 512 -n 128 -d 4096 -r 5 -o json"
    )
    assert line.flags == {"fa": "on", "ub": 256, "ot": "exps=CPU;attn=CUDA0", "ngl": 99, "mmap": 0}
    assert [workload.name for workload in line.workloads(512, 1)] == ["pp512.d4096", "tg128.d4096"]
    assert (line.model, line.repetitions, line.left_out) == ("model.gguf", 5, ("-o",))


@pytest.mark.parametrize(
    "text", ["-fa 1 -rtr 1", "--flash-attn 1 --run-time-repack=1", "fa=1 rtr=1", "flash_attn=1 -rtr", "-fa -rtr 1"]
)
def test_all_spellings_of_a_flag_are_one(text: str) -> None:
    assert read(text).flags == {"fa": 1, "rtr": 1}


def test_values_that_begin_with_a_dash_or_hold_commas_are_values() -> None:
    assert read("-ngl -1 -ser 6,0.5 -ts 3/1").flags == {"ngl": -1, "ser": "6,0.5", "ts": "3/1"}


def test_words_of_one_option_mean_the_flag_that_both_forks_have() -> None:
    assert read("-lm none").flags == read("-mmp 0").flags == {"mmap": 0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["pp512", "tg128"]),
        ("-n 32", ["pp512", "tg32"]),
        ("-p 0 -n 32,64", ["tg32", "tg64"]),
        ("-p 8 -n 0 -d 0,16", ["pp8", "pp8.d16"]),
        ("-p 0 -n 0 -pg 8,4 -gp 16,4", ["pp8+tg4", "tg4.d16"]),
        ("-p 8,8 -n 0", ["pp8"]),
    ],
)
def test_workloads_are_those_that_llama_bench_would_run(text: str, expected: list[str]) -> None:
    assert names(text) == expected


@pytest.mark.parametrize(
    ("text", "slug", "said"),
    [
        ("-fmo 1", "E-unknown-flag", "did you mean '-fmoe'?"),
        ("fmo=1", "E-unknown-flag", "did you mean 'fmoe'?"),
        ("-fa 0,1", "E-several-values", "BUILD+fa=0 BUILD+fa=1"),
        ("-ub 256 --ubatch-size 512", "E-several-values", "BUILD+ub=256 BUILD+ub=512"),
        ("word", "E-stray-word", "-fa 1 or fa=1"),
        ("-ub", "E-bad-flag-value", "'-ub' has no value"),
        ("-ub -fa 1", "E-bad-flag-value", "'-ub' has no value"),
        ("-p many", "E-bad-workload", "'-p many'"),
        ("-p -5", "E-bad-workload", "'-p -5'"),
        ("-n 99999999999", "E-bad-workload", "none above"),
        ("-pg 5", "E-bad-workload", "two numbers"),
        ("-r 0", "E-bad-flag-value", "above 0"),
    ],
)
def test_what_is_wrong_is_said_with_the_remedy(text: str, slug: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        read(text)
    assert caught.value.slug == slug
    assert said in str(caught.value)


def test_nothing_left_to_time_is_refused() -> None:
    with pytest.raises(BadInput, match="E-no-workload"):
        read("-p 0 -n 0").workloads(512, 128)


_FLAGS = [
    (spec, option)
    for fork in Fork
    for spec in specs(fork, Tool.LLAMA_BENCH).values()
    for spelling in spec.spellings
    for option in spelling.options
    if spec.kind in (FlagKind.SWITCH, FlagKind.INTEGER)
]


@given(st.sampled_from(_FLAGS), st.sampled_from(["0", "1"]), st.booleans())
def test_every_option_of_either_fork_is_read_as_its_flag(flag: tuple, value: str, joined: bool) -> None:
    spec, option = flag
    assert read_bench_line([f"{option}={value}"] if joined else [option, value]).flags == {spec.name: int(value)}


@given(st.lists(st.text(max_size=12), max_size=6))
def test_whatever_is_written_is_read_or_refused(words: list[str]) -> None:
    with suppress(BadInput):
        read_bench_line(words).workloads(512, 128)
