"""The ways in which ``peers.py`` runs the same cases: what is written into an empty folder, and the command to start.

Each way measures every case with the very arguments that the harness gives the engine for it alone; the harness itself
starts one process for all workloads of an arm. Nothing here is a rival's code: a loop, a test module and a check of
ReFrame as their manuals tell beginners to write them.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SHELL = """set -e
for case in {folder}/case-*.sh
do
    sh "$case" > "$case.out"
done
"""
_PYTEST = '''"""The cases, a process each."""

import pathlib
import subprocess

import pytest

CASES = sorted(pathlib.Path(__file__).parent.glob("case-*.sh"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_case(case):
    done = subprocess.run(["sh", str(case)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "ns" in done.stdout
    case.with_suffix(".sh.out").write_text(done.stdout)
'''
_REFRAME = '''"""The cases, a check each."""

import pathlib

import reframe as rfm
import reframe.utility.sanity as sn

FOLDER = pathlib.Path(__file__).parent
CASES = sorted(str(case) for case in FOLDER.glob("case-*.sh"))


@rfm.simple_test
class Case(rfm.RunOnlyRegressionTest):
    script = parameter(CASES)
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    local = True
    executable = "sh"

    @run_after("init")
    def say_what_runs(self):
        self.executable_opts = [self.script]
        self.keep_files = [f"{self.name}.out"]

    @sanity_function
    def ended_well(self):
        pathlib.Path(self.script + ".out").write_text(pathlib.Path(self.stagedir, str(self.stdout)).read_text())
        return sn.and_(sn.assert_eq(self.job.exitcode, 0), sn.assert_found("ns", self.stdout))
'''


@dataclass(frozen=True, slots=True)
class CaseCommand:
    """One case, as a process of its own.

    Attributes:
        argv: Its arguments.
        environment: Variables that it needs beside the usual ones.
        stdin: What it reads.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    stdin: str

    def script(self, reads: Path) -> str:
        """It as a script of the shell; what it reads lies in a file."""
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        command = shlex.join([*(["env", *variables] if variables else []), *self.argv])
        return f"exec {command} < {shlex.quote(str(reads))}\n"


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run all cases.

    Attributes:
        name: For the table.
        argv: What is started, in the folder.
    """

    name: str
    argv: tuple[str, ...]


Prepare = Callable[[Path, Path], Way]


def write_cases(folder: Path, cases: Sequence[CaseCommand]) -> None:
    """Write each case as a script."""
    for number, case in enumerate(cases):
        reads = folder / f"case-{number:02}.in"
        reads.write_text(case.stdin, encoding="utf-8")
        (folder / f"case-{number:02}.sh").write_text(case.script(reads), encoding="utf-8")


def outputs_of(folder: Path) -> list[str]:
    """What the cases printed, in their order; the harness leaves none of these."""
    return [file.read_text(encoding="utf-8") for file in sorted(folder.glob("case-*.sh.out"))]


def shell_loop(folder: Path, _: Path) -> Way:
    """A loop of the shell."""
    (folder / "loop.sh").write_text(_SHELL.format(folder=shlex.quote(str(folder))), encoding="utf-8")
    return Way("shell loop", ("sh", "loop.sh"))


def plain_pytest(folder: Path, _: Path) -> Way:
    """pytest, a subprocess for each case."""
    (folder / "test_cases.py").write_text(_PYTEST, encoding="utf-8")
    return Way("pytest, a process a case", (sys.executable, "-m", "pytest", "-q", "test_cases.py"))


def reframe(folder: Path, program: Path) -> Way:
    """ReFrame, one check at a time.

    Args:
        folder: Where to write.
        program: ``reframe``.
    """
    (folder / "checks.py").write_text(_REFRAME, encoding="utf-8")
    told = ("-c", "checks.py", "-r", "--exec-policy=serial", "--prefix", str(folder / "reframe"))
    return Way("ReFrame", (str(program), *told))


def harness(executor: str) -> Prepare:
    """The harness, one process start for all workloads of an arm."""

    def prepare(folder: Path, matrix: Path) -> Way:
        told = ("-q", "-m", "moe", f"--matrix={matrix}", f"--moe-executor={executor}", f"--moe-reports={folder}")
        name = "the harness" if executor == "local" else "the harness on Ray"
        return Way(name, (sys.executable, "-m", "pytest", *told, "-p", "no:cacheprovider"))

    return prepare


def journal_of(folder: Path) -> list[dict[str, Any]]:
    """What the harness wrote down."""
    lines = (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
