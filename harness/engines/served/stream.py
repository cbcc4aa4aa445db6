"""A streamed answer, read: server-sent events to objects, objects to the times that they tell."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_NS_PER_MS = 1e6
_LAST_WORD = b"[DONE]"


class StreamProblem(Exception):  # noqa: N818 - reads as what it is at the raise
    """A stream that is no whole answer; the text says why."""


class ErrorEvent(Exception):  # noqa: N818 - as above
    """The server says that it failed.

    Attributes:
        status: Its code, as of HTTP.
        said: Its message.
    """

    def __init__(self, status: int, said: str) -> None:
        super().__init__(status, said)
        self.status = status
        self.said = said


@dataclass(frozen=True, slots=True)
class StreamedAnswer:
    """One answer. Times are ns.

    Attributes:
        prompt_tokens: Tokens of prompt that the server processed.
        cached_tokens: Tokens of prompt that it took from a cache instead.
        predicted: Tokens that it generated.
        first_ns: When the first token was there, on the clock that was given.
        prefill_ns: What the server says of the prompt's processing.
        decode_ns: What it says of the time from the first token to the last.
    """

    prompt_tokens: int
    cached_tokens: int
    predicted: int
    first_ns: int
    prefill_ns: int
    decode_ns: int


def events(lines: Iterable[bytes]) -> Iterator[Mapping[str, Any]]:
    """The events of a stream, one object each. Comments (pings) and fields that are not data are passed over.

    Args:
        lines: The stream's lines, their ends included.

    Raises:
        StreamProblem: The stream ends inside an event, or an event is not one JSON object.
    """
    parts: list[bytes] = []
    for line in lines:
        if not line.endswith(b"\n"):
            raise StreamProblem(f"it ends in the middle of a line: {line[-60:]!r}")
        text = line.rstrip(b"\r\n")
        name, colon, value = text.partition(b":")
        if colon and name in (b"data", b"error"):
            # Older servers of both forks send errors under a field of their own.
            wrapped = value.removeprefix(b" ")
            parts.append(b'{"error":' + wrapped + b"}" if name == b"error" else wrapped)
        elif not text and parts:
            event, parts = b"\n".join(parts), []
            if event != _LAST_WORD:
                yield _object(event)
    if parts:
        raise StreamProblem("it ends in the middle of an event")


def read_answer(stream: Iterable[Mapping[str, Any]], clock: Callable[[], int]) -> StreamedAnswer:
    """Read an answer to its end.

    Args:
        stream: Its events; each is taken as having arrived when it is handed over.
        clock: The time in ns.

    Raises:
        StreamProblem: The answer has no end, or its end says nothing of the times.
        ErrorEvent: The server says that it failed.
    """
    arrivals: list[int] = []
    for event in stream:
        now = clock()
        _refuse_error(event)
        if event.get("stop") is True:
            return _answer(event, arrivals, now)
        if event.get("content") or event.get("tokens"):
            arrivals.append(now)
    raise StreamProblem(f"it has no end after {len(arrivals)} events with text")


def gathered(stream: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A streamed ``/v1/completions``, in the shape of one that is sent at once.

    It is read until it has ended and told its usage, no further: where all that ik_llama.cpp's server (8337e4cd) has to
    send is that last event, neither ``[DONE]`` nor the end of the connection follows it.

    Args:
        stream: Its events. The last one has ``usage`` and ``timings``.

    Returns:
        One choice with all ``logprobs`` (``None`` where no event has any) and the ``finish_reason``, and the other
        fields as they came last; without the text.

    Raises:
        StreamProblem: The answer has no end.
        ErrorEvent: The server says that it failed.
    """
    fields: dict[str, Any] = {}
    entries: list[Any] = []
    finish = None
    for event in stream:
        _refuse_error(event)
        fields.update(event)
        for choice in _choices(event):
            logprobs = choice.get("logprobs")
            if isinstance(logprobs, dict):
                content = logprobs.get("content")
                # What is no list is no entry either: whoever reads the entries says so.
                entries += content if isinstance(content, list) else [content]
            finish = choice.get("finish_reason") or finish
        if finish and fields.get("usage"):
            break
    if finish is None:
        raise StreamProblem(f"it has no end after {len(entries)} ranked tokens")
    choice = {"logprobs": {"content": entries} if entries else None, "finish_reason": finish}
    return {**fields, "choices": [choice]}


def error_of(body: Any) -> tuple[int, str]:
    """Code and message of an error that a server sends, in whatever shape; code 0 where it says none."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return 0, str(error)[:500]
    code = error.get("code")
    said = error.get("message") or json.dumps(error)
    return code if isinstance(code, int) and not isinstance(code, bool) else 0, str(said)[:500]


def _choices(event: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    choices = event.get("choices", [])
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        raise StreamProblem(f"an event has no choices: {str(choices)[:60]}")
    return choices


def _object(event: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(event)
    except (ValueError, RecursionError):
        raise StreamProblem(f"an event is not JSON: {event[:60]!r}") from None
    if not isinstance(value, dict):
        raise StreamProblem(f"an event is no object: {event[:60]!r}")
    return value


def _refuse_error(event: Mapping[str, Any]) -> None:
    if event.get("error"):
        code, said = error_of(event)
        raise ErrorEvent(code or 500, said)


def _answer(last: Mapping[str, Any], arrivals: list[int], end: int) -> StreamedAnswer:
    timings = last.get("timings")
    if not isinstance(timings, dict):
        raise StreamProblem("its end has no timings")
    predicted, decode_ns = _count(timings, "predicted_n"), _ns(timings, "predicted_ms")
    # Servers hold text back while it is half a character. Where every token came by itself the first one is the first
    # that came; otherwise the server knows better when it had it.
    first = arrivals[0] if arrivals and len(arrivals) == predicted else end - decode_ns
    return StreamedAnswer(
        prompt_tokens=_count(timings, "prompt_n"),
        cached_tokens=_count(timings, "cache_n", absent=0),
        predicted=predicted,
        first_ns=first,
        prefill_ns=_ns(timings, "prompt_ms"),
        decode_ns=decode_ns,
    )


def _count(timings: Mapping[str, Any], name: str, absent: int | None = None) -> int:
    value = timings.get(name, absent)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise StreamProblem(f"its timings have no count {name}: {value!r}")
    return value


def _ns(timings: Mapping[str, Any], name: str) -> int:
    value = timings.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value) or value < 0:
        raise StreamProblem(f"its timings have no time {name}: {value!r}")
    return round(value * _NS_PER_MS)
