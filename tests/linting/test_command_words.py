"""A command is split as a shell splits it, and never run."""

from __future__ import annotations

import shlex
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.errors import BadInput
from harness.linting.command_words import Program, read_words, split_command


def test_variables_program_arguments_and_what_the_shell_takes() -> None:
    """Each part is kept as it stood."""
    line = "CUDA_VISIBLE_DEVICES=0 X='a b' /opt/llama/bin/llama-server -m 'my model.gguf' -ngl 99 > log.txt 2>&1"
    words = split_command(line)
    assert words.before == ("CUDA_VISIBLE_DEVICES=0", "X=a b")
    assert words.program == "/opt/llama/bin/llama-server"
    assert words.kind is Program.SERVER
    assert words.arguments == ("-m", "my model.gguf", "-ngl", "99")
    assert words.after == "> log.txt 2>&1"
    assert words.line(words.arguments) == line


def test_lines_are_continued_with_a_backslash() -> None:
    """As in every guide."""
    assert split_command("llama-server \\\n  -m m.gguf \\\n  -ngl 99").arguments == ("-m", "m.gguf", "-ngl", "99")


@pytest.mark.parametrize("before", ["env A=1", "nice -n 5", "numactl --interleave=all", "sudo", "taskset -c 0-7"])
def test_programs_that_start_others_are_kept(before: str) -> None:
    """What comes before is not judged."""
    words = split_command(f"{before} llama-cli -m m.gguf")
    assert words.kind is Program.CLI
    assert words.line(words.arguments) == f"{before} llama-cli -m m.gguf"


@pytest.mark.parametrize(
    ("line", "slug"),
    [
        ("", "E-no-command"),
        ("A=1", "E-no-command"),
        ("-m x", "E-no-command"),
        ("lama-server -m x", "E-unknown-program"),
        ("python llama-server -m x", "E-unknown-program"),
        ("llama-server -m 'x", "E-shell-quoting"),
        ("llama-server -m x\\", "E-shell-quoting"),
        ("llama-server -ot blk.(1|2).ffn=CPU", "E-shell-quoting"),
        ("llama-server -ot blk.1.|blk.2.=CPU", "E-shell-quoting"),
        ("llama-bench -ot a=CPU;b[12].=CPU", "E-shell-quoting"),
    ],
)
def test_what_is_no_command_is_refused(line: str, slug: str) -> None:
    """With a word on what to do."""
    with pytest.raises(BadInput) as caught:
        split_command(line)
    assert caught.value.slug == slug


WINDOWS = [
    (r"llama-server.exe -m C:\models\Qwen3.gguf -fmoe", "llama-server.exe", r"C:\models\Qwen3.gguf"),
    (r"C:\llama\llama-server.exe -m m.gguf", r"C:\llama\llama-server.exe", "m.gguf"),
    (r".\llama-server.exe -m models\m.gguf", r".\llama-server.exe", r"models\m.gguf"),
    (r'llama-server -m "D:\my models\m.gguf" --log-file D:\log', "llama-server", r"D:\my models\m.gguf"),
]


@pytest.mark.parametrize(("line", "program", "model"), WINDOWS)
def test_lines_of_windows_keep_their_backslashes(line: str, program: str, model: str) -> None:
    """Read, written and read again; and as whole words."""
    words = split_command(line)
    assert (words.program, words.kind, words.arguments[:2]) == (program, Program.SERVER, ("-m", model))
    written = words.line(words.arguments)
    assert "'" not in written
    assert split_command(written).arguments == words.arguments
    assert read_words([words.program, *words.arguments]).kind is Program.SERVER


@pytest.mark.parametrize("word", [r"models\m.gguf", r"blk\.\d+\.ffn=CPU"])
def test_a_backslash_that_a_shell_would_eat_is_refused(word: str) -> None:
    """Another path or pattern would be judged; quoted it is kept, and before what needs it it is the shell's."""
    with pytest.raises(BadInput, match="E-shell-quoting: a shell eats the backslash"):
        split_command(f"llama-server -x {word}")
    assert split_command(f"llama-server -x '{word}'").arguments == ("-x", word)
    assert split_command(r"llama-server -m my\ model\(1\).gguf").arguments == ("-m", "my model(1).gguf")
    assert split_command(r"llama-server -m C:\\m.gguf").arguments == ("-m", r"C:\m.gguf")


def test_a_container_is_told_to_leave_out() -> None:
    """Its image names no program."""
    with pytest.raises(BadInput, match="begin with the program that runs in the container"):
        split_command("docker run --gpus all ghcr.io/ggml-org/llama.cpp:server -m m.gguf")


@pytest.mark.parametrize(
    "after", ["| tee log", "; echo done", "&& llama-bench -h", "& sleep 1", "2> err", "> out 2>&1"]
)
def test_what_follows_is_the_shells(after: str) -> None:
    """Pipes, redirections and the next command stay as they are."""
    words = split_command(f"llama-server -m x {after}")
    assert words.arguments == ("-m", "x")
    assert words.after == after


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=8), max_size=6))
def test_words_survive_splitting_and_writing(arguments: list[str]) -> None:
    """What is written is what a shell reads back."""
    words = read_words(["llama-server", *arguments])
    assert tuple(shlex.split(words.line(words.arguments))) == ("llama-server", *arguments)
    line = shlex.join(["llama-server", *arguments])
    if "\\\n" not in line:
        assert split_command(line).arguments == tuple(arguments)


@given(st.text(max_size=60))
def test_no_text_ends_in_a_traceback(text: str) -> None:
    """A refusal, or words."""
    with suppress(BadInput):
        assert split_command(f"llama-server {text}").kind is Program.SERVER
