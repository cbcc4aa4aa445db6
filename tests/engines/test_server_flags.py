"""Flags as servers spell them: every one said, none that the server would take for another."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from engine_support import RECORDINGS, path_build

from harness.domain.build import Fork, Tool
from harness.domain.flags import FlagValue
from harness.engines.flag_spec import FlagKind
from harness.engines.flags import complete, specs
from harness.engines.server_flags import server_argv, server_flags, server_help_options, unsayable

HELP = (RECORDINGS / "llama_cpp-b11549.server_help.txt").read_text(encoding="utf-8")
OPTIONS = server_help_options(HELP)
IK_HELP = (RECORDINGS / "ik_llama_cpp-8337e4cd.perplexity_help.txt").read_text(encoding="utf-8")
STANDIN = Path(__file__).parent.parent / "standin"
WITHOUT_A_GPU = frozenset({"-b", "-ub", "-fa", "-ctk", "-ctv", "-ot", "--no-mmap", "-rtr", "-no-fmoe", "-ger", "-amb"})
"""Some of what ik_llama.cpp lists where it was compiled for the CPU (read in common.cpp of 8337e4cd, not recorded)."""
SAID = {"fa": "0", "mmap": 0, "ot": "exps=CPU;ffn_up=CPU", "ctk": "q8_0", "ncmoe": 2, "b": 64, "ub": 32, "nkvo": 1}


def _argv(fork: Fork, options: frozenset[str] | None = None, **declared: FlagValue) -> tuple[str, ...]:
    flags = complete(path_build(fork), declared)
    assert unsayable(fork, flags, options) == ""
    return server_argv(fork, flags, options)


def _after(argv: tuple[str, ...], option: str) -> str:
    return argv[argv.index(option) + 1]


def test_options_are_found_at_the_margin_and_indented() -> None:
    assert {"-ngl", "--gpu-layers", "-nkvo", "--no-kv-offload", "-lm", "--cache-ram", "-fit"} <= OPTIONS
    indented = "general:\n\n  -no-fmoe, --no-fused-moe  off\n         --no-mmap  no map\n  - isolate: no option"
    assert server_help_options(indented) == {"-no-fmoe", "--no-fused-moe", "--no-mmap"}


@pytest.mark.parametrize(("fork", "text"), [(Fork.LLAMA_CPP, HELP), (Fork.IK_LLAMA_CPP, IK_HELP)])
def test_a_real_help_lists_every_option_that_is_needed(fork: Fork, text: str) -> None:
    """Or its build would be refused for want of an option that its parser takes; ik_llama.cpp's is of a CPU build."""
    options = server_help_options(text)
    needed = {name: way for name, (way, *_) in server_flags(fork).items() if not way.for_gpus}
    assert {name for name, way in needed.items() if not way.options <= options} == set()


@pytest.mark.parametrize("fork", list(Fork))
def test_every_flag_of_a_bench_has_a_spelling_or_a_reason(fork: Fork) -> None:
    """Both ends of every switch are said differently, or one is refused with words; nothing is dropped in silence."""
    table = specs(fork, Tool.LLAMA_BENCH)
    assert unsayable(fork, complete(path_build(fork), {}), None) == "", "the defaults can be said"
    for name in (name for name, spec in table.items() if spec.kind is FlagKind.SWITCH):
        off, on = (complete(path_build(fork), {name: value}) for value in (0, 1))
        refused = unsayable(fork, off, None) or unsayable(fork, on, None)
        assert refused or server_argv(fork, off, None) != server_argv(fork, on, None), name


def test_mainline_is_told_everything_in_its_own_words() -> None:
    argv = _argv(Fork.LLAMA_CPP, OPTIONS, **SAID, dev="CUDA0/CUDA1", ts="3/1", ngl=-1, repack=0)
    assert (_after(argv, "-fa"), _after(argv, "-lm"), _after(argv, "-ngl")) == ("off", "none", "auto")
    assert (_after(argv, "-ot"), _after(argv, "-ts")) == ("exps=CPU,ffn_up=CPU", "3,1")
    assert (_after(argv, "-dev"), _after(argv, "-ncmoe")) == ("CUDA0,CUDA1", "2")
    assert {"-nkvo", "--no-repack", "--op-offload"} <= set(argv)
    assert "-kvo" in _argv(Fork.LLAMA_CPP, OPTIONS)


def test_older_servers_of_mainline_map_files_with_other_words() -> None:
    older = (OPTIONS - {"-lm", "--load-mode"}) | {"--mmap", "--no-mmap"}
    assert "--no-mmap" in _argv(Fork.LLAMA_CPP, older, mmap=0)
    assert "--mmap" in _argv(Fork.LLAMA_CPP, older)


def test_ik_is_told_everything_in_its_own_words() -> None:
    argv = _argv(Fork.IK_LLAMA_CPP, None, **{**SAID, "rtr": 1}, fmoe=0, gr=0, amb=512, ser="6,0.5", ger=1)
    assert {"-rtr", "-no-fmoe", "-no-gr", "-ger", "--no-mmap", "-nkvo"} <= set(argv)
    assert (_after(argv, "-fa"), _after(argv, "-amb"), _after(argv, "-ser")) == ("off", "512", "6,0.5")
    plain = _argv(Fork.IK_LLAMA_CPP)
    assert not {"-rtr", "-no-fmoe", "--no-mmap", "-ger", "-nkvo", "-ser"} & set(plain), "said by leaving them out"
    assert (_after(plain, "-fa"), _after(plain, "-amb")) == ("on", "0"), "defaults moved: they are said"


def test_options_of_gpus_are_left_out_where_a_build_has_none() -> None:
    everything = WITHOUT_A_GPU | {"-mla", "-gr", "-no-gr", "-numa"}
    argv = _argv(Fork.IK_LLAMA_CPP, everything)
    assert not {"-ngl", "-sm", "-mg", "-ts"} & set(argv)


@pytest.mark.parametrize(
    ("fork", "declared", "reason"),
    [
        (Fork.IK_LLAMA_CPP, {"amb": 64}, "the server raises it to 128"),
        (Fork.IK_LLAMA_CPP, {"rcache": 1}, "takes it and ignores it"),
        (Fork.IK_LLAMA_CPP, {"embd": 1}, "completes no prompts"),
        (Fork.LLAMA_CPP, {"embd": 1}, "completes no prompts"),
    ],
)
def test_values_that_a_server_changes_are_refused(fork: Fork, declared: dict[str, FlagValue], reason: str) -> None:
    assert reason in unsayable(fork, complete(path_build(fork), declared), None)


def test_a_flag_that_a_server_does_not_know_is_named() -> None:
    flags = complete(path_build(Fork.IK_LLAMA_CPP), {"thp": 1})
    assert "does not know -thp" in unsayable(Fork.IK_LLAMA_CPP, flags, WITHOUT_A_GPU)
    assert "does not know -mla" in unsayable(Fork.IK_LLAMA_CPP, flags, WITHOUT_A_GPU)


def _parsed(argv: tuple[str, ...]) -> dict[str, Any]:
    """What the real parser of the wheel's server makes of arguments."""
    code = f"""
import json, sys
sys.path.insert(0, {str(STANDIN)!r})
import wheel_server
params = wheel_server.parsed(["llama-server", "--port", "1", "-c", "512", *{list(argv)!r}])
print(json.dumps({{name: getattr(params, name) for name in (
    "n_batch", "n_ubatch", "no_kv_offload", "no_op_offload", "no_extra_bufts", "n_gpu_layers", "main_gpu")}}
    | {{"fa": int(params.flash_attn_type), "load": int(params.load_mode), "ctk": int(params.cache_type_k)}}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_real_parser_understands_what_is_said() -> None:
    """The server's own argument parser, out of the wheel: each value arrives where it should."""
    pytest.importorskip("xllamacpp")
    said = {key: value for key, value in SAID.items() if key != "ot"}
    found = _parsed(_argv(Fork.LLAMA_CPP, OPTIONS, **said, repack=0, nopo=1, ngl=7))  # type: ignore[arg-type]
    assert (found["n_batch"], found["n_ubatch"], found["n_gpu_layers"]) == (64, 32, 7)
    assert (found["fa"], found["load"]) == (0, 0)
    assert found["no_kv_offload"]
    assert found["no_op_offload"]
    assert found["no_extra_bufts"]
    other = _parsed(_argv(Fork.LLAMA_CPP, OPTIONS))
    assert (other["fa"], other["load"], other["no_kv_offload"], other["no_extra_bufts"]) == (1, 1, False, False)
    assert other["ctk"] != found["ctk"]
