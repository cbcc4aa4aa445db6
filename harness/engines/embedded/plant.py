"""A planted slowdown, for calibrations: the same library, its timed part made slower by a known share of its speed.

Whether the judge finds a loss that is known to be there can only be seen on a loss that was put there. After each
``synchronize`` the process sleeps for a share of what the decoding before it took: the time that llama-bench's meaning
of a repetition counts really grows, and nothing else changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .bindings import Engine

_WAKES_LATE_NS = 300_000
"""A sleep may last so much longer than asked; the rest of a pause is waited out awake."""
_NS = 1e-9


class Slowed:
    """An engine at a share of its speed; all but the timed calls are the engine's own.

    Args:
        engine: The engine.
        loss: The share of its speed that is taken away, above 0 and below 1: 0.05 leaves 95 %.
    """

    def __init__(self, engine: Engine, loss: float) -> None:
        self._engine = engine
        self._pause_per_work = loss / (1 - loss)
        self._worked_ns = 0.0
        self.n_vocab = engine.n_vocab
        self.clear, self.batch = engine.clear, engine.batch
        self.first_token, self.decode_failed = engine.first_token, engine.decode_failed

    @property
    def decode(self) -> Callable[[int, Any], int]:
        """The engine's own, timed."""
        return self._decode

    @property
    def synchronize(self) -> Callable[[int], None]:
        """The engine's own, timed, and the pause for all work since the last one."""
        return self._synchronize

    def _decode(self, context: int, batch: Any) -> int:
        start = time.perf_counter_ns()
        status = self._engine.decode(context, batch)
        self._worked_ns += time.perf_counter_ns() - start
        return status

    def _synchronize(self, context: int) -> None:
        start = time.perf_counter_ns()
        self._engine.synchronize(context)
        now = time.perf_counter_ns()
        pause_ns = (self._worked_ns + now - start) * self._pause_per_work
        self._worked_ns = 0.0
        _wait_until(now + pause_ns)


def _wait_until(deadline_ns: float) -> None:
    while (left := deadline_ns - time.perf_counter_ns()) > 0:
        if left > _WAKES_LATE_NS:
            time.sleep((left - _WAKES_LATE_NS) * _NS)
