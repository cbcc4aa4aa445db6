"""What our control group, and those above it, allow us."""

from __future__ import annotations

import re
from pathlib import Path

from harness.execution.machine import read

_UNLIMITED = 1 << 60
"""Version 1 of cgroups writes a page-rounded 2^63 for no limit."""


def cgroup_memory_bytes() -> int | None:
    """The smallest memory limit of our control group and those above it; None for no limit."""
    texts = [read(f"{group}/memory.max") for group in _control_groups("")]
    texts += [read(f"{group}/memory.limit_in_bytes") for group in _control_groups("memory")]
    limits = [int(text) for text in texts if text.strip().isdigit()]
    return min((limit for limit in limits if 0 < limit < _UNLIMITED), default=None)


def cgroup_cpu_quota() -> float | None:
    """The smallest CPU quota of our control group and those above it, in CPU seconds a second; None for no limit."""
    texts = [read(f"{group}/cpu.max") for group in _control_groups("")]
    texts += [
        read(f"{group}/cpu.cfs_quota_us") + " " + read(f"{group}/cpu.cfs_period_us") for group in _control_groups("cpu")
    ]
    matches = [re.fullmatch(r"\s*(\d+)\s+(\d+)\s*", text) for text in texts]  # no match: "max" or -1, for no limit
    return min((int(match[1]) / int(match[2]) for match in matches if match and int(match[2])), default=None)


def _control_groups(controller: str) -> list[str]:
    """Folders of our control group and of each one above it.

    In a container the path can be the host's, which is not mounted there; then only the last, the mount itself, exists.

    Args:
        controller: Controller of a version 1 hierarchy; empty for version 2.
    """
    for line in read("proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller in controllers.split(","):
            group = Path(path.strip("/"))
            return [str(Path("sys/fs/cgroup", controller, part)) for part in (group, *group.parents)]
    return []
