"""A profile's prompt as tokens: its text as it is, or as many tokens of it as were asked for."""

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


def tokens_digest(tokens: Sequence[int]) -> str:
    """Hash of token ids: equal for two arms that answer the same prompt, or give the same answer."""
    return hashlib.sha256(",".join(map(str, tokens)).encode()).hexdigest()
