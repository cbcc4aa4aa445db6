"""The command line and the environment of ``ray start`` for a node that measures. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.execution.offers import QUIET_WORKERS

DEFAULT_PORT = 6379
LOOPBACK = "127.0.0.1"
_OBJECT_STORE_BYTES = 200 * 1024**2
"""Events of jobs are small; Ray would take a third of the memory."""
_ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Without it Ray makes an address of the host's own out of one of loopback; see decision 4."""
_NOT_FOR_NODES = ("OMP_NUM_THREADS", "RAY_ADDRESS")


@dataclass(frozen=True, slots=True)
class NodeStart:
    """One node to be started.

    Attributes:
        own_address: Where it listens.
        head: ``HOST:PORT`` of the head that it joins; empty: it is the head.
        port: The head's port.
        gpus: How many GPUs it offers.
        visible: Which ones, as in ``CUDA_VISIBLE_DEVICES``; ``None``: all.
        resources: Custom resources.
        labels: Labels.
        temp_dir: Where Ray keeps sockets and logs; empty: where it likes.
    """

    own_address: str
    head: str = ""
    port: int = DEFAULT_PORT
    gpus: int = 0
    visible: str | None = None
    resources: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    temp_dir: str = ""

    @property
    def address(self) -> str:
        """What others join, and drivers name."""
        return self.head or f"{_bracketed(self.own_address)}:{self.port}"


def start_arguments(node: NodeStart) -> tuple[str, ...]:
    """Arguments of ``ray``; the token is not among them."""
    role = (f"--address={node.head}",) if node.head else ("--head", f"--port={node.port}")
    return (
        "start",
        *role,
        "--block",
        f"--node-ip-address={node.own_address}",
        f"--dashboard-host={LOOPBACK}",
        "--include-log-monitor=false",
        "--disable-usage-stats",
        "--num-cpus=1",
        f"--num-gpus={node.gpus}",
        f"--object-store-memory={_OBJECT_STORE_BYTES}",
        f"--resources={json.dumps(dict(node.resources))}",
        f"--labels={','.join(f'{key}={value}' for key, value in node.labels.items())}",
        *((f"--temp-dir={node.temp_dir}",) if node.temp_dir else ()),
    )


def start_environment(node: NodeStart, token: Mapping[str, str], inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of ``ray start``, which its workers inherit.

    Args:
        node: The node.
        token: Variables that name the token's file.
        inherited: Our own environment.
    """
    kept = {name: value for name, value in inherited.items() if name not in _NOT_FOR_NODES}
    chosen = {} if node.visible is None else {"CUDA_VISIBLE_DEVICES": node.visible}
    loopback = _ON_LOOPBACK if is_loopback(node.own_address) else {}
    return {**kept, **QUIET_WORKERS, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", **chosen, **loopback, **token}


def is_loopback(address: str) -> bool:
    """Whether Ray listens for this host alone: for any other address, 127.0.0.2 too, it does on all interfaces."""
    return address == LOOPBACK


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
