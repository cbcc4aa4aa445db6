"""What the layouts of mixtures of experts have in common, whatever their layers look at."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, model_validator

from harness.models.gguf_format import MetaValue, TensorSpec
from harness.models.layout import Layout, Positive, Strict, half, single


class MoeShape(Strict):
    """Hyperparameters of a mixture of experts with grouped queries and q/k norms.

    Attributes:
        layers: Layers.
        width: Model width.
        heads: Query heads of attention layers.
        kv_heads: Key and value heads of attention layers; divides `heads`.
        head_width: Width of an attention head.
        experts: Experts in a layer.
        experts_used: Experts a token goes through.
        expert_width: Inner width of an expert.
        context_length: Tokens of context the file claims.
        rope_base: Base of the rotary frequencies.
        norm_epsilon: Epsilon of the RMS norms.
    """

    layers: Positive
    width: Positive
    heads: Positive
    kv_heads: Positive
    head_width: Positive
    experts: Positive
    experts_used: Positive
    expert_width: Positive
    context_length: Positive
    rope_base: Annotated[float, Field(gt=0)]
    norm_epsilon: Annotated[float, Field(gt=0)] = 1e-6

    @model_validator(mode="after")
    def _experts_and_heads_fit(self) -> MoeShape:
        self.require_multiple("heads", "kv_heads")
        if self.experts_used > self.experts:
            raise ValueError(f"experts_used ({self.experts_used}) exceeds experts ({self.experts})")
        return self

    def require_multiple(self, many: str, few: str) -> None:
        """Refuse a shape one of whose hyperparameters is no multiple of another."""
        if getattr(self, many) % getattr(self, few):
            raise ValueError(f"{many} ({getattr(self, many)}) must be a multiple of {few} ({getattr(self, few)})")

    def layout(self, vocabulary_size: int) -> Layout:
        """Metadata and F16 tensors (norms, routers and other small ones in F32, as converters write them)."""
        tensors = [half("token_embd.weight", self.width, vocabulary_size)]
        for number in range(self.layers):
            tensors += self._layer(number)
        tensors += [single("output_norm.weight", self.width), half("output.weight", self.width, vocabulary_size)]
        return Layout(self._metadata(vocabulary_size), tuple(tensors))

    @abstractmethod
    def _metadata(self, vocabulary_size: int) -> dict[str, MetaValue]: ...

    @abstractmethod
    def _layer(self, number: int) -> list[TensorSpec]: ...

    def _header(self, architecture: str, counts: Mapping[str, int]) -> dict[str, MetaValue]:
        """Metadata under an architecture's name, the real numbers behind the counts."""
        reals = {"rope.freq_base": self.rope_base, "attention.layer_norm_rms_epsilon": self.norm_epsilon}
        metadata = {"general.architecture": MetaValue("string", architecture), "general.file_type": MetaValue("u32", 1)}
        metadata |= {f"{architecture}.{key}": MetaValue("u32", count) for key, count in counts.items()}
        return metadata | {f"{architecture}.{key}": MetaValue("f32", real) for key, real in reals.items()}

    def _attention(self, prefix: str, query_width: int) -> list[TensorSpec]:
        """Tensors of an attention layer, `query_width` being what its query tensor gives."""
        inner, keys = self.heads * self.head_width, self.kv_heads * self.head_width
        return [
            half(prefix + "attn_q.weight", self.width, query_width),
            half(prefix + "attn_k.weight", self.width, keys),
            half(prefix + "attn_v.weight", self.width, keys),
            half(prefix + "attn_output.weight", inner, self.width),
            single(prefix + "attn_q_norm.weight", self.head_width),
            single(prefix + "attn_k_norm.weight", self.head_width),
        ]

    def _experts(self, prefix: str) -> list[TensorSpec]:
        """The router and the experts it chooses among."""
        return [
            single(prefix + "ffn_gate_inp.weight", self.width, self.experts),
            half(prefix + "ffn_gate_exps.weight", self.width, self.expert_width, self.experts),
            half(prefix + "ffn_up_exps.weight", self.width, self.expert_width, self.experts),
            half(prefix + "ffn_down_exps.weight", self.expert_width, self.width, self.experts),
        ]
