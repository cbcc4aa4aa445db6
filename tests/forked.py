"""Commands of the harness in processes of their own whose imports are done: forks of one that has made them."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

import pytest

_MODULES = ("pytest", "harness.cli.main", "harness.cli.ab", "harness.matrix_plugin", "scipy.stats")
_PATIENCE_S = 240


def run_forked(
    program: str, *arguments: str, cwd: Path | None = None, stdin: str = "", env: Mapping[str, str] | None = None
) -> CompletedProcess[str]:
    """Run a program as ``subprocess.run`` would, less the second and a half of its start.

    Args:
        program: ``moe-harness`` or ``pytest``.
        arguments: Of its command line.
        cwd: Where it runs; ``None``: where we do.
        stdin: What it reads.
        env: Its whole environment; ``None``: ours.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_MODULES))
    with TemporaryDirectory() as kept:
        files = [Path(kept, name) for name in ("stdin", "stdout", "stderr")]
        files[0].write_text(stdin)
        told = (program, arguments, cwd or Path.cwd(), dict(os.environ if env is None else env), files)
        process = context.Process(target=_run, args=told)
        process.start()
        process.join(_PATIENCE_S)
        code = process.exitcode
        if code is None:
            process.kill()
            process.join()
        out, err = (file.read_text() if file.exists() else "" for file in files[1:])
        if code is None:
            pytest.fail(f"{program} {arguments} did not end: {out}{err}")
        return CompletedProcess([program, *arguments], code, out, err)


def _run(program: str, arguments: tuple[str, ...], cwd: Path, env: dict[str, str], files: list[Path]) -> None:
    for number, file in enumerate(files):
        opened = os.open(file, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = os.fdopen(0)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = [program, *arguments]
    try:
        if program == "pytest":
            sys.exit(int(pytest.main(list(arguments))))

        from harness.cli.main import entry  # noqa: PLC0415 - read already, by the process that this one is a fork of

        entry()
    finally:
        atexit._run_exitfuncs()  # a fork of multiprocessing ends without: a driver of Ray leaves its cluster there
