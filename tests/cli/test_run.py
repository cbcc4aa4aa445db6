"""``moe-harness run`` as a user meets it: in a process of its own, in a folder that is no checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from forked import run_forked

MATRIX = """
name = "small"
[builds.standin]
fork = "ik_llama.cpp"
path = "bin"
[models.file]
path = "model.gguf"
[flags]
fa = [0, 1]
[[workloads]]
pp = 8
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with a matrix that can be planned; its engine and model are not there."""
    (tmp_path / "matrices").mkdir()
    (tmp_path / "matrices" / "local.toml").write_text(MATRIX)
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_forked("moe-harness", "run", "--executor=local", *arguments, cwd=folder)


@pytest.mark.parametrize("arguments", [["--select=fa=0"], ["local", "-k", "pp8"]])
def test_a_matrix_is_run_and_its_errors_are_infrastructure_or_bad_input(folder: Path, arguments: list[str]) -> None:
    result = run(folder, *arguments)
    assert result.returncode == 3, result.stdout + result.stderr
    assert "Traceback" not in result.stdout + result.stderr
    assert (folder / "moe-reports" / "junit.xml").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["loca"], "did you mean 'local'?"),
        (["--select=fb=0"], "E-nothing-selected"),
        (["local", "-k", "nothing_like_this"], "2 deselected"),
    ],
)
def test_bad_input_is_2_with_one_message(folder: Path, arguments: list[str], said: str) -> None:
    result = run(folder, *arguments)
    assert result.returncode == 2
    assert said in result.stdout + result.stderr
    assert "Traceback" not in result.stdout + result.stderr


def test_collecting_only_says_nothing_about_an_earlier_run(folder: Path) -> None:
    assert run(folder).returncode == 3
    collected = run(folder, "local", "--collect-only", "-q")
    assert "throughput/file/standin+fa=0/pp8@any" in collected.stdout
    assert collected.returncode == 0
    assert "warning" not in collected.stdout


def test_a_failed_test_of_the_project_itself_is_a_finding(folder: Path) -> None:
    """The journal does not know of it; here no engine is there either, which is not_applicable on purpose."""
    matrix = folder / "matrices" / "local.toml"
    matrix.write_text(matrix.read_text() + "[node_classes.none]\nmin_cores = 100000\n")
    assert run(folder).returncode == 0
    (folder / "test_own.py").write_text("import pytest\n@pytest.mark.moe\ndef test_it(): assert False\n")
    assert run(folder, "local", ".").returncode == 1
