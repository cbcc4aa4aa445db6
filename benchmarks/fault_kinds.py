"""The kinds of fault, each a function that breaks something of a running night."""

from __future__ import annotations

import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil
from fault_fleet import Node, command

if TYPE_CHECKING:
    from fault_nights import Target

_JOIN_LATE_S = 3.0


@dataclass(frozen=True)
class Kind:
    """One kind of fault.

    Attributes:
        name: In the table.
        inject: Breaks it.
        ends_driver: The driver is to end by it, soon and in order.
        ends_head: The cluster has no head afterwards.
        any_moment: It can hit before anything is measured.
        codes: What the driver may end with beside pytest's own.
        shows_within_s: Seconds after which the journal tells of it, if it hurt anything.
    """

    name: str
    inject: Callable[[Target], None]
    ends_driver: bool = False
    ends_head: bool = False
    any_moment: bool = False
    shows_within_s: float = 20.0
    codes: tuple[int, ...] = ()


def _signal(which: str, number: signal.Signals) -> Callable[[Target], None]:
    def inject(target: Target) -> None:
        getattr(target, which).send_signal(number)

    return inject


def _freeze_host(target: Target) -> None:
    """Stop the raylet and all below it, leaves last: what is frozen starts nothing."""
    _freeze(target.node)


def _freeze(node: Node) -> None:
    raylet = node.raylet
    if raylet is None:
        return
    raylet.suspend()
    node.frozen = [raylet]
    while new := [each for each in raylet.children(recursive=True) if each not in node.frozen]:
        for process in new:
            with suppress(psutil.Error):
                process.suspend()
        node.frozen += new


def _freeze_worker(target: Target) -> None:
    target.worker.suspend()
    target.node.frozen = [target.worker]


def _kill_node(target: Target) -> None:
    target.fleet.switch_off(target.node)


def _all_nodes_gone(target: Target) -> None:
    """Every node dies; one joins some seconds later."""
    for node in list(target.fleet.nodes):
        target.fleet.switch_off(node)
    time.sleep(_JOIN_LATE_S)
    target.fleet.join()


def _bad_node(target: Target) -> None:
    """A node that fails everything joins, and is always the first to be free."""
    target.fleet.join(MOE_LOCK_DIR="/proc/1/no-lock-here").is_bad = True


def _node_disk_full(target: Target) -> None:
    """What runs on the node can't make a file grow any more."""
    target.worker.rlimit(resource.RLIMIT_FSIZE, (0, 0))


def _node_memory_full(target: Target) -> None:
    """The supervisor gets no more memory, nor the engines that it starts."""
    parent = target.engine.parent()
    if parent is not None:
        parent.rlimit(resource.RLIMIT_AS, (96 * 1024**2,) * 2)


def _engine_memory_full(target: Target) -> None:
    """The engine gets no more memory."""
    used = target.engine.memory_info().vms
    target.engine.rlimit(resource.RLIMIT_AS, (used, used))


def _driver_disk_full(target: Target) -> None:
    """Journal and reports of the driver can't grow any more."""
    size = target.journal.stat().st_size if target.journal.exists() else 0
    target.driver.rlimit(resource.RLIMIT_FSIZE, (size + 100,) * 2)


def _supervisor(number: int) -> Callable[[Target], None]:
    def inject(target: Target) -> None:
        chain = [each for each in target.engine.parents() if "supervisor.py" in command(each)]
        if len(chain) > number:
            chain[number].kill()

    return inject


KINDS = (
    Kind("worker killed", _signal("worker", signal.SIGKILL)),
    Kind("engine killed", _signal("engine", signal.SIGKILL)),
    Kind("engine hangs", _signal("engine", signal.SIGSTOP)),
    Kind("engine out of memory", _engine_memory_full),
    Kind("supervisor killed", _supervisor(0)),
    Kind("shim killed", _supervisor(1)),
    Kind("raylet killed", _signal("raylet", signal.SIGKILL)),
    Kind("node killed", _kill_node),
    Kind("host frozen", _freeze_host),
    Kind("worker frozen", _freeze_worker, shows_within_s=90.0),
    Kind("all nodes killed, one joins late", _all_nodes_gone),
    Kind("node that fails everything", _bad_node),
    Kind("disk of the node full", _node_disk_full),
    Kind("memory of the node full", _node_memory_full),
    Kind("disk of the driver full", _driver_disk_full, ends_driver=True),
    Kind("driver killed", _signal("driver", signal.SIGKILL), ends_driver=True, any_moment=True, codes=(-9,)),
    Kind("driver terminated", _signal("driver", signal.SIGTERM), ends_driver=True, any_moment=True, codes=(-15,)),
    Kind("driver interrupted", _signal("driver", signal.SIGINT), ends_driver=True, any_moment=True, codes=(-2,)),
    Kind("head killed", _signal("gcs", signal.SIGKILL), ends_driver=True, ends_head=True),
    Kind("head frozen", _signal("gcs", signal.SIGSTOP), ends_driver=True, ends_head=True),
)

_MINUTES = ("worker frozen", "head killed", "head frozen")
SOON = tuple(kind for kind in KINDS if kind.name not in _MINUTES)
"""Without those that cost half a minute and more."""
