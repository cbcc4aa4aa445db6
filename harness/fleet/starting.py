"""Starting a node: Ray's own ``ray start``, watched until the cluster knows the node."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import psutil

from harness.domain.errors import Infrastructure
from harness.fleet.command import NodeStart, start_arguments, start_environment
from harness.fleet.nodes_here import NodeHere, end, folder_here, remember

READY_S = 120.0
_POLL_S = 0.3
NONCE = "moe/start"
"""A label by which a node is recognised in the cluster's list."""


def start_detached(
    node: NodeStart, token: Mapping[str, str], knows: Callable[[str, str], bool], ready_s: float = READY_S
) -> NodeHere:
    """Start a node that goes on when this process ends.

    Args:
        node: The node.
        token: Variables that name the token's file.
        knows: Whether the cluster at an address has a live node with such a value of the label `NONCE`.
        ready_s: Seconds that it may take.

    Raises:
        Infrastructure: ``E-fleet-start``: Ray ends at once, or is not ready in time; nothing of it is left.
    """
    nonce = secrets.token_hex(8)
    marked = replace(node, labels={**node.labels, NONCE: nonce})
    log = _log_file()
    with log.open("wb") as opened:
        process = subprocess.Popen(
            _command(marked),
            env=start_environment(marked, token, os.environ),
            stdin=subprocess.DEVNULL,
            stdout=opened,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd="/",
        )
    here = NodeHere(process.pid, psutil.Process(process.pid).create_time(), node.address, not node.head, str(log))
    remember(here)
    try:
        _await(node.address, nonce, process, knows, ready_s, log)
    except BaseException:  # Ctrl-C too: what is not ready is nobody's
        end(here)
        raise
    return here


def _await(  # noqa: PLR0917 - what is waited for, and how long
    address: str,
    nonce: str,
    process: subprocess.Popen[bytes],
    knows: Callable[[str, str], bool],
    ready_s: float,
    log: Path,
) -> None:
    give_up = time.monotonic() + ready_s
    while not knows(address, nonce):
        if process.poll() is not None:
            raise _failed("ended at once", log)
        if time.monotonic() > give_up:
            raise _failed(f"was not ready after {ready_s:.0f} s", log)
        time.sleep(_POLL_S)


def become(node: NodeStart, token: Mapping[str, str]) -> NoReturn:
    """Become the node: for a service manager, which watches and restarts this process."""
    remember(NodeHere(os.getpid(), psutil.Process().create_time(), node.address, not node.head, ""))
    command = _command(node)
    os.execve(command[0], command, start_environment(node, token, os.environ))  # noqa: S606 - Ray's own program


def _command(node: NodeStart) -> tuple[str, ...]:
    return (sys.executable, "-m", "ray.scripts.scripts", *start_arguments(node))


def _log_file() -> Path:
    folder = folder_here()
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"ray-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.log"


def _failed(why: str, log: Path) -> Infrastructure:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if "Error" in line or "error" in line or "mismatch" in line]
    said = (telling or lines or ["nothing"])[-1]
    message = f"it {why}: {said[:500]}"
    return Infrastructure("E-fleet-start", message, hint=f"all it said is in {log}", where="ray start")
