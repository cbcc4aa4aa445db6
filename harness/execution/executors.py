"""Executors by name."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable

from harness.domain.errors import BadInput
from harness.domain.stopping import StoppingRule
from harness.domain.suggest import did_you_mean
from harness.execution.executor import Executor
from harness.execution.local import LocalExecutor

NAMES = ("ray", "local")


def make_executor(name: str, rule: StoppingRule, ray_address: str = "") -> Executor:
    """Make an executor; it starts nothing until its first job.

    Raises:
        BadInput: If the name is unknown, or an address is given to an executor that has none.
    """
    if name not in NAMES:
        raise BadInput("E-unknown-executor", f"there is no executor '{name}'", hint=did_you_mean(name, NAMES))
    if name == "local":
        if ray_address:
            raise BadInput("E-address-unused", "--ray-address means nothing to the local executor")
        return LocalExecutor(rule)
    if not ray_address:
        # An embedded cluster has no business beyond loopback. This is the only switch that Ray has for it, and Ray reads
        # it when it is imported.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    # Importing Ray takes most of a second: only a run that has jobs for it pays.
    factory: Callable[[StoppingRule, str], Executor] = importlib.import_module(
        "harness.execution.ray_executor"
    ).RayExecutor
    return factory(rule, ray_address)
