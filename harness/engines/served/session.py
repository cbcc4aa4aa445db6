"""One child from request to last line: start the server, wait, ask, time, end it."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.engines.embedded.channel import Channel
from harness.engines.embedded.errors import EmbeddedError
from harness.engines.embedded.profile_tokens import fitted, tokens_digest
from harness.engines.embedded.request import ProfilePlan

from .errors import wrong_answer
from .request import Request
from .server import Server
from .stream import StreamedAnswer

_BUILD_INFO = re.compile(r"b?(?P<number>\d+)[-\s(]+(?P<commit>[0-9a-z]+)")
_SAMPLING: Mapping[str, Any] = {
    "temperature": 0.0,
    "seed": 42,
    "ignore_eos": True,
    "cache_prompt": False,
    "stream": True,
    "return_tokens": True,
}


@dataclass(frozen=True, slots=True)
class _Asked:
    """A profile with its prompt as token ids of this model."""

    plan: ProfilePlan
    tokens: list[int]

    @property
    def body(self) -> Mapping[str, Any]:
        return {"prompt": self.tokens, "n_predict": self.plan.n_predict, **_SAMPLING}


def run(request: Request, channel: Channel) -> None:
    """Do what a request asks and write a line for each thing done.

    Raises:
        EmbeddedError: Whatever ends the child early; lines written before it stand.
    """
    with Server(request.argv, request.environment, request.deadline_s) as server:
        server.wait_until_ready()
        ready = time.perf_counter_ns()
        _introduce(server, request, channel, ready)
        profiles = [_fit(server, plan) for plan in request.profiles]
        own_ns = time.perf_counter_ns() - ready
        for profile in profiles:
            _ask(server, profile, request.repetitions, channel, server.started + own_ns)
        if request.outputs is not None:
            from .outputs import emit_outputs  # noqa: PLC0415 - it brings numpy, which times nothing and takes time

            emit_outputs(server, request.fork, request.outputs, channel)
    channel.emit("done", {})


def _introduce(server: Server, request: Request, channel: Channel, ready: int) -> None:
    properties = server.properties(request.model)
    slots = properties.get("total_slots", 1)
    if slots != 1:
        raise wrong_answer("when asked for its properties", f"it has {slots} slots, asked 1")
    found = _BUILD_INFO.match(str(properties.get("build_info", "")))
    channel.emit("hello", {"pid": server.pid, **({} if found is None else _build(found))})
    channel.emit("loaded", {"load_ns": ready - server.started, "n_ctx": _cells(properties)})


def _build(found: re.Match[str]) -> dict[str, object]:
    return {"build_number": int(found["number"]), "build_commit": found["commit"]}


def _cells(properties: Mapping[str, Any]) -> object:
    settings = properties.get("default_generation_settings")
    return settings.get("n_ctx") if isinstance(settings, dict) else None


def _fit(server: Server, plan: ProfilePlan) -> _Asked:
    begin = server.tokenize("")
    tokens = server.tokenize(plan.text)
    body = tokens[len(begin) :] if tokens[: len(begin)] == begin else tokens
    if not body or 0 < plan.prompt_tokens <= len(begin):
        raise EmbeddedError("E-tokenize", f"profiles: {plan.name}: no token of its text is left to answer")
    return _Asked(plan, fitted(body, begin, plan.prompt_tokens))


def _ask(server: Server, profile: _Asked, repetitions: int, channel: Channel, started: int) -> None:
    """The first request of the process, then warm ones, as the profile wants."""
    name = profile.plan.name
    if profile.plan.cold:
        line, first = _answered(server, profile, f"in the first request of {name}")
        channel.emit("answer", {**line, "cold_ns": first - started})
    for number in range(repetitions if profile.plan.warm else 0):
        line, _ = _answered(server, profile, f"in request {number + 1} of {repetitions} of {name}")
        channel.emit("answer", line)


def _answered(server: Server, profile: _Asked, doing: str) -> tuple[dict[str, object], int]:
    """The line of a request, and when its first token was there."""
    sent, answer = server.complete(profile.body, doing)
    _require_work(profile, answer, doing)
    line: dict[str, object] = {
        "profile": profile.plan.name,
        "prompt_tokens": answer.prompt_tokens,
        "prompt_sha256": tokens_digest(profile.tokens),
        "predicted": answer.predicted,
        "ttft_ns": answer.first_ns - sent,
        "prefill_ns": answer.prefill_ns,
        "decode_ns": answer.decode_ns,
    }
    return line, answer.first_ns


def _require_work(profile: _Asked, answer: StreamedAnswer, doing: str) -> None:
    """The server did all the work that was asked: no shorter prompt, nothing from a cache, no earlier end."""
    if answer.prompt_tokens != len(profile.tokens) or answer.cached_tokens:
        cached = f" and took {answer.cached_tokens} from a cache" if answer.cached_tokens else ""
        what = f"it processed {answer.prompt_tokens} tokens of prompt{cached}, asked {len(profile.tokens)}"
        raise wrong_answer(doing, what)
    if answer.predicted != profile.plan.n_predict:
        raise wrong_answer(doing, f"it generated {answer.predicted} tokens, asked {profile.plan.n_predict}")
