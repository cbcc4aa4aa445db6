"""Answering a request as a server does, one at a time: the prompt's tokens in, greedy tokens out, each step timed.

What is inside the times: ``llama_decode`` and ``llama_synchronize``, choosing the most probable of the logits, and
writing the chosen token into the next batch. What is not: making the batches, turning tokens into text.
"""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bindings import Bindings, Engine
from .channel import Channel
from .profile_tokens import tokens_digest
from .profiles import ColdClock, FittedProfile


@dataclass(frozen=True, slots=True)
class Answered:
    """One answered request; times on the clock of ``time.perf_counter_ns``.

    Attributes:
        tokens: What was generated.
        start: The tokens were handed over.
        prefilled: The prompt was processed.
        first: The first token was chosen.
        last: The last one was.
    """

    tokens: tuple[int, ...]
    start: int
    prefilled: int
    first: int
    last: int


class Responder:
    """Answers requests in one context.

    Args:
        api: The library with its model.
        timed: What decodes: the library, or the library slowed down on purpose.
        context: A context with room for the requests.
        batch_size: Tokens handed over at once, at most.
    """

    def __init__(self, api: Bindings, timed: Engine, context: int, batch_size: int) -> None:
        self._api = api
        self._decode, self._synchronize = timed.decode, timed.synchronize
        self._context = context
        self._batch_size = batch_size
        self._rows: dict[int, NDArray[np.float32]] = {}

    def answer(self, prompt: Sequence[int], n_predict: int) -> Answered:
        """Answer a prompt in the cleared context: nothing of an earlier request is used again.

        Args:
            prompt: Its tokens.
            n_predict: Tokens to generate; a token that ends a text ends nothing.

        Raises:
            EmbeddedError: ``E-decode``.
        """
        whole = self._cut(prompt)
        steps = [self._api.batch([0], len(prompt) + step) for step in range(n_predict - 1)]
        self._api.clear(self._context, data=False)
        # The collector would pause some requests and not others.
        gc.collect()
        gc.disable()
        try:
            return self._timed(whole, steps)
        finally:
            gc.enable()

    def _cut(self, prompt: Sequence[int]) -> list[Any]:
        size = self._batch_size
        return [self._api.batch(prompt[at : at + size], at) for at in range(0, len(prompt), size)]

    def _timed(self, whole: Sequence[Any], steps: Sequence[Any]) -> Answered:
        clock = time.perf_counter_ns
        start = clock()
        for batch in whole:
            self._run(batch)
        self._synchronize(self._context)
        prefilled = clock()
        token = self._best(whole[-1].n_tokens - 1)
        first = clock()
        tokens = [token]
        for batch in steps:
            batch.token[0] = token
            self._run(batch)
            self._synchronize(self._context)
            token = self._best(0)
            tokens.append(token)
        last = clock()
        return Answered(tuple(tokens), start, prefilled, first, last)

    def _run(self, batch: Any) -> None:
        status = self._decode(self._context, batch)
        if status:
            raise self._api.decode_failed(status, f"in a request, at position {batch.pos[0]}")

    def _best(self, index: int) -> int:
        """The most probable token after a batch's token ``index``, the lowest id of equals."""
        address = self._api.logits_address(self._context, index)
        row = self._rows.get(address)
        if row is None:
            values = (ctypes.c_float * self._api.n_vocab).from_address(address)
            row = self._rows[address] = np.ctypeslib.as_array(values)
        return int(row.argmax())


def answer_all(
    responder: Responder, profiles: Sequence[FittedProfile], repetitions: int, clock: ColdClock, channel: Channel
) -> None:
    """Make the requests that profiles ask for, the first of the process first, and write a line of each."""
    for profile in profiles:
        if profile.plan.cold:
            answered = responder.answer(profile.tokens, profile.plan.n_predict)
            channel.emit("answer", {**_line(profile, answered), "cold_ns": clock.until(answered.first)})
        for _ in range(repetitions if profile.plan.warm else 0):
            channel.emit("answer", _line(profile, responder.answer(profile.tokens, profile.plan.n_predict)))


def _line(profile: FittedProfile, answered: Answered) -> dict[str, object]:
    return {
        "profile": profile.plan.name,
        "prompt_tokens": len(profile.tokens),
        "prompt_sha256": tokens_digest(profile.tokens),
        "predicted": len(answered.tokens),
        "predicted_sha256": tokens_digest(answered.tokens),
        "ttft_ns": answered.first - answered.start,
        "prefill_ns": answered.prefilled - answered.start,
        "decode_ns": answered.last - answered.first,
    }
