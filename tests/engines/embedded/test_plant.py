"""A planted slowdown: as large as asked, inside the timed part only, and told by the child."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.engines.embedded import loop, plant
from harness.engines.embedded.flags import FORKS
from harness.engines.embedded.loop import measure
from harness.engines.embedded.plant import Slowed
from harness.engines.embedded.request import Workload

WORK_NS = 700_000


class Clock:
    """Time that passes only when it is looked at, slept or worked; every sleep ends late."""

    def __init__(self) -> None:
        self.now = 0

    def perf_counter_ns(self) -> int:
        self.now += 100
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1e9) + 150_000


class Worker:
    """An engine whose decoding takes a known time; remembers what it was asked."""

    n_vocab = 100

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.calls: list[str] = []

    def decode(self, *_: object) -> int:
        self.clock.now += WORK_NS
        self.calls.append("decode")
        return 0

    def synchronize(self, *_: object) -> None:
        self.calls.append("synchronize")

    def clear(self, *_: object, **__: object) -> None:
        self.calls.append("clear")

    def batch(self, tokens: list[int], *_: object) -> object:
        return tokens

    def first_token(self) -> int | None:
        return None

    def decode_failed(self, *what: object) -> Any:
        raise AssertionError(what)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """In place of the real one, for the loop and the plant."""
    fake = Clock()
    monkeypatch.setattr(loop, "time", fake)
    monkeypatch.setattr(plant, "time", fake)
    return fake


@pytest.mark.parametrize("loss", [0.01, 0.05, 0.5, 0.9])
@pytest.mark.parametrize("load", [Workload("pp", 64, 0, 0), Workload("tg", 0, 4, 64), Workload("both", 64, 4, 0)])
def test_the_speed_that_is_lost_is_the_speed_that_was_asked_for(clock: Clock, loss: float, load: Workload) -> None:
    """Short pauses too, and although no sleep ends when it should; tokens of the depth are not counted."""
    (plain,) = measure(Worker(clock), 0, load, batch_size=32, repetitions=1, seed=1)
    (slowed,) = measure(Slowed(Worker(clock), loss), 0, load, batch_size=32, repetitions=1, seed=1)
    assert plain / slowed == pytest.approx(1 - loss, rel=1e-3)


def test_the_engine_is_asked_for_the_same_things(clock: Clock) -> None:
    """Same calls in the same order with and without the plant."""
    plain, slowed = Worker(clock), Worker(clock)
    load = Workload("pp+tg", 64, 2, 32)
    measure(plain, 0, load, batch_size=32, repetitions=2, seed=1)
    measure(Slowed(slowed, 0.1), 0, load, batch_size=32, repetitions=2, seed=1)
    assert slowed.calls == plain.calls


@pytest.mark.parametrize("fork", FORKS)
def test_a_real_child_is_slower_and_says_that_it_was_made_so(fork: str, child: Any, tiny_model: Path) -> None:
    """Made ten times as slow: nothing is quicker than its work and pause, and of sixty times one is undisturbed."""
    pytest.importorskip("xllamacpp")
    pytest.importorskip("ik_llama_cpp")
    loads = {"pp8": (8, 0, 0), "tg2": (0, 2, 0)}
    plain, slowed = (child(fork, tiny_model, loads=loads, repetitions=60, slowdown=share) for share in (0.0, 0.9))
    assert "planted_slowdown" not in plain.of("loaded")[0]
    assert slowed.of("loaded")[0]["planted_slowdown"] == 0.9
    for ours, theirs in zip(plain.of("row"), slowed.of("row"), strict=True):
        fast, slow = (min(each["row"]["samples_ns"]) for each in (ours, theirs))
        assert slow > 5 * fast
