"""The fleet that a campaign breaks: a head without a slot and two nodes of one, on this machine."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

QUICK_HEALTH = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "4",
}
"""A frozen host is dead to the cluster after some seconds; by Ray's defaults after about a minute."""
_SETTINGS = {
    **QUICK_HEALTH,
    "RAY_worker_niceness": "0",
    "RAY_worker_oom_score_adjustment": "0",
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "disabled",
    "RAY_enable_worker_prestart": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}
_PR_SET_CHILD_SUBREAPER = 36
_ORPHAN_S = 20.0
_OURS = ("harness/execution/supervisor.py", "harness.engines.embedded", "ray::", "llama-bench")
NODES = 2
_STARTS = 4


@dataclass(eq=False)
class Node:
    """One raylet that stands for a host, with a lock folder of its own."""

    ray_node: Any
    frozen: list[psutil.Process] = field(default_factory=list)
    is_bad: bool = False

    @property
    def raylet(self) -> psutil.Process | None:
        """Its raylet, if it lives."""
        with suppress(psutil.Error, KeyError, IndexError):
            found = psutil.Process(self.ray_node.all_processes["raylet"][0].process.pid)
            return found if found.status() != psutil.STATUS_ZOMBIE else None
        return None


class Fleet:
    """Starts, repairs and ends the cluster.

    Args:
        folder: For the hosts' locks.
    """

    def __init__(self, folder: Path) -> None:
        os.environ.update(_SETTINGS)
        # What loses its parent comes to us, and can be counted.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._folder = folder
        self._hosts = 0
        self.nodes: list[Node] = []
        self._up()

    def _up(self) -> None:
        from ray.cluster_utils import Cluster  # noqa: PLC0415 - it reads the settings when it is imported

        head = {"num_cpus": 1, "include_dashboard": False}
        self._cluster = _patiently(lambda: Cluster(initialize_head=True, head_node_args=head))
        self.nodes = []
        self.repair()

    @property
    def address(self) -> str:
        """Of the head."""
        return str(self._cluster.address)

    @property
    def gcs(self) -> psutil.Process:
        """The head's server."""
        return psutil.Process(self._cluster.head_node.all_processes["gcs_server"][0].process.pid)

    def join(self, **environment: str) -> Node:
        """Let another node join."""
        self._hosts += 1
        host = {"MOE_LOCK_DIR": str(self._folder / f"host{self._hosts}"), **environment}
        offer = {"bench": 1, "ram_gib": 2}
        node = Node(_patiently(lambda: self._cluster.add_node(wait=False, num_cpus=1, resources=offer, env_vars=host)))
        self.nodes.append(node)
        return node

    def replace_dead(self) -> None:
        """Bring the fleet back to its size; a node that fails everything is one too many."""
        for node in list(self.nodes):
            if node.raylet is None:
                self.switch_off(node)
        while sum(not node.is_bad for node in self.nodes) < NODES:
            self.join()

    def repair(self) -> None:
        """Switch off what is frozen or fails everything, and bring the fleet back to its size."""
        for node in list(self.nodes):
            if node.is_bad:
                self.switch_off(node)
        self.switch_off_frozen()

    def switch_off_frozen(self) -> None:
        """Let nobody wait for what is frozen, and bring the fleet back to its size."""
        for node in list(self.nodes):
            if node.frozen:
                self.switch_off(node)
        self.replace_dead()

    def switch_off(self, node: Node) -> None:
        """End a host with all that runs on it: nobody reaches below a host that is frozen."""
        raylet = node.raylet
        tree = [*node.frozen, *([raylet, *raylet.children(recursive=True)] if raylet else [])]
        for process in tree:
            with suppress(psutil.Error):
                process.kill()
        with suppress(Exception):
            self._cluster.remove_node(node.ray_node, allow_graceful=False)
        self.nodes.remove(node)

    def rebuild(self) -> None:
        """A new cluster in place of one that has lost its head."""
        self.close()
        self._up()

    def close(self) -> None:
        """End everything."""
        for node in list(self.nodes):
            self.switch_off(node)
        with suppress(Exception):
            self.gcs.send_signal(signal.SIGCONT)
        with suppress(Exception):
            self._cluster.shutdown()
        self.reap()

    def engines(self) -> list[psutil.Process]:
        """Engines that run now."""
        return [process for process in _below() if "harness.engines.embedded" in command(process)]

    def orphans(self) -> list[str]:
        """What is left of engines and their supervision although no run is on."""
        give_up = time.monotonic() + _ORPHAN_S
        while (left := [each for each in _below() if any(word in command(each) for word in _OURS[:2])]) and (
            time.monotonic() < give_up
        ):
            self.reap()
            time.sleep(0.2)
        return [f"{process.pid} {command(process)[:100]}" for process in left]

    @staticmethod
    def reap() -> None:
        """Take the status of what died as our child."""
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _patiently(start: Callable[[], Any]) -> Any:
    """Start what Ray gives thirty seconds, on a host that may be busier than that."""
    for _ in range(_STARTS):
        try:
            return start()
        except Exception as error:  # noqa: BLE001 - a bare one is what Ray raises
            say(f"not up yet: {error}")
    return start()


def _below() -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def command(process: psutil.Process) -> str:
    """Its command line; empty where it is gone."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def say(text: str) -> None:
    """Tell whoever watches."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
