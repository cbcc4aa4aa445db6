"""The watch over a cluster: what it offers now, and that nobody waits for a head that is gone."""

from __future__ import annotations

import threading
import time

import pytest

from harness.domain.errors import Infrastructure
from harness.execution import cluster_watch
from harness.execution.cluster_watch import ClusterWatch


def test_it_tells_who_lives() -> None:
    """As of the last look; the dead are left out."""
    watch = ClusterWatch(lambda: [{"NodeID": "a", "Alive": True}, {"NodeID": "b", "Alive": False}])
    watch.start()
    assert [node["NodeID"] for node in watch.alive()] == ["a"]
    watch.require()
    watch.close()


@pytest.mark.parametrize("dead", [True, False])
def test_a_head_that_answers_no_more_is_lost_whether_it_is_dead_or_frozen(
    dead: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One raises, the other hangs for ever; who asks for the nodes meanwhile gets the last ones at once."""
    monkeypatch.setattr(cluster_watch, "_EVERY_S", 0.01)
    answers = iter([[{"NodeID": "a", "Alive": True}]])
    frozen = threading.Event()

    def ask() -> list[dict[str, object]]:
        for answer in answers:
            return answer
        if dead:
            raise ConnectionError
        frozen.wait(30)
        return []

    watch = ClusterWatch(ask, "head:1", silent_s=0.3)
    watch.start()
    deadline = time.monotonic() + 30
    with pytest.raises(Infrastructure, match=r"E-cluster-lost: head:1: .* has not answered"):
        _ask_until(watch, deadline)
    assert watch.is_lost
    assert watch.alive()
    frozen.set()
    watch.close()


def _ask_until(watch: ClusterWatch, deadline: float) -> None:
    while time.monotonic() < deadline:
        watch.require()
        time.sleep(0.01)


def test_who_was_stopped_himself_has_not_heard_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that was sent to the background for an hour asks again before it says that the head is gone."""
    watch = ClusterWatch(list, silent_s=20.0)
    now = time.monotonic() + 3600
    monkeypatch.setattr(cluster_watch.time, "monotonic", lambda: now)
    watch.require()
    assert not watch.is_lost
