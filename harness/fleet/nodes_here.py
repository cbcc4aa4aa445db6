"""The nodes that this user started on this host: a file for each, so that ``fleet down`` ends these and no other.

``ray stop`` would end every Ray process of the host, also those of a run that embeds one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from harness.builds.state_file import config_folder

_TERM_S = 45.0
"""Ray lets running tasks go on for up to half a minute."""
_KILL_S = 5.0


@dataclass(frozen=True, slots=True)
class NodeHere:
    """One of them.

    Attributes:
        pid: Of ``ray start``, whose children all of Ray's processes are.
        began: When that process was made, by which it is told from a later one of that number.
        address: Of the cluster.
        head: Whether it is the head.
        log: Where it writes what it has to say.
    """

    pid: int
    began: float
    address: str
    head: bool
    log: str

    @property
    def process(self) -> psutil.Process | None:
        """The live process; ``None`` where it is gone."""
        with suppress(psutil.Error):
            process = psutil.Process(self.pid)
            if abs(process.create_time() - self.began) < 1 and process.status() != psutil.STATUS_ZOMBIE:
                return process
        return None


def folder_here() -> Path:
    """Where the files are: settings of this user, for this host."""
    return config_folder() / "fleet" / os.uname().nodename


def remember(node: NodeHere) -> None:
    """Write its file."""
    path = folder_here() / f"node-{node.pid}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(node)), encoding="utf-8")


def nodes_here() -> Sequence[NodeHere]:
    """Those that live, the head first; files of others are removed."""
    found = []
    for path in sorted(folder_here().glob("node-*.json")):
        node = _read(path)
        if node and node.process:
            found.append(node)
        else:
            path.unlink(missing_ok=True)
    return sorted(found, key=lambda node: not node.head)


def end(node: NodeHere) -> None:
    """End a node with all that belongs to it: first asked, then killed."""
    process = node.process
    if process is not None:
        family = [process, *_below(process)]
        with suppress(psutil.Error):
            process.terminate()
        _, left = psutil.wait_procs(family, timeout=_TERM_S)
        for each in left:
            with suppress(psutil.Error):
                each.kill()
        psutil.wait_procs(left, timeout=_KILL_S)
    (folder_here() / f"node-{node.pid}.json").unlink(missing_ok=True)


def _below(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return process.children(recursive=True)
    return []


def _read(path: Path) -> NodeHere | None:
    with suppress(OSError, ValueError, TypeError):
        return NodeHere(**json.loads(path.read_text(encoding="utf-8")))
    return None
