"""Workloads: what one process of an arm is asked to do, and under which name it is judged."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from harness.domain.canonical import digest
from harness.domain.outputs import Variation


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


class Metric(StrEnum):
    """What is measured of a request, each a workload of its own."""

    COLD = "cold"
    """Start of the process to the first token of its first request, the model's loading included."""
    TTFT = "ttft"
    """Request to first token, in a process that has answered before."""
    PREFILL = "prefill"
    """Prompt tokens over the time that they take."""
    DECODE = "decode"
    """Tokens after the first over the time that they take."""
    PEAK = "peak"
    """Peak resident memory of the process that answers: asked by memory limits, not timed."""

    @property
    def is_time(self) -> bool:
        """Whether it is a time to the first token, shown in ms; the others are speeds."""
        return self in (Metric.COLD, Metric.TTFT)


@dataclass(frozen=True, slots=True)
class PromptProfile:
    """A request as users make it: a prompt of a certain kind, and how much is generated.

    Attributes:
        name: E.g. ``chat``.
        text: The prompt.
        n_predict: Tokens generated, at least 2; the end-of-text token ends nothing.
        prompt_tokens: Tokens of prompt: the text's last ones, the text repeated where it is shorter; 0: the text as it
            is.
    """

    name: str
    text: str
    n_predict: int
    prompt_tokens: int = 0

    @property
    def identity(self) -> str:
        """Hash of what is asked; the name does not matter."""
        return digest([self.text, self.n_predict, self.prompt_tokens])


@dataclass(frozen=True, slots=True)
class ProfileWorkload:
    """One measured quantity of a profile.

    Attributes:
        profile: The request.
        metric: What is measured of it.
    """

    profile: PromptProfile
    metric: Metric

    @property
    def name(self) -> str:
        """E.g. ``chat.ttft``."""
        return f"{self.profile.name}.{self.metric}"

    @property
    def tokens(self) -> int | None:
        """Tokens inside the timed part, 1 for a time to first token; ``None``: the model's tokenizer decides."""
        match self.metric:
            case Metric.PREFILL:
                return self.profile.prompt_tokens or None
            case Metric.DECODE:
                return self.profile.n_predict - 1
            case _:
                return 1


Timed: TypeAlias = Workload | ProfileWorkload
"""What a job measures."""


def is_time(workload: object) -> bool:
    """Whether a workload is a time to the first token: a speed of 1 over it, shown in ms."""
    return isinstance(workload, ProfileWorkload) and workload.metric.is_time


def names_a_time(name: str) -> bool:
    """The same of a workload of which only the name is known, as in a file that somebody sent."""
    return name.rpartition(".")[2] in {metric for metric in Metric if metric.is_time}


@dataclass(frozen=True, slots=True)
class Prompt:
    """A named prompt, with the beginning of an answer that all arms are led through.

    Attributes:
        name: Its name.
        text: What is asked; may be empty.
        answer: An answer whose tokens are decoded one at a time whatever an arm would have said; may be empty.
        tokens: Tokens of prompt: the text's last ones, the text repeated where it is shorter; 0: the text as it is.
    """

    name: str
    text: str
    answer: str = ""
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class OutputProfile:
    """Prompts whose outputs are compared between arms.

    Attributes:
        name: Under which the check is known, e.g. ``greedy32``.
        prompts: What is asked.
        n_predict: Tokens generated greedily for each prompt.
        positions: Prompt positions whose logits are compared, per prompt: the last ones.
        forced: Tokens of the given answer that are decoded one at a time, per prompt, at most.
        top: Most probable tokens that are kept at each position.
        variations: Harmless changes by which each arm is compared with itself.
    """

    name: str
    prompts: tuple[Prompt, ...]
    n_predict: int
    positions: int
    forced: int = 0
    top: int = 20
    variations: tuple[Variation, ...] = ()

    @property
    def identity(self) -> str:
        """Hash of all that is asked; the profile's name does not matter."""
        prompts = [[prompt.name, prompt.text, prompt.answer, prompt.tokens] for prompt in self.prompts]
        asked = [self.n_predict, self.positions, self.forced, self.top, *map(str, self.variations)]
        return digest([prompts, asked])
