"""Look at a cluster from a thread of its own: what it offers now, and whether anybody still answers.

A head that is killed or frozen answers no question, and whoever asks hangs with it: so nobody asks but this thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from harness.domain.errors import Infrastructure

_EVERY_S = 0.5
_COUNTED_S = 1.0
SILENT_S = 20.0
"""A head that gave no answer for so long is lost: Ray's own limit is a minute, and then it ends the driver too."""

Node: TypeAlias = dict[str, Any]


class ClusterWatch:
    """The live nodes of a cluster, as of half a second ago.

    Args:
        list_nodes: Asks the cluster for its nodes, alive or not; may hang.
        where: The cluster, for messages.
        silent_s: Seconds without an answer after which the cluster is lost.
    """

    def __init__(
        self, list_nodes: Callable[[], Sequence[Node]], where: str = "", *, silent_s: float = SILENT_S
    ) -> None:
        self._list_nodes = list_nodes
        self._where = where
        self._silent_s = silent_s
        self._alive: tuple[Node, ...] = ()
        self._unanswered_s = 0.0
        self._required = time.monotonic()
        self._first = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._look, name="moe-cluster-watch", daemon=True)

    def start(self) -> None:
        """Begin to look, and wait for the first answer.

        Raises:
            Infrastructure: ``E-cluster-lost``: there is none.
        """
        self._thread.start()
        while not self._first.wait(_EVERY_S):
            self.require()

    def close(self) -> None:
        """Stop looking; a question that hangs is left behind."""
        self._closing.set()

    @property
    def is_lost(self) -> bool:
        """Whether nothing was heard for too long."""
        return self._unanswered_s > self._silent_s

    def alive(self) -> tuple[Node, ...]:
        """The nodes that are alive."""
        return self._alive

    def require(self) -> None:
        """Do nothing while the cluster answers. To be called several times a second: that is how silence is counted.

        Raises:
            Infrastructure: ``E-cluster-lost``.
        """
        now = time.monotonic()
        # Who was stopped himself, or kept from asking, has not heard silence.
        self._unanswered_s += min(now - self._required, _COUNTED_S)
        self._required = now
        if self.is_lost:
            raise Infrastructure(
                "E-cluster-lost",
                f"the head of the cluster has not answered for {self._unanswered_s:.0f} s",
                hint="start it again, then go on with --moe-resume: what was measured is in the journal",
                where=self._where,
            )

    def _look(self) -> None:
        while not self._closing.is_set():
            try:
                nodes = self._list_nodes()
            except Exception:  # noqa: BLE001 - whatever Ray raises without a head: no answer
                self._closing.wait(_EVERY_S)
                continue
            self._alive = tuple(node for node in nodes if node["Alive"])
            self._unanswered_s = 0.0
            self._first.set()
            self._closing.wait(_EVERY_S)
