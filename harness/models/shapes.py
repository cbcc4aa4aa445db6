"""Shapes: which metadata and tensors a model has, either derived from a few hyperparameters or listed one by one.

A *derived* shape is for models made up here; an *explicit* one is what a real file's header gives. Both end as the same
`Layout`, so that everything after it (writing, filling, counting bytes) knows one form only.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from harness.models.gguf_format import MAX_DIMENSIONS, SCALAR_CODES, MetaValue, Scalar, TensorSpec
from harness.models.gguf_types import TYPES_BY_NAME
from harness.models.layout import Layout, Positive, Strict, half, single
from harness.models.qwen35moe import Qwen35MoeShape


class Qwen3MoeShape(Strict):
    """Hyperparameters from which the qwen3moe layout follows: GQA with q/k norms, every layer a mixture of experts.

    Attributes:
        layers: Transformer layers.
        width: Model width.
        heads: Query heads.
        kv_heads: Key and value heads; divides `heads`.
        head_width: Width of a head; even, for RoPE.
        experts: Experts in a layer.
        experts_used: Experts a token goes through.
        expert_width: Inner width of an expert.
        context_length: Tokens of context the file claims.
        rope_base: Base of the rotary frequencies.
        norm_epsilon: Epsilon of the RMS norms.
    """

    rule: Literal["qwen3moe"]
    layers: Positive
    width: Positive
    heads: Positive
    kv_heads: Positive
    head_width: Positive
    experts: Positive
    experts_used: Positive
    expert_width: Positive
    context_length: Positive = 8192
    rope_base: Annotated[float, Field(gt=0)] = 1e6
    norm_epsilon: Annotated[float, Field(gt=0)] = 1e-6

    @model_validator(mode="after")
    def _consistent(self) -> Qwen3MoeShape:
        if self.heads % self.kv_heads:
            raise ValueError(f"heads ({self.heads}) must be a multiple of kv_heads ({self.kv_heads})")
        if self.head_width % 2:
            raise ValueError(f"head_width ({self.head_width}) must be even")
        if self.experts_used > self.experts:
            raise ValueError(f"experts_used ({self.experts_used}) exceeds experts ({self.experts})")
        return self

    def layout(self, vocabulary_size: int) -> Layout:
        """Metadata and F16 tensors (norms and routers in F32, as converters write them)."""
        return Layout(self._metadata(vocabulary_size), self._tensors(vocabulary_size))

    def _metadata(self, vocabulary_size: int) -> dict[str, MetaValue]:
        counts = {
            "vocab_size": vocabulary_size,
            "block_count": self.layers,
            "context_length": self.context_length,
            "embedding_length": self.width,
            "feed_forward_length": self.expert_width * self.experts_used,
            "expert_feed_forward_length": self.expert_width,
            "expert_count": self.experts,
            "expert_used_count": self.experts_used,
            "attention.head_count": self.heads,
            "attention.head_count_kv": self.kv_heads,
            "attention.key_length": self.head_width,
            "attention.value_length": self.head_width,
        }
        reals = {"rope.freq_base": self.rope_base, "attention.layer_norm_rms_epsilon": self.norm_epsilon}
        metadata = {"general.architecture": MetaValue("string", "qwen3moe"), "general.file_type": MetaValue("u32", 1)}
        metadata |= {f"qwen3moe.{key}": MetaValue("u32", count) for key, count in counts.items()}
        return metadata | {f"qwen3moe.{key}": MetaValue("f32", real) for key, real in reals.items()}

    def _tensors(self, vocabulary_size: int) -> tuple[TensorSpec, ...]:
        tensors = [half("token_embd.weight", self.width, vocabulary_size)]
        for layer in range(self.layers):
            tensors += self._layer(f"blk.{layer}.")
        return (
            *tensors,
            single("output_norm.weight", self.width),
            half("output.weight", self.width, vocabulary_size),
        )

    def _layer(self, prefix: str) -> list[TensorSpec]:
        queries, keys = self.heads * self.head_width, self.kv_heads * self.head_width
        return [
            single(prefix + "attn_norm.weight", self.width),
            half(prefix + "attn_q.weight", self.width, queries),
            half(prefix + "attn_k.weight", self.width, keys),
            half(prefix + "attn_v.weight", self.width, keys),
            half(prefix + "attn_output.weight", queries, self.width),
            single(prefix + "attn_q_norm.weight", self.head_width),
            single(prefix + "attn_k_norm.weight", self.head_width),
            single(prefix + "ffn_norm.weight", self.width),
            single(prefix + "ffn_gate_inp.weight", self.width, self.experts),
            half(prefix + "ffn_gate_exps.weight", self.width, self.expert_width, self.experts),
            half(prefix + "ffn_up_exps.weight", self.width, self.expert_width, self.experts),
            half(prefix + "ffn_down_exps.weight", self.expert_width, self.width, self.experts),
        ]


class MetaEntry(Strict):
    """A metadata value of an explicit shape: its scalar type, and a value or a list of values."""

    type: str
    value: Scalar | tuple[Scalar, ...]

    @model_validator(mode="after")
    def _known(self) -> MetaEntry:
        if self.type not in SCALAR_CODES:
            raise ValueError(f"unknown metadata type '{self.type}', known: {', '.join(SCALAR_CODES)}")
        return self


class TensorEntry(Strict):
    """A tensor of an explicit shape.

    Attributes:
        name: Such as ``blk.0.attn_q.weight``.
        shape: Dimensions in ggml order, the row length first.
        type: Name of a tensor type, such as ``IQ4_XS``.
    """

    name: str
    shape: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=MAX_DIMENSIONS)]
    type: str

    @model_validator(mode="after")
    def _storable(self) -> TensorEntry:
        if self.type not in TYPES_BY_NAME:
            raise ValueError(f"unknown tensor type '{self.type}'")
        TYPES_BY_NAME[self.type].nbytes(self.shape)
        return self


class ExplicitShape(Strict):
    """Every metadata entry and every tensor by name, as a real file's header gives them."""

    rule: Literal["explicit"]
    metadata: dict[str, MetaEntry]
    tensors: Annotated[tuple[TensorEntry, ...], Field(min_length=1)]

    def layout(self, vocabulary_size: int) -> Layout:  # noqa: ARG002 - the table already says it
        """The table as a layout."""
        metadata = {key: MetaValue(entry.type, entry.value) for key, entry in self.metadata.items()}
        specs = (TensorSpec(entry.name, entry.shape, TYPES_BY_NAME[entry.type]) for entry in self.tensors)
        return Layout(metadata, tuple(specs))


Shape: TypeAlias = Annotated[Qwen3MoeShape | Qwen35MoeShape | ExplicitShape, Field(discriminator="rule")]
