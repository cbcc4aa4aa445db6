"""Executors by name, made only when a job needs one."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from harness.domain.errors import BadInput
from harness.domain.placing import Placing
from harness.domain.stopping import StoppingRule
from harness.domain.suggest import did_you_mean
from harness.execution.cluster_token import token_environment
from harness.execution.executor import Executor

NAMES = ("ray", "local")

MakeExecutor: TypeAlias = Callable[[], Executor]


def executor_factory(
    name: str, rule: StoppingRule, ray_address: str = "", placing: Placing | None = None
) -> MakeExecutor:
    """How to make an executor. What is wrong with the request is said now; nothing is imported or started yet.

    Args:
        name: ``ray`` or ``local``.
        rule: The stopping rule handed to every job.
        ray_address: Of a running cluster; empty embeds one.
        placing: Says which nodes of a cluster can take a job; ``None``: those of its class.

    Raises:
        BadInput: If the name is unknown, or an address is given to an executor that has none.
    """
    if name not in NAMES:
        raise BadInput("E-unknown-executor", f"there is no executor '{name}'", hint=did_you_mean(name, NAMES))
    if name == "local" and ray_address:
        raise BadInput("E-address-unused", "--ray-address means nothing to the local executor")
    return partial(_local_executor, rule) if name == "local" else partial(_ray_executor, rule, ray_address, placing)


_EMBEDDED = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""An embedded cluster has no business beyond loopback, and this is the only switch that Ray has for it."""

_JOINING = {"RAY_NUM_REDIS_GET_RETRIES": "2", "RAY_py_gcs_connect_timeout_s": "5"}
"""An address that is not a cluster's is known after seconds; by Ray's defaults it would take over five minutes."""


def ray_environment(address: str) -> dict[str, str]:
    """What Ray reads of the environment when it is imported, for a driver.

    Args:
        address: Of the cluster; empty where one is embedded.
    """
    if not address:
        return _EMBEDDED
    # Of an address of loopback Ray would make one of the host's own, where such a cluster does not listen.
    loopback = address.startswith(("127.0.0.1:", "localhost:"))
    return {**_JOINING, **(_EMBEDDED if loopback else {}), **token_environment()}


def _local_executor(rule: StoppingRule) -> Executor:
    # What measures and prepares models brings numpy along: a plan and a collection need neither.
    module = importlib.import_module("harness.execution.local")
    executor: Executor = module.LocalExecutor(rule)
    return executor


def _ray_executor(rule: StoppingRule, ray_address: str, placing: Placing | None) -> Executor:
    for name, value in ray_environment(ray_address).items():
        os.environ.setdefault(name, value)  # before Ray is imported: it reads them then
    # Importing Ray takes most of a second: only a run that has jobs for it pays.
    module = importlib.import_module("harness.execution.ray_executor")
    executor: Executor = module.RayExecutor(rule, ray_address, placing)
    return executor
