"""The measuring loop, one for both forks, with llama-bench's meaning of prompt processing and token generation.

Every repetition is reported: which ones are warm-up is for the judge to say. Inside the timed part there is nothing
but calls of ``llama_decode`` and ``llama_synchronize`` on batches made before.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .bindings import Engine
from .request import Workload


@dataclass(frozen=True, slots=True)
class RepetitionTokens:
    """Random tokens of one repetition."""

    depth: list[int]
    prompt: list[int]
    generated: list[int]


def draw_tokens(load: Workload, n_vocab: int, first: int | None, seed: int, repetition: int) -> RepetitionTokens:
    """Tokens of one repetition: a function of the arguments alone, so that both arms of a contrast see the same.

    Args:
        load: The workload; its name does not matter.
        n_vocab: Size of the vocabulary they are drawn from.
        first: Token that every sequence and every generation begins with, as in llama-bench; ``None`` for none.
        seed: Of the request.
        repetition: Counted from 0.
    """
    source = random.Random(f"{seed}/{load.n_prompt}/{load.n_gen}/{load.n_depth}/{repetition}")  # noqa: S311 - no secret

    def draw(count: int) -> list[int]:
        tokens = source.choices(range(n_vocab), k=count)
        if tokens and first is not None:
            tokens[0] = first
        return tokens

    return RepetitionTokens(depth=draw(load.n_depth), prompt=draw(load.n_prompt), generated=draw(load.n_gen))


def measure(engine: Engine, context: int, load: Workload, *, batch_size: int, repetitions: int, seed: int) -> list[int]:
    """Time a workload.

    Args:
        engine: The library with its model.
        context: A context with room for the workload.
        load: What to time.
        batch_size: Tokens handed over at once, at most.
        repetitions: How often; each begins with an empty context.
        seed: Of the random tokens.

    Returns:
        Nanoseconds of each repetition.

    Raises:
        EmbeddedError: ``E-decode``: a decode did not return 0; there is no speed then.
    """
    samples: list[int] = []
    first = engine.first_token()
    # The collector would pause some repetitions and not others.
    gc.collect()
    gc.disable()
    try:
        for repetition in range(repetitions):
            tokens = draw_tokens(load, engine.n_vocab, first, seed, repetition)
            samples.append(_measure_once(engine, context, load, tokens, batch_size))
    finally:
        gc.enable()
    return samples


def _measure_once(engine: Engine, context: int, load: Workload, tokens: RepetitionTokens, batch_size: int) -> int:
    depth = _cut(engine, tokens.depth, 0, batch_size)
    prompt = _cut(engine, tokens.prompt, load.n_depth, batch_size)
    generated = _cut(engine, tokens.generated, load.n_depth + load.n_prompt, 1)
    engine.clear(context, data=False)
    status, _ = _run(engine.decode, engine.synchronize, context, depth, [])
    elapsed = 0
    if not status:
        status, elapsed = _run(engine.decode, engine.synchronize, context, prompt, generated)
    if status:
        raise engine.decode_failed(status, f"in workload {load.name} ({load.positions} positions)")
    return elapsed


def _cut(engine: Engine, tokens: Sequence[int], first: int, size: int) -> list[Any]:
    return [engine.batch(tokens[at : at + size], first + at) for at in range(0, len(tokens), size)]


def _run(
    decode: Callable[[int, Any], int],
    synchronize: Callable[[int], None],
    context: int,
    prompt: Sequence[Any],
    generated: Sequence[Any],
) -> tuple[int, int]:
    """Run batches; returns the first status that is not 0 (else 0) and the elapsed nanoseconds."""
    clock = time.perf_counter_ns
    start = clock()
    for batch in prompt:
        status = decode(context, batch)
        if status:
            return status, 0
    if prompt:
        synchronize(context)
    for batch in generated:
        status = decode(context, batch)
        if status:
            return status, 0
        synchronize(context)
    return 0, clock() - start
