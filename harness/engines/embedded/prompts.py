"""Prompts as tokens, and the room they need; apart from ``outputs``: a child that only measures does without numpy."""

from __future__ import annotations

from dataclasses import dataclass

from .bindings import Bindings
from .errors import EmbeddedError
from .request import OutputsPlan, Prompt


@dataclass(frozen=True, slots=True)
class TokenizedPrompt:
    """A prompt as the model's tokenizer cuts it.

    Attributes:
        name: The prompt's name.
        tokens: Its ids, with the special tokens that the vocabulary adds.
    """

    name: str
    tokens: tuple[int, ...]


def tokenize_prompts(api: Bindings, plan: OutputsPlan, batch_size: int) -> list[TokenizedPrompt]:
    """Token ids of each prompt.

    Args:
        api: The library with its model loaded.
        plan: What is to be produced.
        batch_size: Tokens that one batch takes.

    Raises:
        EmbeddedError: ``E-tokenize``; ``E-prompt-too-long`` where a prompt does not fit in one batch, or with its
            answer not in the context the model was trained for.
    """
    trained = api.trained_cells()
    tokenized = []
    for prompt in plan.prompts:
        tokens = api.tokenize(prompt.text)
        if len(tokens) > batch_size:
            raise _too_long(prompt, len(tokens), f"it is evaluated in one batch, and a batch has {batch_size} (flag b)")
        if trained and len(tokens) + plan.n_predict > trained:
            raise _too_long(prompt, len(tokens), f"with {plan.n_predict} to predict the model's context is {trained}")
        tokenized.append(TokenizedPrompt(prompt.name, tuple(tokens)))
    return tokenized


def cells_needed(plan: OutputsPlan, prompts: list[TokenizedPrompt]) -> int:
    """Context cells for the longest prompt and its answer."""
    return max(len(prompt.tokens) for prompt in prompts) + plan.n_predict


def _too_long(prompt: Prompt, count: int, limit: str) -> EmbeddedError:
    return EmbeddedError("E-prompt-too-long", f"outputs.prompts: {prompt.name} has {count} tokens, but {limit}")
