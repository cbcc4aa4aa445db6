"""Children of ours that run or ask an engine: how they are started, and told what to do."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import harness
from harness.engines.engine import Command

_INSTALLED_UNDER = frozenset({"site-packages", "dist-packages"})
"""Folders of installed packages: a checkout is somewhere else, and its children have to be told where."""


def child_command(module: str, request: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Command:
    """A child, told on standard input what to do.

    ``-P`` keeps the working directory off the module path. Where this package is not installed but run from a
    checkout, the child is told where that is.

    Args:
        module: What it runs.
        request: What it is told, as JSON.
        environment: Variables of its own.
    """
    home = Path(harness.__file__).resolve().parent.parent
    checkout = {} if home.name in _INSTALLED_UNDER else {"PYTHONPATH": str(home)}
    return Command(
        (sys.executable, "-P", "-m", module),
        {**checkout, **(environment or {})},
        json.dumps(request, allow_nan=False),
    )
