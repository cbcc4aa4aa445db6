"""Long work in a thread beside a generator, which goes on telling what it does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from typing import Generic, TypeVar

from harness.domain.halting import ShouldStop

_LOOK_S = 0.25
"""What is told more often than that is told once."""
_END_S = 30.0

Result = TypeVar("Result")
Report = Callable[[str], None]


def told_while(work: Callable[[Report, ShouldStop], Result], should_stop: ShouldStop) -> Generator[str, None, Result]:
    """Do work and yield what it reports meanwhile: of quick reports the last.

    Closing the generator, and an exception that is thrown into it, end the work first.

    Args:
        work: Given what it reports to and what it asks whether to stop.
        should_stop: Ends the work.

    Returns:
        What the work returned.

    Raises:
        BaseException: What the work raised.
    """
    thread = _Aside(work, should_stop)
    said = ""
    thread.start()
    try:
        while not thread.ended.wait(_LOOK_S):
            if thread.latest != said:
                said = thread.latest
                yield said
    finally:
        thread.left.set()
        thread.join(_END_S)
    return thread.result()


class _Aside(threading.Thread, Generic[Result]):
    """The thread.

    Args:
        work: As of `told_while`.
        should_stop: Likewise.
    """

    def __init__(self, work: Callable[[Report, ShouldStop], Result], should_stop: ShouldStop) -> None:
        super().__init__(name="moe-aside", daemon=True)
        self._work = work
        self._should_stop = should_stop
        self._outcome: list[Result] = []
        self._error: BaseException | None = None
        self.latest = ""
        self.left = threading.Event()
        self.ended = threading.Event()

    def run(self) -> None:
        """Do the work."""
        try:
            self._outcome.append(self._work(self._tell, lambda: self.left.is_set() or self._should_stop()))
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            self._error = error
        finally:
            self.ended.set()

    def result(self) -> Result:
        """What came out, or what was raised."""
        if self._error is not None:
            raise self._error
        return self._outcome[0]

    def _tell(self, text: str) -> None:
        self.latest = text
