"""A prompt as tokens: its text as it is, or as many tokens of it as were asked for, and the answer that follows it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def fitted(body: Sequence[int], begin: Sequence[int], count: int) -> list[int]:
    """A prompt of a certain length: the *last* tokens of a text, which is repeated where it is too short.

    What is asked stands at the end of a prompt, so that the beginning is what has to go.

    Args:
        body: Tokens of the text alone, at least one.
        begin: Tokens that every sequence of the vocabulary begins with; they count, and are kept.
        count: Tokens wanted, more than ``begin`` has; 0: the text as it is.
    """
    if not count:
        return [*begin, *body]
    room = count - len(begin)
    times = -(-room // len(body))
    return [*begin, *(list(body) * times)[-room:]]


def led_through(
    body: Sequence[int], begin: Sequence[int], answer: Sequence[int], *, count: int, forced: int
) -> tuple[list[int], list[int]]:
    """A prompt whose outputs are compared, and the tokens that are decoded one at a time after it.

    An empty prompt is what every sequence of the vocabulary begins with. Where that is nothing, the first token of the
    answer takes its place.

    Args:
        body: Tokens of the prompt's text alone.
        begin: Tokens that every sequence of the vocabulary begins with.
        answer: Tokens of the answer alone.
        count: Tokens of prompt wanted, as in ``fitted``.
        forced: Tokens of the answer that are wanted, at most.

    Raises:
        ValueError: There is no token to evaluate, or none to repeat; the text says so.
    """
    if body and (not count or count > len(begin)):
        return fitted(body, begin, count), list(answer[:forced])
    if count > len(begin):
        raise ValueError(f"{count} tokens are asked for, and its text has none to repeat")
    if begin:
        return list(begin), list(answer[:forced])
    if not answer:
        raise ValueError("it is empty, the vocabulary begins sequences with nothing, and there is no answer to force")
    return [answer[0]], list(answer[1 : forced + 1])


def tokens_digest(tokens: Sequence[int]) -> str:
    """Hash of token ids: equal for two arms that answer the same prompt, or give the same answer."""
    return hashlib.sha256(",".join(map(str, tokens)).encode()).hexdigest()
