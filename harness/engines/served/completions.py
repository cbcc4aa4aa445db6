"""Completions with the probabilities of the most probable tokens: how each fork is asked, and what it answers.

llama.cpp answers ``/completion`` with the ids of all tokens and, for each token after which the text is whole
characters, the most probable tokens at its place. ik_llama.cpp's ``/completion`` names no ids; its ``/v1/completions``
does, in the same shape, but of such tokens alone (both read in the sources: llama.cpp b11434, ik_llama.cpp 8337e4cd).
It is asked for a stream: what it sends at once has to be valid UTF-8, and half a character among the ranked tokens'
texts makes an error of it; in a stream it replaces them.

Nothing is asked to ignore the end of a text: ik_llama.cpp takes the end token out of the logits themselves for that,
and its probabilities would be of another distribution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeGuard

from .errors import cut_prompt, no_logprobs, wrong_answer

_GREEDY: Mapping[str, Any] = {
    "temperature": 0.0,
    "top_k": 1,
    "seed": 42,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "dry_multiplier": 0.0,
    "mirostat": 0,
    "xtc_probability": 0.0,
    "cache_prompt": False,
    "stream": False,
    "post_sampling_probs": False,
}
"""Said in full: defaults of both forks moved."""
_LEAST = -745.0
"""Logarithm of the smallest number above zero: for a probability of zero both forks write the lowest float."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """The most probable tokens at one place, as the server says, most probable first.

    Attributes:
        ids: Their ids.
        logprobs: Natural logarithms of their probabilities; NaN where the server's were no numbers.
        texts: Of the first two, for a person to read; empty where the server says none.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    texts: tuple[str, ...] = ()

    @property
    def finite(self) -> bool:
        """Whether the logits held no NaN and no infinity."""
        return not any(math.isnan(value) for value in self.logprobs)


@dataclass(frozen=True, slots=True)
class Generated:
    """What a request came to.

    Attributes:
        tokens: Ids of all generated tokens; ``None``: the fork does not say them.
        count: How many were generated.
        entries: Of the tokens that left whole characters, in order: id, and what was ranked at its place.
        ended: A token that ends a text ended the answer.
    """

    tokens: tuple[int, ...] | None
    count: int
    entries: tuple[tuple[int, Ranked], ...]
    ended: bool


@dataclass(frozen=True, slots=True)
class Asking:
    """One request.

    Attributes:
        prompt: Token ids.
        n_predict: Tokens to generate.
        top: Most probable tokens to name at each place.
        bias: Added to the logits of tokens, by id.
    """

    prompt: Sequence[int]
    n_predict: int
    top: int
    bias: tuple[tuple[int, float], ...] = ()

    @property
    def body(self) -> dict[str, Any]:
        """What both forks are told alike."""
        bias = [list(each) for each in self.bias]
        return {"prompt": list(self.prompt), "n_predict": self.n_predict, "logit_bias": bias, **_GREEDY}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a fork is asked and how it answers.

    Attributes:
        path: Where requests go.
        of_ik: Whether it is ik_llama.cpp.
    """

    path: str
    of_ik: bool

    def body(self, asking: Asking) -> Mapping[str, Any]:
        """The request's body."""
        if self.of_ik:
            return {**asking.body, "logprobs": asking.top, "stream": True, "stream_options": {"include_usage": True}}
        return {**asking.body, "n_probs": asking.top, "return_tokens": True}

    def read(self, answer: Mapping[str, Any], asking: Asking, doing: str, *, greedy: bool = True) -> Generated:
        """Make sense of an answer.

        Args:
            answer: The response's body.
            asking: What was asked.
            doing: Which request it is, for messages.
            greedy: Each token has to be the most probable one that is listed.

        Raises:
            EmbeddedError: ``E-answer-mismatch``, ``E-logprobs-missing``, ``E-prompt-too-long``: it is no answer to
                what was asked.
        """
        found = _of_ik(answer, doing) if self.of_ik else _of_mainline(answer, doing)
        _require_work(answer, asking, found, doing, of_ik=self.of_ik)
        if greedy:
            _require_greedy(found.entries, doing)
        return found


MAINLINE = Dialect("/completion", of_ik=False)
IK = Dialect("/v1/completions", of_ik=True)


def _of_mainline(answer: Mapping[str, Any], doing: str) -> Generated:
    tokens = answer.get("tokens")
    if not isinstance(tokens, list) or not tokens or not all(_is_id(token) for token in tokens):
        raise wrong_answer(doing, f"it names no ids of the tokens that it generated: tokens is {str(tokens)[:60]}")
    entries = _entries(answer.get("completion_probabilities", []), doing)
    return Generated(tuple(tokens), len(tokens), entries, answer.get("stop_type") == "eos")


def _of_ik(answer: Mapping[str, Any], doing: str) -> Generated:
    choice = _first(answer.get("choices"), doing)
    logprobs = choice.get("logprobs")
    # Where no token left a whole character there is no list either.
    content = logprobs.get("content") if isinstance(logprobs, dict) else []
    count = _mapping(answer.get("usage"), doing).get("completion_tokens")
    if not _is_id(count):
        raise wrong_answer(doing, f"it does not say how many tokens it generated: {count!r}")
    return Generated(None, count, _entries(content, doing), choice.get("finish_reason") == "stop")


def _require_work(answer: Mapping[str, Any], asking: Asking, found: Generated, doing: str, *, of_ik: bool) -> None:
    """The whole prompt and no other one was processed, and as many tokens generated as asked."""
    said = _mapping(answer.get("usage"), doing).get("prompt_tokens") if of_ik else answer.get("tokens_evaluated")
    if _is_id(said) and said < len(asking.prompt):
        raise cut_prompt(doing, said, len(asking.prompt))
    if said != len(asking.prompt):
        raise wrong_answer(doing, f"it answers a prompt of {said} tokens, asked {len(asking.prompt)}")
    timings = answer.get("timings")
    processed = timings.get("prompt_n", said) if isinstance(timings, dict) else said
    if processed != said:
        raise wrong_answer(doing, f"it processed {processed} tokens of the prompt, asked {said}: it used a cache")
    if answer.get("truncated") is True:
        raise wrong_answer(doing, "it cut the prompt or the answer short")
    short = found.count < asking.n_predict and not found.ended
    if short or found.count > asking.n_predict or not found.count:
        raise wrong_answer(doing, f"it generated {found.count} tokens, asked {asking.n_predict}")
    if len(found.entries) > found.count:
        raise wrong_answer(doing, f"it ranks tokens at {len(found.entries)} places of {found.count}")


def _entries(values: Any, doing: str) -> tuple[tuple[int, Ranked], ...]:
    if not isinstance(values, list):
        raise no_logprobs(doing, f"a list of probabilities is {str(values)[:60]}")
    return tuple(_entry(_mapping(value, doing), doing) for value in values)


def _entry(value: Mapping[str, Any], doing: str) -> tuple[int, Ranked]:
    token = value.get("id")
    if not _is_id(token):
        raise wrong_answer(doing, f"a token has no id: {str(value)[:60]}")
    return token, _ranked(value.get("top_logprobs"), doing)


def _require_greedy(entries: Sequence[tuple[int, Ranked]], doing: str) -> None:
    for token, ranked in entries:
        if ranked.finite and token not in _best(ranked):
            what = f"it chose token {token}, and token {ranked.ids[0]} is more probable: it does not generate greedily"
            raise wrong_answer(doing, what)


def _best(ranked: Ranked) -> set[int]:
    """The most probable token, and those that are as probable."""
    return {token for token, value in zip(ranked.ids, ranked.logprobs, strict=True) if value == ranked.logprobs[0]}


def _ranked(values: Any, doing: str) -> Ranked:
    if not isinstance(values, list) or not values:
        raise no_logprobs(doing, f"top_logprobs is {str(values)[:60]}")
    listed = [_mapping(value, doing) for value in values]
    ids = tuple(token for value in listed if _is_id(token := value.get("id")))
    if len(ids) < len(listed):
        raise wrong_answer(doing, "a ranked token has no id")
    twice = next((token for token in ids if ids.count(token) > 1), None) if len(set(ids)) < len(ids) else None
    if twice is not None:
        raise wrong_answer(doing, f"it ranks token {twice} twice at one place")
    logprobs = tuple(_logprob(value, doing) for value in listed)
    if any(later > earlier for earlier, later in pairwise(logprobs)):
        raise wrong_answer(doing, "the ranked tokens are not in order of their probabilities")
    return Ranked(ids, logprobs, tuple(str(value.get("token", "")) for value in listed[:2]))


def _logprob(value: Mapping[str, Any], doing: str) -> float:
    """A logarithm of a probability; JSON has no word for NaN, and the forks write ``null``."""
    found = value.get("logprob", "")
    if found is None:
        return math.nan
    if not isinstance(found, int | float) or isinstance(found, bool):
        raise no_logprobs(doing, f"a ranked token has no logprob: {str(value)[:60]}")
    if found > 1e-4:  # noqa: PLR2004 - a probability above 1, but for rounding
        raise wrong_answer(doing, f"a log-probability is {found:g}")
    return min(max(float(found), _LEAST), 0.0)


def _first(values: Any, doing: str) -> Mapping[str, Any]:
    if not isinstance(values, list) or len(values) != 1:
        raise wrong_answer(doing, f"it has not one choice: {str(values)[:60]}")
    return _mapping(values[0], doing)


def _mapping(value: Any, doing: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise wrong_answer(doing, f"an object is missing: {str(value)[:60]}")
    return value


def _is_id(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
