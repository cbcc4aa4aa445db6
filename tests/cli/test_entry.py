"""The command line in a process of its own: what the system refuses is one message, never a traceback."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from harness.models.gguf_format import MetaValue, TensorSpec
from harness.models.gguf_types import TYPES_BY_CODE
from harness.models.gguf_writer import write_gguf

COMMAND = [sys.executable, "-m", "harness.cli"]


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of shell in which ``"$@"`` is the command."""
    line = ["bash", "-c", script, "bash", *COMMAND]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        pytest.param('"$@" plan > /dev/full', 3, "E-os: [Errno 28] No space left on device", id="full disk"),
        pytest.param('"$@" models inspect --help > /dev/full', 3, "E-os: [Errno 28]", id="help to a full disk"),
        pytest.param('rmdir "$PWD"; "$@" plan', 3, "E-os: [Errno 2]", id="the current folder is gone"),
        pytest.param(f'"$@" report {"x" * 5000}', 2, "E-os: [Errno 36]", id="a name that no file has"),
        pytest.param('"$@" plan --format json | true', 0, "", id="the reader leaves"),
    ],
)
def test_what_the_system_refuses_is_one_message(tmp_path: Path, script: str, code: int, said: str) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    result = run(script, folder)
    assert result.returncode == code, result.stderr
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) == (1 if said else 0)


# Sends itself the signal where a module is looked for, as a Ctrl-C right after the start would come.
INTERRUPTED = """
import os, signal, sys
module = sys.argv.pop(1)
class Interrupting:
    def find_spec(self, name, *_):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
"""


def script() -> str:
    """What the installed program does."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    module, _, function = project["project"]["scripts"]["moe-harness"].partition(":")
    return f"from {module} import {function}; {function}()"


@pytest.mark.parametrize("started", [script(), "import runpy; runpy.run_module('harness.cli', run_name='__main__')"])
@pytest.mark.parametrize("module", ["click", "pydantic", "harness.cli.report"])
def test_ctrl_c_while_it_starts_is_quiet(tmp_path: Path, started: str, module: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED + started, module, "report", "x"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    said = result.stderr.removeprefix("\n")  # once click runs, it begins a new line after the terminal's ^C
    assert (result.returncode, said) == (130, "moe-harness: interrupted\n")


def test_what_a_model_file_says_of_itself_is_only_text(tmp_path: Path) -> None:
    """A file from the net can hold markup, escapes and line breaks in any name."""
    hostile = "[/x]\x1b]0;title\x07\x1b[31mred\nline"
    metadata = {
        "general.architecture": MetaValue("string", "qwen3moe"),
        "general.name": MetaValue("string", hostile),
    }
    tensor = TensorSpec(hostile, (32,), TYPES_BY_CODE[0])
    file = tmp_path / "hostile.gguf"
    with file.open("wb") as out:
        write_gguf(out, metadata, [tensor], lambda _: iter([bytes(128)]))
    result = run(f'"$@" models inspect --tensors {file}', tmp_path)
    assert result.returncode == 0, result.stderr
    assert "[/x]red line" in result.stdout
    assert "\x1b" not in result.stdout
