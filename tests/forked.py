"""Commands of the harness in processes of their own whose imports are done: forks of one that has made them."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

import pytest

_MODULES = ("harness.cli.main", "harness.cli.ab", "scipy.stats")
_PATIENCE_S = 120


def moe_harness(folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> CompletedProcess[str]:
    """Run ``moe-harness`` as ``subprocess.run`` would, less the second and a half of its start.

    Args:
        folder: Where it runs.
        arguments: Of the command line.
        env: The whole environment; ``None``: ours.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_MODULES))
    with TemporaryDirectory() as kept:
        out, err = Path(kept, "out"), Path(kept, "err")
        process = context.Process(target=_run, args=(folder, arguments, dict(env or os.environ), out, err))
        process.start()
        process.join(_PATIENCE_S)
        code = process.exitcode
        if code is None:
            process.kill()
            process.join()
            pytest.fail(f"moe-harness {arguments} did not end: {out.read_text()}{err.read_text()}")
        return CompletedProcess(["moe-harness", *arguments], code, out.read_text(), err.read_text())


def _run(folder: Path, arguments: tuple[str, ...], env: dict[str, str], out: Path, err: Path) -> None:
    for number, file in ((1, out), (2, err)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["moe-harness", *arguments]

    from harness.cli.main import entry  # noqa: PLC0415 - read already, by the process that this one is a fork of

    entry()
