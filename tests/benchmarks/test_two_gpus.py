"""Two GPUs at once: what the figures decide, and the script from end to end with stand-ins for GPUs and neighbours."""

from __future__ import annotations

import os
import sys

import psutil
import pytest
import two_gpus
from two_gpus import BUSY, HYBRID, IDLE, Cell, Neighbour, decision

from harness.domain.words import Throughput

EQUAL, SLOWER, UNDECIDED = Throughput.EQUIVALENT, Throughput.REGRESSED, Throughput.INCONCLUSIVE


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        ((EQUAL, EQUAL, EQUAL), "A slot for each GPU", 0),
        ((EQUAL, EQUAL, SLOWER), "The slot is the host's", 0),
        ((EQUAL, UNDECIDED, EQUAL), "The slot is the host's", 0),
        ((UNDECIDED, EQUAL, EQUAL), "Nothing", 3),
    ],
)
def test_a_slot_is_the_hosts_unless_every_neighbour_is_shown_to_change_nothing(
    words: tuple[Throughput, ...], said: str, code: int
) -> None:
    """And where the machine is not equal to itself, nothing is decided."""
    found = [Cell("tg64", beside, 8, "1.0", word) for beside, word in zip((IDLE, BUSY, HYBRID), words, strict=True)]
    text, ended = decision(found, 0.02)
    assert text.startswith(said)
    assert ended == code


def test_a_neighbour_runs_beside_and_leaves_nothing_behind() -> None:
    """It is begun again and again; one that ends by itself is no neighbour."""
    mark = f"moe-neighbour-{os.getpid()}"
    with Neighbour((sys.executable, "-c", f"import time; time.sleep(60) #{mark}"), dict(os.environ), 0.3).beside():
        assert below(mark)
    assert not below(mark)
    with pytest.raises(SystemExit, match="ended by itself"), Neighbour(("false",), dict(os.environ), 0.3).beside():
        pass


def below(mark: str) -> list[int]:
    listed = psutil.process_iter(["pid", "cmdline", "status"])
    gone = psutil.STATUS_ZOMBIE
    return [
        each.info["pid"]
        for each in listed
        if any(mark in word for word in each.info["cmdline"] or []) and each.info["status"] != gone
    ]


def test_the_script_runs_with_standins_and_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    code = two_gpus.main(["--standin", "--quads", "1", "--repetitions", "1", "--prompt", "8", "--generate", "2"])
    shown = capsys.readouterr().out
    assert code == 3
    assert "Stand-ins, no GPUs" in shown
    assert [shown.count(f"| {beside} |") for beside in (IDLE, BUSY, HYBRID)] == [2, 2, 2]


def test_without_two_gpus_it_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(two_gpus, "probe_gpus", lambda: ())
    with pytest.raises(SystemExit, match="this needs two GPUs"):
        two_gpus.main([])
