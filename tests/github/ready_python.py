"""Serves commands of the harness from one process that has everything imported, each in a fork of its own.

The steps of workflows start the harness many times; what they start here is the real thing, only its imports are done.
``python ready_python.py SOCKET`` serves; ``stand_in`` (below) is installed as python, pip, moe-harness and gh.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys

NEEDED = (
    "pytest",
    "harness.cli.main",
    "harness.matrix_plugin",
    *(f"harness.cli.{name}" for name in ("builds", "gate", "github", "history", "junit", "report")),
)
"""What the forks need: it is read before them, once."""

STAND_IN = """#!{python} -IS
import json, os, socket, sys
name, here = os.path.basename(sys.argv[0]), os.path.dirname(os.path.abspath(sys.argv[0]))
words = sys.argv[1:]
if name.startswith("python") and words[:2] == ["-m", "venv"]:
    folder = os.path.join(words[2], "bin")
    os.makedirs(folder)
    for each in ("python", "pip", "moe-harness"):
        os.symlink(os.path.realpath(sys.argv[0]), os.path.join(folder, each))
    sys.exit(0)
if name in ("pip", "gh"):
    with open({log!r}, "a") as log:
        log.write(json.dumps([name, *words]) + "\\n")
    if name == "pip":
        sys.exit(0)
    rules = json.load(open({answers!r}))
    for part, answer in rules.items():
        if part in " ".join(words):
            if "make" in answer:
                os.makedirs(words[words.index("--dir") + 1])
                open(os.path.join(words[words.index("--dir") + 1], answer["make"]), "w").close()
            sys.stdout.write(answer.get("out", ""))
            sys.exit(answer.get("code", 0))
    sys.exit(1)
with socket.socket(socket.AF_UNIX) as line:
    line.connect({address!r})
    told = json.dumps(dict(name=name, words=words, cwd=os.getcwd(), env=dict(os.environ))).encode()
    socket.send_fds(line, [len(told).to_bytes(4, "big")], [0, 1, 2])
    line.sendall(told)
    sys.exit(int(line.recv(16) or b"99"))
"""


def serve(address: str) -> None:
    """Until the one who started us is gone: our standard input ends with it."""
    for module in NEEDED:
        importlib.import_module(module)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen()
        print("ready", flush=True)  # noqa: T201 - the word that we are
        if os.fork() == 0:
            sys.stdin.read()
            os.killpg(0, 15)
        while True:
            line, _ = door.accept()
            if os.fork() == 0:
                door.close()
                _one(line)
            line.close()
            _reap()


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _one(line: socket.socket) -> None:
    """Serve one command in a fork of the fork, which can wait for it."""
    length, descriptors, _, _ = socket.recv_fds(line, 4, 3)
    raw = b""
    while len(raw) < int.from_bytes(length, "big"):
        raw += line.recv(65536)
    told = json.loads(raw)
    child = os.fork()
    if child == 0:
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        os.chdir(told["cwd"])
        os.environ.clear()
        os.environ.update(told["env"])
        sys.argv = [told["name"], *told["words"]]
        _run(told["name"], told["words"])
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    line.sendall(str(code).encode())
    os._exit(0)


def _run(name: str, words: list[str]) -> None:
    code: object = 0
    try:
        if name == "moe-harness":
            from harness.cli.main import entry  # noqa: PLC0415

            entry(words)
        else:
            import pytest  # noqa: PLC0415

            assert words[:2] == ["-m", "pytest"], words
            code = int(pytest.main(words[2:]))
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    os.setpgid(0, 0)
    serve(sys.argv[1])
