"""How the GPUs of a host are joined to one another, as the driver's matrix tells it."""

from __future__ import annotations

import re
import shutil

from harness.domain.errors import HarnessError
from harness.execution.process import ProcessSpec, clean_environment, run_once

_TIMEOUT_S = 60.0
_ROW = re.compile(r"^GPU\d+\s+(.*)$")
_WORST_LAST = ("NV", "PIX", "PXB", "PHB", "NODE", "SYS")
_WORDS = {"NV": "nvlink"}


def gpu_links() -> str:
    """The slowest link between two GPUs of this host; empty where there are not two, or nothing tells."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    try:
        result = run_once(ProcessSpec((program, "topo", "-m"), env=clean_environment(), timeout_s=_TIMEOUT_S))
    except HarnessError:
        return ""
    return slowest_link(result.stdout) if result.ok else ""


def slowest_link(matrix: str) -> str:
    """The slowest link of a matrix as ``nvidia-smi topo -m`` prints it: ``nvlink``, or the driver's word for a path.

    Args:
        matrix: What it printed, with or without the escapes of a terminal.
    """
    plain = re.sub(r"\x1b\[[0-9;]*m", "", matrix)
    rows = [match[1].split() for line in plain.splitlines() if (match := _ROW.match(line.strip()))]
    cells = {re.sub(r"\d+$", "", cell) for row in rows for cell in row[: len(rows)] if cell != "X"}
    known = [kind for kind in _WORST_LAST if kind in cells]
    return _WORDS.get(known[-1], known[-1]) if known else ""
