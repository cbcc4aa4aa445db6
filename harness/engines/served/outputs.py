"""Outputs of a server: what it generates after each prompt, and what it ranks at some places of a given answer.

A server gives no probabilities inside a prompt. A place of the answer is therefore the end of a prompt of its own: the
prompt, the answer up to there, and one token to generate. Each costs the whole prompt again, so there are few of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.domain.outputs import Source
from harness.engines.embedded.channel import Channel
from harness.engines.embedded.errors import EmbeddedError
from harness.engines.embedded.flags import IK as IK_FORK
from harness.engines.embedded.output_plan import OutputsPlan, Prompt
from harness.engines.embedded.profile_tokens import led_through
from harness.ranking import NO_TOKEN, Table, pack

from .completions import IK, MAINLINE, Ranked
from .places import Places, require_width
from .server import Server

_FORCED_PLACES = 8
"""Places of an answer that are asked for, per prompt, at most."""
_PLAIN = "a"


def emit_outputs(server: Server, fork: str, plan: OutputsPlan, channel: Channel) -> None:
    """Ask for what a plan wants, prompt after prompt, and write a line of each.

    Raises:
        EmbeddedError: Whatever ends the child early; lines written before it stand.
    """
    begin = server.tokenize("")
    plain = server.tokenize(_PLAIN, special=False)
    if not plain:
        raise EmbeddedError("E-tokenize", f"outputs: the text {_PLAIN!r} has no token")
    places = Places(server.ask, IK if fork == IK_FORK else MAINLINE, plan.top, plain[-1])
    for prompt in plan.prompts:
        channel.emit("output", _output(server, places, plan, prompt, begin))


def forced_places(count: int) -> tuple[int, ...]:
    """Which tokens of an answer are places: evenly spaced, the last one among them.

    Args:
        count: Tokens of the answer.
    """
    places = min(count, _FORCED_PLACES)
    return tuple((number + 1) * count // places - 1 for number in range(places))


def _output(
    server: Server, places: Places, plan: OutputsPlan, prompt: Prompt, begin: Sequence[int]
) -> dict[str, object]:
    tokens, answer = _tokens(server, plan, prompt, begin)
    places.texts.clear()
    greedy = places.follow(tokens, plan.n_predict, f"at prompt {prompt.name}")
    at = forced_places(len(answer))
    doing = f"at prompt {prompt.name}, led through its answer"
    forced = [places.follow([*tokens, *answer[: index + 1]], 1, doing)[0] for index in at]
    rows = [place.ranked for place in (*greedy, *forced)]
    require_width(rows, plan.top, f"at prompt {prompt.name}")
    generated = [place.token for place in greedy]
    return {
        "prompt": prompt.name,
        "tokens": tokens,
        "greedy": generated,
        "forced": answer,
        "forced_at": at,
        "margins": [_margin(place.ranked) for place in greedy],
        "text": server.detokenize(generated),
        "logits_sha256": "",
        "finite": all(row.finite for row in rows),
        "source": Source.SERVER,
        "pieces": [[token, text] for token, text in sorted(places.texts.items()) if text],
        "ranks": {
            "prefill": None,
            "greedy": _ranks(rows[: len(greedy)]),
            "forced": _ranks(rows[len(greedy) :]) if forced else None,
        },
    }


def _tokens(server: Server, plan: OutputsPlan, prompt: Prompt, begin: Sequence[int]) -> tuple[list[int], list[int]]:
    tokens = server.tokenize(prompt.text, named=False)
    body = tokens[len(begin) :] if tokens[: len(begin)] == list(begin) else tokens
    answer = server.tokenize(prompt.answer, special=False, named=False) if prompt.answer else []
    try:
        return led_through(body, begin, answer, count=prompt.tokens, forced=plan.forced)
    except ValueError as problem:
        raise EmbeddedError("E-prompt-empty", f"outputs.prompts: {prompt.name}: {problem}") from None


def _margin(ranked: Ranked) -> float | None:
    if not ranked.finite:
        return None
    return ranked.logprobs[0] - ranked.logprobs[1] if len(ranked.ids) > 1 else 0.0


def _ranks(rows: Sequence[Ranked]) -> dict[str, object]:
    width = len(rows[0].ids)
    ids = [row.ids if row.finite else (NO_TOKEN,) * width for row in rows]
    logprobs = [row.logprobs if row.finite else (np.nan,) * width for row in rows]
    ranks = pack(Table(np.array(ids, np.int32), np.array(logprobs, np.float32)))
    return {"positions": ranks.positions, "top": ranks.top, "packed": ranks.packed}
