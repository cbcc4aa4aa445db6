"""Workloads: what one process of an arm is asked to do, and under which name it is judged."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Workload:
    """Prompt processing, token generation or both, at a depth. All figures are tokens.

    Attributes:
        n_prompt: Tokens of prompt processing (pp).
        n_gen: Tokens of token generation (tg).
        n_depth: Tokens already in the context before the clock starts.
    """

    n_prompt: int
    n_gen: int
    n_depth: int = 0

    @property
    def name(self) -> str:
        """E.g. ``pp512``, ``tg128``, ``pp512+tg128``, ``tg128.d4096``."""
        parts = [f"pp{self.n_prompt}"] if self.n_prompt else []
        parts += [f"tg{self.n_gen}"] if self.n_gen else []
        return "+".join(parts) + (f".d{self.n_depth}" if self.n_depth else "")

    @property
    def tokens(self) -> int:
        """Tokens inside the timed part; speed is this over the time."""
        return self.n_prompt + self.n_gen


@dataclass(frozen=True, slots=True)
class Prompt:
    """A named prompt text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class OutputProfile:
    """Prompts whose outputs are compared between arms.

    Attributes:
        name: Under which the check is known, e.g. ``greedy32``.
        prompts: What is asked.
        n_predict: Tokens generated greedily for each prompt.
        positions: Prompt positions whose logits enter the hash, per prompt.
    """

    name: str
    prompts: tuple[Prompt, ...]
    n_predict: int
    positions: int
