"""The layout of Qwen3.5 and Qwen3.6 mixtures of experts: gated delta nets, every fourth layer attention.

Names, shapes and keys are those that llama.cpp's converter writes and both forks' loaders ask for (read in llama.cpp
b11549 and ik_llama.cpp 8337e4cd). The vision encoder is a file of its own there, and the layer that predicts a second
token is left out, as in files without it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from harness.models.gguf_format import MetaValue, TensorSpec
from harness.models.layout import Positive, half, single
from harness.models.moe_shape import MoeShape

_ROPE_SECTIONS = (11, 11, 10, 0)


class Qwen35MoeShape(MoeShape):
    """Hyperparameters from which the qwen35moe layout follows, besides those of every `MoeShape`.

    Attributes:
        rope_width: How many values of a head are rotated; even.
        attention_every: One layer of so many is attention, the last of them; the others are delta nets.
        delta_key_heads: Query and key heads of a delta net.
        delta_value_heads: Value heads of a delta net; a multiple of `delta_key_heads`.
        delta_width: Width of a delta net's head.
        convolution: Tokens that the short convolution looks at.
        shared_width: Inner width of the expert that every token goes through.
    """

    rule: Literal["qwen35moe"]
    rope_width: Positive
    attention_every: Positive = 4
    delta_key_heads: Positive
    delta_value_heads: Positive
    delta_width: Positive
    convolution: Positive = 4
    shared_width: Positive
    context_length: Positive = 262144
    rope_base: Annotated[float, Field(gt=0)] = 1e7

    @model_validator(mode="after")
    def _consistent(self) -> Qwen35MoeShape:
        self.require_multiple("delta_value_heads", "delta_key_heads")
        if self.rope_width % 2 or self.rope_width > self.head_width:
            raise ValueError(f"rope_width ({self.rope_width}) must be even and at most head_width ({self.head_width})")
        return self

    def _metadata(self, vocabulary_size: int) -> dict[str, MetaValue]:
        counts = {
            "vocab_size": vocabulary_size,
            "block_count": self.layers,
            "context_length": self.context_length,
            "embedding_length": self.width,
            "attention.head_count": self.heads,
            "attention.head_count_kv": self.kv_heads,
            "attention.key_length": self.head_width,
            "attention.value_length": self.head_width,
            "expert_count": self.experts,
            "expert_used_count": self.experts_used,
            "expert_feed_forward_length": self.expert_width,
            "expert_shared_feed_forward_length": self.shared_width,
            "ssm.conv_kernel": self.convolution,
            "ssm.state_size": self.delta_width,
            "ssm.group_count": self.delta_key_heads,
            "ssm.time_step_rank": self.delta_value_heads,
            "ssm.inner_size": self.delta_value_heads * self.delta_width,
            "full_attention_interval": self.attention_every,
            "rope.dimension_count": self.rope_width,
        }
        metadata = self._header("qwen35moe", counts)
        return metadata | {"qwen35moe.rope.dimension_sections": MetaValue("i32", _ROPE_SECTIONS)}

    def _layer(self, number: int) -> list[TensorSpec]:
        prefix = f"blk.{number}."
        attends = (number + 1) % self.attention_every == 0
        # The query tensor holds the gate of what comes out too.
        queries = 2 * self.heads * self.head_width
        return [
            single(prefix + "attn_norm.weight", self.width),
            *(self._attention(prefix, queries) if attends else self._delta_net(prefix)),
            single(prefix + "post_attention_norm.weight", self.width),
            *self._experts(prefix),
            *self._shared_expert(prefix),
        ]

    def _delta_net(self, prefix: str) -> list[TensorSpec]:
        inner, heads = self.delta_value_heads * self.delta_width, self.delta_value_heads
        channels = 2 * self.delta_key_heads * self.delta_width + inner
        return [
            half(prefix + "attn_qkv.weight", self.width, channels),
            half(prefix + "attn_gate.weight", self.width, inner),
            single(prefix + "ssm_conv1d.weight", self.convolution, channels),
            single(prefix + "ssm_dt.bias", heads),
            single(prefix + "ssm_a", heads),
            half(prefix + "ssm_beta.weight", self.width, heads),
            half(prefix + "ssm_alpha.weight", self.width, heads),
            single(prefix + "ssm_norm.weight", self.delta_width),
            half(prefix + "ssm_out.weight", inner, self.width),
        ]

    def _shared_expert(self, prefix: str) -> list[TensorSpec]:
        return [
            single(prefix + "ffn_gate_inp_shexp.weight", self.width),
            half(prefix + "ffn_gate_shexp.weight", self.width, self.shared_width),
            half(prefix + "ffn_up_shexp.weight", self.width, self.shared_width),
            half(prefix + "ffn_down_shexp.weight", self.shared_width, self.width),
        ]
