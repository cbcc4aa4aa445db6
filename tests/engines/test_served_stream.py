"""Streams of servers, read strictly: whole answers or a reason, however they are cut and whatever is in them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from engine_support import RECORDINGS
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.embedded.errors import EmbeddedError
from harness.engines.served.completions import IK, Asking
from harness.engines.served.stream import (
    ErrorEvent,
    StreamedAnswer,
    StreamProblem,
    error_of,
    events,
    gathered,
    read_answer,
)

RECORDED = (RECORDINGS / "llama_cpp-b11549.completion.sse.txt").read_bytes()
MS = 10**6
TIMINGS = {"prompt_n": 5, "prompt_ms": 4.0, "predicted_n": 3, "predicted_ms": 2.0}
TEXT = {"content": "x", "stop": False}
END = {"content": "", "stop": True, "timings": TIMINGS}
PIECES = st.sampled_from([b"data: ", b"{}", b"\n", b":", b"error", b'"'])
JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=9,
)


def lines(data: bytes) -> Iterator[bytes]:
    """As a connection hands them over: the last one perhaps without its end."""
    yield from data.splitlines(keepends=True)


def sse(*values: object) -> bytes:
    return b"".join(b"data: " + json.dumps(value).encode() + b"\n\n" for value in values)


def answer(*values: Mapping[str, Any]) -> StreamedAnswer:
    """Read with a clock that ticks a millisecond an event."""
    ticks = count(10 * MS, MS)
    return read_answer(iter(values), lambda: next(ticks))


def test_a_recorded_answer_is_read_whole() -> None:
    found = list(events(lines(RECORDED)))
    assert [event["tokens"] for event in found[:-1]] == [[1114], [176], [524], [1249], [568]]
    ticks = count()
    read = read_answer(iter(found), lambda: next(ticks))
    assert (read.prompt_tokens, read.cached_tokens, read.predicted) == (5, 0, 5)
    assert read.first_ns == 0, "the first event had the first token"
    timings = found[-1]["timings"]
    assert read.prefill_ns == round(timings["prompt_ms"] * MS)
    assert read.decode_ns == round(timings["predicted_ms"] * MS)


@given(st.integers(0, len(RECORDED) - 2))
def test_a_recorded_answer_that_breaks_off_is_never_an_answer(length: int) -> None:
    with pytest.raises(StreamProblem):
        read_answer(events(lines(RECORDED[:length])), lambda: 0)


@given(
    values=st.lists(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=20), max_size=3), max_size=5),
    noise=st.sampled_from([b"", b": ping\n", b":\n\n", b"event: message\n", b"\n", b"id: 7\n"]),
    end=st.sampled_from([b"\n", b"\r\n"]),
)
def test_events_come_out_as_they_went_in(values: list[dict[str, Any]], noise: bytes, end: bytes) -> None:
    """Pings, empty lines, other fields and either end of line change nothing."""
    stream = b"".join(noise + b"data: " + json.dumps(value).encode() + end + end for value in values)
    assert list(events(lines(stream))) == values


@given(st.binary(max_size=300) | st.lists(PIECES, max_size=20).map(b"".join))
def test_nothing_but_events_or_a_reason_comes_out_of_anything(data: bytes) -> None:
    try:
        found = list(events(lines(data)))
    except StreamProblem:
        return
    assert all(isinstance(event, dict) for event in found)


@given(JSON)
def test_an_error_of_any_shape_has_words(body: Any) -> None:
    code, said = error_of(body)
    assert isinstance(code, int)
    assert isinstance(said, str)


def test_the_last_word_of_some_servers_is_no_event() -> None:
    assert list(events(lines(sse(TEXT) + b"data: [DONE]\n\n"))) == [TEXT]


def test_an_event_over_several_lines_is_one() -> None:
    assert list(events([b'data: {"a":\n', b"data: 1}\n", b"\n"])) == [{"a": 1}]


def test_where_each_token_comes_by_itself_the_first_event_is_the_first_token() -> None:
    assert answer(TEXT, TEXT, TEXT, END).first_ns == 10 * MS


def test_where_text_was_held_back_the_server_knows_when_the_first_token_was_there() -> None:
    """Two events for three tokens: the end at 12 ms, less the 3 ms that the server counts from its first token."""
    end = {**END, "timings": {**TIMINGS, "predicted_ms": 3.0}}
    assert answer(TEXT, TEXT, end).first_ns == 12 * MS - 3 * MS
    assert answer(end).first_ns == 10 * MS - 3 * MS


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ({"stop": True}, "no timings"),
        ({"stop": True, "timings": {**TIMINGS, "prompt_ms": float("nan")}}, "no time prompt_ms"),
        ({"stop": True, "timings": {**TIMINGS, "predicted_ms": -1}}, "no time predicted_ms"),
        ({"stop": True, "timings": {**TIMINGS, "predicted_n": "3"}}, "no count predicted_n"),
        ({"stop": True, "timings": {**TIMINGS, "cache_n": True}}, "no count cache_n"),
        ({"stop": False}, "no end after 1 events with text"),
    ],
)
def test_an_end_without_figures_is_none(end: dict[str, Any], words: str) -> None:
    with pytest.raises(StreamProblem, match=words):
        answer(TEXT, end)


@pytest.mark.parametrize(
    "stream",
    [
        sse(TEXT) + b'error: {"code": 503, "message": "no slot"}\n\n',
        sse(TEXT, {"error": {"code": 503, "message": "no slot"}}),
    ],
)
def test_an_error_in_the_stream_is_an_error_in_both_shapes(stream: bytes) -> None:
    with pytest.raises(ErrorEvent) as caught:
        read_answer(events(lines(stream)), lambda: 0)
    assert (caught.value.status, caught.value.said) == (503, "no slot")


# ---- completions with probabilities, streamed: answers of a real server of ik_llama.cpp ------------------------------

IK_SERVER = Path(__file__).parent.parent / "data" / "ik_server"
HALF = (IK_SERVER / "half.sse.txt").read_bytes()
LISTED = [735, 340, 326, 852, 19, 931, 479, 1176, 1118]


def _asked(count: int, n_predict: int) -> Asking:
    return Asking([5] * count, n_predict, 3)


def test_a_real_stream_is_gathered_into_one_answer() -> None:
    """Ten tokens, of which one left half a character and is not listed; the texts have what is no UTF-8 replaced."""
    found = IK.read(gathered(events(lines(HALF))), _asked(25, 10), "here")
    assert [token for token, _ in found.entries] == LISTED
    assert (found.count, {len(ranked.ids) for _, ranked in found.entries}) == (10, {3})


@pytest.mark.parametrize("said", ["usage", "timings"])
def test_what_the_last_event_says_of_the_work_is_checked(said: str) -> None:
    answer = gathered(events(lines(HALF)))
    answer[said] = {**answer[said], "prompt_n": 20, "prompt_tokens": 26}
    with pytest.raises(EmbeddedError, match=r"a prompt of 26 tokens|it used a cache"):
        IK.read(answer, _asked(25, 10), "here")


def test_a_real_stream_is_read_no_further_than_its_end() -> None:
    """Where nothing is listed the real server says neither [DONE] nor anything else, and leaves the connection open."""

    def endless() -> Iterator[bytes]:
        yield from lines((IK_SERVER / "hidden_only.sse.txt").read_bytes())
        raise AssertionError("it would wait for ever")

    answer = gathered(events(endless()))
    assert answer["choices"] == [{"logprobs": None, "finish_reason": "stop"}]
    assert (IK.read(answer, _asked(19, 1), "here").entries, answer["timings"]["prompt_n"]) == ((), 19)


@given(st.integers(0, HALF.rindex(b"}") + 2))
def test_a_gathered_stream_that_breaks_off_is_never_an_answer(length: int) -> None:
    with pytest.raises(StreamProblem):
        gathered(events(lines(HALF[:length])))


def test_usage_may_come_after_the_end() -> None:
    end = {"choices": [{"logprobs": None, "finish_reason": "length"}]}
    usage = {"choices": [], "usage": {"completion_tokens": 3}}
    assert gathered(iter([end, usage]))["usage"] == usage["usage"]
    assert gathered(iter([end]))["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("choices", ["none", None, [1]])
def test_choices_that_are_none_are_named(choices: object) -> None:
    with pytest.raises(StreamProblem, match="an event has no choices"):
        gathered(iter([{"choices": choices}]))


def test_an_error_in_a_gathered_stream_is_told() -> None:
    with pytest.raises(ErrorEvent, match="full"):
        gathered(iter([{"error": {"code": 500, "message": "full"}}]))


def test_a_prompt_that_the_real_server_cut_is_named() -> None:
    """It answers 200 and says how many tokens are left."""
    answer = json.loads((IK_SERVER / "too_long.json").read_text(encoding="utf-8"))
    with pytest.raises(EmbeddedError, match=r"E-prompt-too-long: the server cut the prompt of 2800 tokens to 752 here"):
        IK.read(answer, Asking([5] * 2800, 1, 2), "here")
