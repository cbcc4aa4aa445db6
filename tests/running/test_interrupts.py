"""Signals during a run: the first one asks, the second one raises, and afterwards all is as before."""

from __future__ import annotations

import os
import signal

import pytest

from harness.running.interrupts import Interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_calls_and_the_second_raises(number: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    called = []
    interrupts = Interrupts()
    interrupts.call(lambda: called.append(1))
    try:
        os.kill(os.getpid(), number)
        assert called == [1]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert called == [1]
    finally:
        interrupts.restore()
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before
