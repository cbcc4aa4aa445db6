"""Commands, refusals and files of the llama-bench engine."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest
from engine_support import MODEL, PP512, PP2048, PROFILE, TG64, fake_program, order, path_build, recording

from harness.domain.build import Fork
from harness.domain.errors import BadInput
from harness.domain.workload import Workload
from harness.engines.bench import BenchEngine
from harness.engines.bench_help import help_flags, identify_fork
from harness.engines.flags import complete

IK, MAINLINE = Fork.IK_LLAMA_CPP, Fork.LLAMA_CPP
DEEP = Workload(0, 64, 4096)
OVERRIDES = "ffn_up_exps=CPU;ffn_down_exps=CPU"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A build folder with a program and libraries, one of them under three names."""
    fake_program(tmp_path / "bin" / "llama-bench")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libllama.so.0.1").write_bytes(b"l")
    (tmp_path / "lib" / "libllama.so").symlink_to("libllama.so.0.1")
    (tmp_path / "bin" / "libggml.so").write_bytes(b"g")
    (tmp_path / "bin" / "libother.so").write_bytes(b"o")
    return tmp_path


def engine(fork: Fork, folder: Path, help_text: str = "") -> BenchEngine:
    return BenchEngine(path_build(fork, str(folder)), help_text)


def argv(fork: Fork, folder: Path, *workloads: Workload, help_text: str = "", **flags: object) -> list[str]:
    """The arguments after the program."""
    build = path_build(fork, str(folder))
    whole = complete(build, flags, options=help_flags(help_text) if help_text else None)
    bench = BenchEngine(build, help_text)
    asked = order(build, workloads, flags=whole)
    assert bench.refusal(asked) == ""
    return list(bench.command(asked).argv[1:])


def pairs(arguments: list[str]) -> dict[str, str]:
    return dict(itertools.pairwise(arguments))


def test_the_whole_command_of_llama_cpp(folder: Path) -> None:
    """Golden: every flag explicit, lines as format, overrides joined by semicolons."""
    assert (
        argv(MAINLINE, folder, PP512, PP2048, TG64, ot=OVERRIDES, fa="on", ngl=99)
        == (
            f"-o jsonl -m {MODEL} -r 5 -t 16 -p 512,2048 -n 64 -b 2048 -ub 512 -mg 0 -ts 0 -nkvo 0 -embd 0 -fa 1"
            f" -ctk f16 -ctv f16 -ngl 99 -sm layer -lm mmap -ot {OVERRIDES} -ncmoe 0 -nopo 0 --repack 1 --no-host 0"
            " -lzm auto --poll 50 --cpu-strict 0"
        ).split()
    )


def test_the_whole_command_of_ik_llama_cpp(folder: Path) -> None:
    """Golden: every flag explicit, one array as format, overrides joined by commas, mmap off with -rtr 1."""
    assert (
        argv(IK, folder, PP512, PP2048, TG64, ot=OVERRIDES, rtr=1, ngl=99)
        == (
            f"-o json -m {MODEL} -r 5 -w 1 -t 16 -p 512,2048 -n 64 -b 2048 -ub 512 -mg 0 -ts 0 -nkvo 0 -embd 0 -fa 1"
            f" -ctk f16 -ctv f16 -ngl 99 -sm layer -mmp 0 -ot {OVERRIDES.replace(';', ',')} --n-cpu-moe 0 -rtr 1"
            " -fmoe 1 -ger 0 -no-fug 0 -no-ooae 0 -amb 0 -mla 3 -mqkv 0 -muge 0 -ser -1,0 -gr 1 -thp 0 -rcache 0 -sas 0"
            " --max-gpu 0 --fit 0 --fit-margin 0"
        ).split()
    )


@pytest.mark.parametrize("fork", list(Fork))
def test_tests_that_are_not_asked_for_are_switched_off(fork: Fork, folder: Path) -> None:
    """Left out, -p and -n mean 512 and 128."""
    assert pairs(argv(fork, folder, PP512))["-n"] == "0"
    assert pairs(argv(fork, folder, TG64))["-p"] == "0"


@pytest.mark.parametrize("fork", list(Fork))
def test_prompt_and_generation_at_once_is_pg(fork: Fork, folder: Path) -> None:
    arguments = pairs(argv(fork, folder, Workload(512, 128)))
    assert (arguments["-p"], arguments["-n"], arguments["-pg"]) == ("0", "0", "512,128")


def test_depth_is_d_in_llama_cpp_and_gp_in_ik_llama_cpp(folder: Path) -> None:
    mainline = pairs(argv(MAINLINE, folder, DEEP, TG64))
    assert (mainline["-n"], mainline["-d"]) == ("64", "4096,0")
    ik = pairs(argv(IK, folder, DEEP, TG64))
    assert (ik["-n"], ik["-gp"]) == ("64", "4096,64")


@pytest.mark.parametrize("load", [Workload(512, 0, 4096), Workload(512, 64, 4096)])
def test_a_prompt_at_a_depth_is_refused_by_ik_llama_cpp_only(load: Workload, folder: Path) -> None:
    assert load.name in engine(IK, folder).refusal(order(path_build(IK), [load]))
    assert engine(MAINLINE, folder).refusal(order(path_build(MAINLINE), [load])) == ""


def test_declared_threads_outweigh_the_slots(folder: Path) -> None:
    assert pairs(argv(IK, folder, TG64, t=3))["-t"] == "3"
    assert pairs(argv(IK, folder, TG64))["-t"] == "16"


def test_a_bare_option_is_said_by_standing_there(folder: Path) -> None:
    assert "--defer-experts" in argv(IK, folder, TG64, defer_experts=1)
    assert "--defer-experts" not in argv(IK, folder, TG64)


def test_options_that_the_build_does_not_know_are_left_out(folder: Path) -> None:
    """The complete set made with the same knowledge has what their absence means."""
    text = recording(IK, "help.txt")
    older = "\n".join(line for line in text.splitlines() if "muge" not in line)
    assert "-muge" in argv(IK, folder, TG64, help_text=text)
    assert "-muge" not in argv(IK, folder, TG64, help_text=older)


def test_a_flag_that_the_build_does_not_know_is_refused_before_it_runs(folder: Path) -> None:
    older = "\n".join(line for line in recording(IK, "help.txt").splitlines() if "muge" not in line)
    build = path_build(IK, str(folder))
    asked = order(build, [TG64], flags=complete(build, {"muge": 1}))
    assert "-muge" in engine(IK, folder, older).refusal(asked)
    assert engine(IK, folder, recording(IK, "help.txt")).refusal(asked) == ""


def test_older_llama_cpp_is_told_mmap_by_its_older_name_and_json_for_want_of_lines(folder: Path) -> None:
    older = (
        recording(MAINLINE, "help.txt").replace("-lm, --load-mode <auto|", "-mmp, --mmap <0|1> <").replace("jsonl|", "")
    )
    arguments = pairs(argv(MAINLINE, folder, TG64, help_text=older))
    assert arguments["-mmp"] == "1"
    assert arguments["-o"] == "json"
    assert "-lm" not in arguments


def test_a_depth_that_the_build_does_not_know_is_refused(folder: Path) -> None:
    older = recording(MAINLINE, "help.txt").replace("-d, --n-depth", "  ")
    build = path_build(MAINLINE, str(folder))
    asked = order(build, [DEEP], flags=complete(build, {}, options=help_flags(older)))
    assert "-d" in engine(MAINLINE, folder, older).refusal(asked)


def test_outputs_no_workload_and_a_comma_in_the_model_are_refused(folder: Path) -> None:
    build = path_build(IK, str(folder))
    bench = engine(IK, folder)
    assert "logits" in bench.refusal(order(build, [TG64], outputs=PROFILE))
    assert "workload" in bench.refusal(order(build, []))
    assert "commas" in bench.refusal(order(build, [TG64], model=Path("a,b.gguf")))


def test_what_is_hashed_is_the_program_and_each_library_once(folder: Path) -> None:
    names = [path.name for path in engine(IK, folder).locate()]
    assert names == ["llama-bench", "libggml.so", "libllama.so.0.1"]


def test_the_libraries_that_were_hashed_are_put_first_for_the_loader(folder: Path) -> None:
    """A wrong library with the right name elsewhere would be another build."""
    build = path_build(IK, str(folder))
    command = engine(IK, folder).command(order(build, [TG64], environment=(("A", "b"),)))
    assert command.environment["LD_LIBRARY_PATH"].split(os.pathsep) == [str(folder / "bin"), str(folder / "lib")]
    assert command.environment["A"] == "b"
    help_environment = engine(IK, folder).help_command({"A": "b"}).environment
    assert help_environment == command.environment
    assert engine(IK, folder).help_command().argv == (str(folder / "bin" / "llama-bench"), "--help")


def test_declared_library_folders_are_searched_after_the_builds_own(folder: Path) -> None:
    """A GPU build may need them; they must not bring in another build's libraries."""
    asked = order(path_build(IK), [TG64], environment=(("LD_LIBRARY_PATH", "/opt/cuda/lib"),))
    searched = engine(IK, folder).command(asked).environment["LD_LIBRARY_PATH"]
    assert searched.split(os.pathsep) == [str(folder / "bin"), str(folder / "lib"), "/opt/cuda/lib"]


@pytest.mark.parametrize("given", ["", "bin", "bin/llama-bench"])
def test_a_build_is_given_by_its_folder_or_its_program(given: str, folder: Path) -> None:
    assert engine(IK, folder / given).locate()[0] == folder / "bin" / "llama-bench"


def slug_of_locate(path: Path) -> str:
    with pytest.raises(BadInput) as caught:
        engine(IK, path).locate()
    assert str(path) in caught.value.message
    assert caught.value.hint
    assert caught.value.where == "builds.b"
    return caught.value.slug


def test_a_script_is_accepted_and_said_to_hide_what_it_starts(tmp_path: Path) -> None:
    program = tmp_path / "llama-bench"
    fake_program(program, content=b"#!/bin/sh\n")
    assert engine(IK, program).locate() == (program.resolve(),)
    assert "script" in engine(IK, program).opaque()
    fake_program(program)
    assert engine(IK, program).opaque() == ""


def test_a_program_whose_libraries_lie_elsewhere_is_said_to_hide_them(folder: Path) -> None:
    """Copied out of its build folder, a program goes on using the libraries there, whatever they become."""
    program = folder / "bin" / "llama-bench"
    fake_program(program, content=b"\x7fELF\0libllama.so\0libggml.so\0libc.so.6\0libggml-\0")
    assert engine(IK, program).opaque() == ""
    (folder / "lib" / "libllama.so").unlink()
    assert engine(IK, program).opaque() == "libllama.so of llama-bench lies elsewhere: not hashed"


def test_a_missing_program_and_a_plain_file_are_refused(tmp_path: Path) -> None:
    program = tmp_path / "llama-bench"
    assert slug_of_locate(tmp_path) == "E-build-missing"
    assert slug_of_locate(program) == "E-build-missing"
    fake_program(program, content=b"not a program\n")
    assert slug_of_locate(program) == "E-build-not-a-program"
    program.chmod(0o644)
    assert slug_of_locate(program) == "E-build-not-executable"


def test_a_program_of_the_other_fork_is_refused(folder: Path) -> None:
    """Told from its help, not from a crash at night."""
    with pytest.raises(BadInput) as caught:
        engine(IK, folder).informed(recording(MAINLINE, "help.txt")).locate()
    assert caught.value.slug == "E-wrong-fork"
    assert engine(IK, folder, recording(IK, "help.txt")).locate()


def test_another_program_of_the_fork_is_refused(folder: Path) -> None:
    """Such as llama-cli, which shares many options."""
    with pytest.raises(BadInput) as caught:
        engine(
            MAINLINE, folder, "usage:\n  -m FNAME\n  -p, --prompt TEXT\n  --poll N\n  -r, --reverse-prompt X\n"
        ).locate()
    assert caught.value.slug == "E-not-llama-bench"
    assert caught.value.hint


@pytest.mark.parametrize("fork", list(Fork))
def test_the_fork_is_known_by_its_help_and_by_the_usage_after_a_bad_flag(fork: Fork) -> None:
    assert identify_fork(recording(fork, "help.txt")) is fork
    assert identify_fork(recording(fork, "badflag.txt")) is fork


def test_the_fork_of_other_texts_is_unknown() -> None:
    assert identify_fork("") is None
    assert identify_fork("usage: llama-cli\n  -m FNAME\n") is None
    assert identify_fork(recording(IK, "help.txt") + recording(MAINLINE, "help.txt")) is None


def test_every_option_of_a_help_line_is_found() -> None:
    listed = help_flags(
        "  -ot --override-tensor <x>\n  -hf, -hfr, --hf-repo <u>\n     --print-overrides <0|1>\nnot -this\n"
    )
    assert listed == {"-ot", "--override-tensor", "-hf", "-hfr", "--hf-repo", "--print-overrides"}
