"""Prompts and answers as tokens, and the room they need; a child that only measures does without numpy for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .bindings import Bindings
from .errors import EmbeddedError
from .output_plan import OutputsPlan, Prompt
from .profile_tokens import led_through


@dataclass(frozen=True, slots=True)
class TokenizedPrompt:
    """A prompt as the model's tokenizer cuts it.

    Attributes:
        name: The prompt's name.
        tokens: Its ids, with the special tokens that the vocabulary adds; at least one.
        forced: Ids of the answer that are decoded after it, one at a time.
        generated: Tokens that are generated after it.
    """

    name: str
    tokens: tuple[int, ...]
    forced: tuple[int, ...]
    generated: int

    @property
    def cells(self) -> int:
        """Context cells that it fills with what follows it; the last generated token is not evaluated."""
        return len(self.tokens) + max(len(self.forced), self.generated - 1)


def tokenize_prompts(api: Bindings, plan: OutputsPlan, cells: int) -> list[TokenizedPrompt]:
    """Token ids of each prompt and of its answer.

    Args:
        api: The library with its model loaded.
        plan: What is to be produced.
        cells: Context cells that were asked for; 0: as many as it takes.

    Raises:
        EmbeddedError: ``E-tokenize``; ``E-prompt-empty`` where there is nothing to evaluate; ``E-prompt-too-long``
            where a prompt and what follows it do not fit in the context that was asked for or the model was trained
            for.
    """
    limits = [(cells, "context (n_ctx)"), (api.trained_cells(), "model's context")]
    tokenized = []
    for prompt in plan.prompts:
        tokens = _tokens(api, plan, prompt)
        for limit, what in limits:
            if limit and tokens.cells > limit:
                raise _too_long(tokens, limit, what)
        tokenized.append(tokens)
    return tokenized


def cells_needed(prompts: Iterable[TokenizedPrompt]) -> int:
    """Context cells for the longest prompt and what follows it."""
    return max((prompt.cells for prompt in prompts), default=0)


def _tokens(api: Bindings, plan: OutputsPlan, prompt: Prompt) -> TokenizedPrompt:
    begin, body = begin_and_body(api, prompt.text)
    answer = api.tokenize(prompt.answer, special=False)
    try:
        tokens, forced = led_through(body, begin, answer, count=prompt.tokens, forced=plan.forced)
    except ValueError as problem:
        raise EmbeddedError("E-prompt-empty", f"outputs.prompts: {prompt.name}: {problem}") from None
    return TokenizedPrompt(prompt.name, tuple(tokens), tuple(forced), plan.n_predict)


def begin_and_body(api: Bindings, text: str) -> tuple[list[int], list[int]]:
    """What every sequence of the vocabulary begins with, and the tokens of a text without it.

    Raises:
        EmbeddedError: ``E-tokenize``.
    """
    first = api.first_token()
    begin = [] if first is None else [first]
    tokens = api.tokenize(text)
    return begin, tokens[len(begin) :] if tokens[: len(begin)] == begin else tokens


def _too_long(prompt: TokenizedPrompt, limit: int, what: str) -> EmbeddedError:
    return EmbeddedError(
        "E-prompt-too-long",
        f"outputs.prompts: {prompt.name} has {len(prompt.tokens)} tokens and needs {prompt.cells} cells with"
        f" {prompt.generated} to generate and {len(prompt.forced)} to force, but the {what} has {limit}:"
        " shorten it, or set its tokens lower",
    )
