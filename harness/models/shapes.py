"""Shapes: which metadata and tensors a model has, either derived from a few hyperparameters or listed one by one.

A *derived* shape is for models made up here; an *explicit* one is what a real file's header gives. Both end as the same
`Layout`, so that everything after it (writing, filling, counting bytes) knows one form only.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from harness.models.gguf_format import MAX_DIMENSIONS, SCALAR_CODES, MetaValue, Scalar, TensorSpec
from harness.models.gguf_types import TYPES_BY_NAME
from harness.models.layout import Layout, Positive, Strict, single
from harness.models.moe_shape import MoeShape
from harness.models.qwen35moe import Qwen35MoeShape


class Qwen3MoeShape(MoeShape):
    """Hyperparameters from which the qwen3moe layout follows: every layer attention and a mixture of experts."""

    rule: Literal["qwen3moe"]
    context_length: Positive = 8192
    rope_base: Annotated[float, Field(gt=0)] = 1e6

    @model_validator(mode="after")
    def _rotates_whole_heads(self) -> Qwen3MoeShape:
        if self.head_width % 2:
            raise ValueError(f"head_width ({self.head_width}) must be even")
        return self

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
        return self._header("qwen3moe", counts)

    def _layer(self, number: int) -> list[TensorSpec]:
        prefix = f"blk.{number}."
        return [
            single(prefix + "attn_norm.weight", self.width),
            *self._attention(prefix, self.heads * self.head_width),
            single(prefix + "ffn_norm.weight", self.width),
            *self._experts(prefix),
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
