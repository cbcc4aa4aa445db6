"""The parts of a child one by one, without a library."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.embedded.channel import Channel, EngineLog
from harness.engines.embedded.errors import EXIT_DECODE, EmbeddedError
from harness.engines.embedded.flags import IK, MAINLINE, complete_flags
from harness.engines.embedded.library import mapped_libraries
from harness.engines.embedded.logits import Digest, Reduced, reduce_row
from harness.engines.embedded.loop import draw_tokens, measure
from harness.engines.embedded.request import Request, Workload
from harness.engines.embedded.rows import asked_or_found, host_cpu, make_row, mean_and_deviation
from harness.engines.embedded.session import peak_rss
from harness.ranking import NO_TOKEN


class FakeEngine:
    """Notes what is done to it; a decode fails once ``cells`` positions are full."""

    def __init__(self, cells: int = 1_000_000, first: int | None = None) -> None:
        self.n_vocab = 100
        self.did: list[Any] = []
        self._cells = cells
        self._first = first

    @property
    def decode(self) -> Callable[[int, Any], int]:
        """Notes position and length."""

        def decode(_context: int, batch: tuple[Sequence[int], int]) -> int:
            tokens, at = batch
            self.did.append((at, len(tokens)))
            return int(at + len(tokens) > self._cells)

        return decode

    @property
    def synchronize(self) -> Callable[[int], None]:
        """Notes that it was waited for."""
        return lambda _context: self.did.append("sync")

    def clear(self, context: int, *, data: bool) -> None:  # noqa: ARG002
        """Notes it."""
        self.did.append("clear")

    def batch(self, tokens: Sequence[int], first: int, outputs: int = 1) -> Any:  # noqa: ARG002
        """Tokens and first position."""
        return (tuple(tokens), first)

    def first_token(self) -> int | None:
        """What it was made with."""
        return self._first

    def decode_failed(self, status: int, what: str) -> EmbeddedError:
        """As the real ones."""
        return EmbeddedError("E-decode", f"{status} {what}", exit_code=EXIT_DECODE)


def run(load: Workload, engine: FakeEngine, repetitions: int = 1, batch_size: int = 8) -> list[int]:
    return measure(engine, 1, load, batch_size=batch_size, repetitions=repetitions, seed=1)


def test_a_prompt_is_cut_into_batches_and_synchronised_once() -> None:
    """Prompt processing hands over whole batches and waits at the end."""
    engine = FakeEngine()
    assert len(run(Workload("pp20", 20, 0, 0), engine)) == 1
    assert engine.did == ["clear", (0, 8), (8, 8), (16, 4), "sync"]


def test_generation_is_synchronised_after_each_token() -> None:
    """Token generation waits for each token, at the positions after depth and prompt."""
    engine = FakeEngine()
    run(Workload("all", 4, 2, 3), engine)
    assert engine.did == ["clear", (0, 3), "sync", (3, 4), "sync", (7, 1), "sync", (8, 1), "sync"]


def test_every_repetition_is_reported() -> None:
    """There is no hidden warm-up: as many clears, and samples, as repetitions."""
    engine = FakeEngine()
    assert len(run(Workload("tg1", 0, 1, 0), engine, repetitions=5)) == 5
    assert engine.did.count("clear") == 5


@pytest.mark.parametrize("load", [Workload("deep", 1, 0, 20), Workload("long", 20, 0, 0), Workload("gen", 0, 20, 0)])
def test_a_failed_decode_is_an_error_never_a_speed(load: Workload) -> None:
    """A status that is not 0 ends the measuring, in the depth, the prompt and the generation alike."""
    with pytest.raises(EmbeddedError) as caught:
        run(load, FakeEngine(cells=10))
    assert (caught.value.slug, caught.value.exit_code) == ("E-decode", EXIT_DECODE)


def test_tokens_depend_on_seed_and_repetition_alone() -> None:
    """Both arms see the same tokens, whatever a workload is called; another repetition sees others."""
    load = Workload("a", 30, 5, 7)
    drawn = draw_tokens(load, 100, None, 1, 0)
    assert drawn == draw_tokens(Workload("b", 30, 5, 7), 100, None, 1, 0)
    assert drawn != draw_tokens(load, 100, None, 1, 1)
    assert drawn != draw_tokens(load, 100, None, 2, 0)
    assert all(0 <= token < 100 for token in drawn.depth + drawn.prompt + drawn.generated)


def test_a_sequence_begins_with_the_vocabularys_first_token() -> None:
    """As in llama-bench, where the vocabulary adds one."""
    drawn = draw_tokens(Workload("a", 3, 2, 0), 100, 77, 1, 0)
    assert (drawn.depth, drawn.prompt[0], drawn.generated[0]) == ([], 77, 77)


def test_deviation_is_right_where_llama_bench_is_wrong() -> None:
    """The samples of L22300, of which llama-bench prints 3722529745."""
    samples = [12140144300, 12308847400, 12225136900, 12154929400, 11909783400]
    assert round(mean_and_deviation(samples)[1]) == 148894758
    assert mean_and_deviation([5]) == (5.0, 0.0)
    assert mean_and_deviation([7] * 9)[1] == 0.0


@pytest.mark.parametrize(("found", "echo"), [(2048, 2048), (256, 2048), (512, 512)])
def test_the_echo_of_a_batch_size(found: int, echo: int) -> None:
    """Cut to the context of 256 it is what was asked; anything else that differs is told."""
    assert asked_or_found(2048, found, 256 if found == 256 else 4096) == echo


@pytest.mark.parametrize(
    ("fork", "load", "expected"),
    [
        (MAINLINE, Workload("x", 8, 0, 16), {"n_prompt": 8, "n_gen": 0, "n_depth": 16}),
        (IK, Workload("x", 8, 0, 0), {"test": "pp8"}),
        (IK, Workload("x", 8, 4, 0), {"test": "pp8+tg4"}),
        (IK, Workload("x", 0, 4, 16), {"test": "tg4@pp16"}),
        (IK, Workload("x", 8, 0, 16), {"test": "pp8 @ d16"}),
    ],
)
def test_a_row_speaks_its_forks_words(fork: str, load: Workload, expected: dict[str, Any]) -> None:
    """Depth is a column in mainline and part of the label in ik."""
    request = Request(fork, Path("m"), 1, complete_flags(fork, {}), (load,), 2, 1, None, 0)
    row = make_row(request, load, [10, 30], {"x": 1}, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert expected.items() <= row.items()
    assert (row["avg_ns"], row["stddev_ns"], row["samples_ns"]) == (20, 14, [10, 30])
    assert row["test_time"] == "2026-01-02T03:04:05Z"
    assert ("n_depth" in row, "test" in row) == (fork == MAINLINE, fork == IK)


def reduced(*row: float, top: int = 2) -> Reduced:
    return reduce_row(np.array(row, np.float32), top)


def test_greedy_takes_the_lowest_of_equals() -> None:
    """A tie has a lead of 0 and goes to the lower id; so do the tokens that are kept."""
    tie = reduced(3.0, 1.0, 3.0, 3.0)
    assert (tie.best, tie.margin, list(tie.ids)) == (0, 0.0, [0, 2])
    led = reduced(1.0, 3.5, 3.0)
    assert (led.best, led.margin, list(led.ids)) == (1, 0.5, [1, 2])
    alone = reduced(2.0)
    assert (alone.best, alone.margin, list(alone.ids)) == (0, 0.0, [0])


def test_a_row_that_is_not_finite_has_no_lead() -> None:
    """NaN never wins by a comparison that is false, and its place is told by a token that there is not."""
    bad = reduced(np.nan, 1.0, 2.0)
    assert (bad.best, bad.margin, list(bad.ids)) == (2, None, [NO_TOKEN, NO_TOKEN])
    assert np.isnan(bad.logprobs).all()
    assert (reduced(np.nan, np.nan).best, reduced(np.inf, 1.0).margin) == (0, None)


@given(st.lists(st.floats(-60, 60, width=32), min_size=1, max_size=40), st.integers(2, 30))
def test_kept_tokens_are_those_of_a_full_sort(row: list[float], top: int) -> None:
    """Cutting before sorting changes nothing, and log-probabilities are those of the whole row."""
    found = reduced(*row, top=top)
    values = np.array(row, np.float32).astype(np.float64)
    ids = np.argsort(-values, kind="stable")[:top]
    assert found.ids.tolist() == ids.tolist()
    total = np.log(np.exp(values - values.max()).sum()) + values.max()
    assert found.logprobs == pytest.approx(values[ids] - total, abs=1e-5)


def test_a_digest_notices_one_bit_and_one_nan() -> None:
    """Rows enter the hash bit for bit; a row with NaN makes the whole not finite."""
    row = np.array([1.0, 2.0], np.float32)
    digests = []
    for each in (row, np.nextafter(row, np.float32(9)), np.array([np.nan, 1], np.float32)):
        digest = Digest()
        digest.add(each, reduce_row(each, 2))
        digests.append(digest)
    one, other, bad = digests
    assert one.hex() == hashlib.sha256(row.tobytes()).hexdigest()
    assert one.hex() != other.hex()
    assert (one.finite, bad.finite) == (True, False)


def test_a_line_is_one_json_object() -> None:
    """Line breaks in a field stay inside it; NaN is refused rather than written."""
    stream = io.StringIO()
    Channel(stream).emit("output", {"text": "a\nb"})
    assert json.loads(stream.getvalue()) == {"event": "output", "text": "a\nb"}
    assert stream.getvalue().count("\n") == 1
    with pytest.raises(ValueError, match="JSON"):
        Channel(stream).emit("row", {"x": float("nan")})


def test_the_log_keeps_errors_and_drops_debug() -> None:
    """Info goes to standard error, debug with what continues it does not, errors are kept for the message."""
    stream = io.StringIO()
    log = EngineLog(stream)
    for level, text in ((2, b"info\n"), (1, b"debug"), (5, b" more\n"), (4, b"broken\n"), (4, b"."), (3, None)):
        log(level, text, None)
    assert stream.getvalue() == "info\nbroken\n."
    assert log.last_errors() == "broken"


def test_mapped_libraries_are_read_from_the_maps(tmp_path: Path) -> None:
    """Each library of interest once, with the hash of the file that is mapped."""
    so = tmp_path / "libggml-1.so"
    so.write_bytes(b"x")
    maps = tmp_path / "maps"
    maps.write_text(
        f"7f-80 r-xp 0 08:01 1 {so}\n80-81 r--p 0 08:01 1 {so}\n81-82 rw-p 0 0 0 [heap]\n82-83 r-xp /libc.so\n"
    )
    digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    assert mapped_libraries(maps) == [{"path": str(so), "sha256": digest}]


def test_host_facts_are_read_from_proc(tmp_path: Path) -> None:
    """Processor name and peak memory, and what stands where the system does not tell."""
    file = tmp_path / "file"
    file.write_text("model name\t: A CPU\nVmHWM:\t     12 kB\n")
    assert host_cpu(file) == "A CPU"
    assert host_cpu(tmp_path / "none") == ""
    file.write_text("model name\t: A CPU\nVmPeak:\t 1 kB\nVmHWM:\t     12 kB\n")
    assert peak_rss(file) == 12 * 1024
