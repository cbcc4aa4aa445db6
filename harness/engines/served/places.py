"""What follows a context, by asking a server: tokens chosen greedily, and what was probable at each place.

A token that ends a text ends an answer, and what follows is asked for again, with that token in the prompt: so every
answer has the same length, as in the embedded child. A token that leaves half a character is not ranked by either
fork; its place is asked for once more with a plain token forced there, which takes nothing from what is ranked in
llama.cpp and a known amount in ik_llama.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .completions import Asking, Dialect, Generated, Ranked
from .errors import no_logprobs, wrong_answer
from .tails import can_tell, corrected, is_doubled, tells, unbiased

_PUSHES = (40.0, 80.0)
"""Nats by which a token is forced where the logits themselves are changed: above 87 a float of the others is zero."""
_FORCED = 1000.0
_WHOLE_VOCABULARY = 1 << 22
_WHOLE = 0.999
"""Probability of all tokens together, but for rounding: fewer were ranked because the vocabulary has no more."""

Send = Callable[[str, Mapping[str, Any], str], Mapping[str, Any]]
"""Path, body and what is being done, for messages; gives the answer's body."""


@dataclass(frozen=True, slots=True)
class Place:
    """A token, and what was ranked where it was chosen.

    Attributes:
        token: Its id.
        ranked: The most probable tokens there.
        exact: Their probabilities come from the whole vocabulary, and are right whatever a server does to its lists.
    """

    token: int
    ranked: Ranked
    exact: bool = False


@dataclass(slots=True)
class Places:
    """Asks one server.

    Attributes:
        send: Sends a request.
        dialect: How it is asked.
        top: Most probable tokens to name at each place.
        plain: A token whose text is whole characters.
        texts: Texts of tokens that were most probable somewhere, by id.
    """

    send: Send
    dialect: Dialect
    top: int
    plain: int
    texts: dict[int, str] = field(default_factory=dict, init=False)
    _doubled: bool | None = field(default=None, init=False)

    def follow(self, prompt: Sequence[int], count: int, doing: str) -> list[Place]:
        """The tokens that are generated after a prompt.

        Args:
            prompt: Token ids.
            count: How many.
            doing: For messages.

        Raises:
            EmbeddedError: Whatever goes wrong.
        """
        found: list[Place] = []
        wanted = count
        while len(found) < count:
            context = [*prompt, *(place.token for place in found)]
            generated = self._ask(Asking(context, min(wanted, count - len(found)), self.top), doing)
            more = self._aligned(context, generated, doing)
            if more is None:
                wanted = max(1, generated.count // 2)
                continue
            found += more
            wanted = count
        require_width([place.ranked for place in found], self.top, doing)
        return self._normalised(prompt, found, doing)

    def _aligned(self, context: Sequence[int], generated: Generated, doing: str) -> list[Place] | None:
        """The generated tokens with what was ranked; ``None`` where fewer must be asked for to know."""
        entries = generated.entries
        if len(entries) == generated.count:
            if generated.tokens is not None and generated.tokens != tuple(token for token, _ in entries):
                raise wrong_answer(doing, "the tokens that it generated and those that it ranks are not the same")
            return [Place(token, ranked) for token, ranked in entries]
        if generated.tokens is not None:
            return self._hidden_filled(context, generated.tokens, entries, doing)
        if generated.count > 1:
            return None
        ranked = self._forced(context, doing)
        return [Place(ranked.ids[0], ranked, exact=True)]

    def _hidden_filled(
        self, context: Sequence[int], tokens: Sequence[int], entries: Sequence[tuple[int, Ranked]], doing: str
    ) -> list[Place]:
        """All tokens are known, and some are not ranked: where the others belong is taken only if it is certain."""
        names = [token for token, _ in entries]
        first = _embedded(names, tokens)
        last = _embedded(names[::-1], tokens[::-1])
        if first is None or last is None:
            raise wrong_answer(doing, "it ranks tokens that it did not generate")
        certain = {
            at: ranked
            for at, end, (_, ranked) in zip(first, reversed(last), entries, strict=True)
            if at == len(tokens) - 1 - end
        }
        return [
            Place(token, certain.get(at) or self._forced([*context, *tokens[:at]], doing))
            for at, token in enumerate(tokens)
        ]

    def _forced(self, context: Sequence[int], doing: str) -> Ranked:
        """What is ranked after a context, whatever token would have been chosen there."""
        doing = f"{doing}, at a place of half a character"
        if not self.dialect.of_ik:
            asking = Asking(context, 1, self.top, ((self.plain, _FORCED),))
            return self._only(self._ask(asking, doing, greedy=False), doing)[1]
        for push in _PUSHES:
            asking = Asking(context, 1, _WHOLE_VOCABULARY, ((self.plain, push),))
            generated = self._ask(asking, doing)
            if generated.entries:
                token, ranked = self._only(generated, doing)
                if token == self.plain:
                    return _cut(unbiased(ranked, token, push), self.top)
        raise no_logprobs(doing, "the place is not ranked whatever is forced there")

    def _only(self, generated: Generated, doing: str) -> tuple[int, Ranked]:
        if len(generated.entries) != 1:
            raise no_logprobs(doing, f"{len(generated.entries)} places are ranked, asked 1")
        return generated.entries[0]

    def _ask(self, asking: Asking, doing: str, *, greedy: bool = True) -> Generated:
        answer = self.send(self.dialect.path, self.dialect.body(asking), doing)
        generated = self.dialect.read(answer, asking, doing, greedy=greedy)
        for _, ranked in generated.entries:
            self.texts.update(zip(ranked.ids, ranked.texts, strict=False))
        return generated

    def _normalised(self, prompt: Sequence[int], found: Sequence[Place], doing: str) -> list[Place]:
        """The places with probabilities that are of one kind in both forks."""
        if not self.dialect.of_ik:
            return list(found)
        self._learn(prompt, found, doing)
        if self._doubled is False:
            return list(found)
        return [place if place.exact else replace(place, ranked=corrected(place.ranked)) for place in found]

    def _learn(self, prompt: Sequence[int], found: Sequence[Place], doing: str) -> None:
        """Ask the place that tells most whether the tail is counted twice, once in the life of a server."""
        telling = [index for index, place in enumerate(found) if not place.exact and can_tell(place.ranked)]
        if self._doubled is not None or not telling:
            return
        at = max(telling, key=lambda index: tells(found[index].ranked))
        context = [*prompt, *(place.token for place in found[:at])]
        _, alone = self._only(self._ask(Asking(context, 1, 1), doing), doing)
        doubled = is_doubled(found[at].ranked, alone)
        if doubled is None:
            what = "the same place has other probabilities when fewer tokens are named"
            raise wrong_answer(doing, f"{what}: {alone.logprobs[0]:.4f} and {found[at].ranked.logprobs[0]:.4f}")
        self._doubled = doubled


def require_width(rows: Sequence[Ranked], top: int, doing: str) -> None:
    """As many tokens are ranked as were asked for, or all that there are, and as many at every place.

    Args:
        rows: What is ranked at some places.
        top: Tokens that were asked for.
        doing: Which request it is, for messages.

    Raises:
        EmbeddedError: ``E-logprobs-missing``.
    """
    widths = sorted({len(row.ids) for row in rows})
    if len(widths) > 1:
        raise no_logprobs(doing, f"{widths[0]} tokens are ranked at one place and {widths[-1]} at another")
    shares = [float(np.exp(np.array(row.logprobs)).sum()) for row in rows if row.finite]
    if widths[0] > top or (widths[0] < top and min(shares, default=0.0) < _WHOLE):
        raise no_logprobs(doing, f"{widths[0]} tokens are ranked at each place, asked {top}")


def _embedded(parts: Sequence[int], whole: Sequence[int]) -> list[int] | None:
    """Where a part of a sequence, in order, can stand in it: as early as possible."""
    places: list[int] = []
    at = 0
    for part in parts:
        while at < len(whole) and whole[at] != part:
            at += 1
        if at == len(whole):
            return None
        places.append(at)
        at += 1
    return places


def _cut(ranked: Ranked, top: int) -> Ranked:
    return Ranked(ranked.ids[:top], ranked.logprobs[:top])
