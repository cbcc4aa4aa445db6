"""What is known of a way of running, when it is asked whether a pitfall is about it. ``None``: not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.domain.build import Fork
from harness.domain.flags import FlagValue

MIN_OFFLOAD = 32
"""Rows from which an operation on weights in RAM is done on the GPU: both forks' default."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What pitfalls depend on in a model.

    Attributes:
        architecture: Such as ``qwen3moe``.
        main: Types of the weights that most of the work is done with: the experts, where there are some.
        all: Types of all its weights.
        experts: Experts in a layer; 0 for a dense model.
        experts_used: Experts a token goes through.
        grouped_queries: Fewer heads of keys than of queries.
        latent_attention: Its attention has latent keys and values.
    """

    architecture: str
    main: frozenset[str]
    all: frozenset[str]
    experts: int
    experts_used: int
    grouped_queries: bool
    latent_attention: bool

    @property
    def offload_threshold(self) -> int:
        """Tokens of a physical batch from which ik_llama.cpp computes experts in RAM on the GPU."""
        if not self.experts or not self.experts_used:
            return MIN_OFFLOAD
        return -(-MIN_OFFLOAD * self.experts // self.experts_used)


@dataclass(frozen=True, slots=True)
class Facts:
    """One way of running.

    Attributes:
        fork: Whose program.
        number: The build's number.
        commit: The build's commit or its beginning; empty where it is not known.
        placement: Where it computes: ``cpu``, ``hybrid`` or ``gpu``.
        gpu_code: Whether the build could compute on a GPU.
        model: The model.
        quant: What the name of its file says of its quantization, where it is not known otherwise; empty: nothing.
        latent: Whether the name of its file says that its attention is latent, where it is not known otherwise.
        flags: Values of flags by canonical name, of options without one by their spelling; several where a line asks
            for several tests. Those that nobody said are there with their defaults.
        said: Which of them were said.
    """

    fork: Fork
    number: int | None = None
    commit: str = ""
    placement: str | None = None
    gpu_code: bool | None = None
    model: ModelFacts | None = None
    quant: str = ""
    latent: bool | None = None
    flags: Mapping[str, Sequence[FlagValue]] = field(default_factory=dict)
    said: frozenset[str] = frozenset()
