"""The layout of Qwen3.5 and Qwen3.6 mixtures of experts: gated delta nets, every fourth layer attention.

Names, shapes and keys are those that llama.cpp's converter writes and both forks' loaders ask for (read in llama.cpp
b11549 and ik_llama.cpp 8337e4cd). The vision encoder is a file of its own there, and the layer that predicts a second
token is left out, as in files without it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from harness.models.gguf_format import MetaValue, TensorSpec
from harness.models.layout import Layout, Positive, Strict, half, single

_ROPE_SECTIONS = (11, 11, 10, 0)


class Qwen35MoeShape(Strict):
    """Hyperparameters from which the qwen35moe layout follows.

    Attributes:
        layers: Layers.
        width: Model width.
        heads: Query heads of attention layers.
        kv_heads: Key and value heads of attention layers; divides `heads`.
        head_width: Width of an attention head.
        rope_width: How many values of a head are rotated; even.
        attention_every: One layer of so many is attention, the last of them; the others are delta nets.
        delta_key_heads: Query and key heads of a delta net.
        delta_value_heads: Value heads of a delta net; a multiple of `delta_key_heads`.
        delta_width: Width of a delta net's head.
        convolution: Tokens that the short convolution looks at.
        experts: Experts in a layer.
        experts_used: Experts a token goes through.
        expert_width: Inner width of an expert.
        shared_width: Inner width of the expert that every token goes through.
        context_length: Tokens of context the file claims.
        rope_base: Base of the rotary frequencies.
        norm_epsilon: Epsilon of the RMS norms.
    """

    rule: Literal["qwen35moe"]
    layers: Positive
    width: Positive
    heads: Positive
    kv_heads: Positive
    head_width: Positive
    rope_width: Positive
    attention_every: Positive = 4
    delta_key_heads: Positive
    delta_value_heads: Positive
    delta_width: Positive
    convolution: Positive = 4
    experts: Positive
    experts_used: Positive
    expert_width: Positive
    shared_width: Positive
    context_length: Positive = 262144
    rope_base: Annotated[float, Field(gt=0)] = 1e7
    norm_epsilon: Annotated[float, Field(gt=0)] = 1e-6

    @model_validator(mode="after")
    def _consistent(self) -> Qwen35MoeShape:
        for many, few in (("heads", "kv_heads"), ("delta_value_heads", "delta_key_heads")):
            if getattr(self, many) % getattr(self, few):
                raise ValueError(f"{many} ({getattr(self, many)}) must be a multiple of {few} ({getattr(self, few)})")
        if self.rope_width % 2 or self.rope_width > self.head_width:
            raise ValueError(f"rope_width ({self.rope_width}) must be even and at most head_width ({self.head_width})")
        if self.experts_used > self.experts:
            raise ValueError(f"experts_used ({self.experts_used}) exceeds experts ({self.experts})")
        return self

    def layout(self, vocabulary_size: int) -> Layout:
        """Metadata and F16 tensors (norms, routers and the delta nets' small tensors in F32, as converters write)."""
        return Layout(self._metadata(vocabulary_size), self._tensors(vocabulary_size))

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
        reals = {"rope.freq_base": self.rope_base, "attention.layer_norm_rms_epsilon": self.norm_epsilon}
        metadata = {"general.architecture": MetaValue("string", "qwen35moe"), "general.file_type": MetaValue("u32", 1)}
        metadata |= {f"qwen35moe.{key}": MetaValue("u32", count) for key, count in counts.items()}
        metadata |= {f"qwen35moe.{key}": MetaValue("f32", real) for key, real in reals.items()}
        return metadata | {"qwen35moe.rope.dimension_sections": MetaValue("i32", _ROPE_SECTIONS)}

    def _tensors(self, vocabulary_size: int) -> tuple[TensorSpec, ...]:
        tensors = [half("token_embd.weight", self.width, vocabulary_size)]
        for layer in range(self.layers):
            prefix = f"blk.{layer}."
            attends = (layer + 1) % self.attention_every == 0
            tensors += [
                single(prefix + "attn_norm.weight", self.width),
                *(self._attention(prefix) if attends else self._delta_net(prefix)),
                single(prefix + "post_attention_norm.weight", self.width),
                *self._experts(prefix),
            ]
        return (*tensors, single("output_norm.weight", self.width), half("output.weight", self.width, vocabulary_size))

    def _attention(self, prefix: str) -> list[TensorSpec]:
        inner, keys = self.heads * self.head_width, self.kv_heads * self.head_width
        return [
            half(prefix + "attn_q.weight", self.width, 2 * inner),  # queries and the gate of what comes out
            half(prefix + "attn_k.weight", self.width, keys),
            half(prefix + "attn_v.weight", self.width, keys),
            half(prefix + "attn_output.weight", inner, self.width),
            single(prefix + "attn_q_norm.weight", self.head_width),
            single(prefix + "attn_k_norm.weight", self.head_width),
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

    def _experts(self, prefix: str) -> list[TensorSpec]:
        return [
            single(prefix + "ffn_gate_inp.weight", self.width, self.experts),
            half(prefix + "ffn_gate_exps.weight", self.width, self.expert_width, self.experts),
            half(prefix + "ffn_up_exps.weight", self.width, self.expert_width, self.experts),
            half(prefix + "ffn_down_exps.weight", self.expert_width, self.width, self.experts),
            single(prefix + "ffn_gate_inp_shexp.weight", self.width),
            half(prefix + "ffn_gate_shexp.weight", self.width, self.shared_width),
            half(prefix + "ffn_up_shexp.weight", self.width, self.shared_width),
            half(prefix + "ffn_down_shexp.weight", self.shared_width, self.width),
        ]
