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
