"""Small models whose caches are not one row a token and layer: sliding windows (gpt-oss) and latent attention."""

from __future__ import annotations

import json
from typing import Any

from harness.models.card import Card, parse_card

_WIDTH, _EXPERTS, _EXPERT_WIDTH = 256, 4, 64
_LATENT, _ROPE, _KEY, _VALUE = 512, 64, 192, 128
"""Of latent attention; ik_llama.cpp takes no others."""


def windowed_card(layers: int = 4, window: int = 128, **metadata: Any) -> Card:
    """The shape of gpt-oss: every other layer sees a window.

    Args:
        layers: Blocks.
        window: Tokens of it.
        metadata: More of the header, without the architecture's name.
    """
    heads, kv_heads, head = 4, 2, 64
    tensors = []
    for layer in range(layers):
        at = f"blk.{layer}."
        tensors += [
            _norm(at + "attn_norm.weight"),
            _norm(at + "post_attention_norm.weight"),
            *_biased(at + "attn_q", _WIDTH, heads * head),
            *_biased(at + "attn_k", _WIDTH, kv_heads * head),
            *_biased(at + "attn_v", _WIDTH, kv_heads * head),
            *_biased(at + "attn_output", heads * head, _WIDTH),
            (at + "attn_sinks.weight", (heads,), "F32"),
            *_biased(at + "ffn_gate_inp", _WIDTH, _EXPERTS, kind="F32"),
            *_biased(at + "ffn_gate_exps", _WIDTH, _EXPERT_WIDTH, _EXPERTS),
            *_biased(at + "ffn_up_exps", _WIDTH, _EXPERT_WIDTH, _EXPERTS),
            *_biased(at + "ffn_down_exps", _EXPERT_WIDTH, _WIDTH, _EXPERTS),
        ]
    header = _counts(layers, heads, (kv_heads, head, head), head) | {"attention.sliding_window": window}
    return _card("tiny-window", "gpt-oss", header | metadata, tensors)


def latent_card(*, absorbed: bool = True, layers: int = 2) -> Card:
    """The shape of DeepSeek V2 and its kin.

    Args:
        absorbed: As llama.cpp converts it since 2025, keys and values of one latent head; otherwise as before.
        layers: Blocks.
    """
    heads, query = 4, 64
    tensors = []
    for layer in range(layers):
        at = f"blk.{layer}."
        latent = (
            [
                (at + "attn_k_b.weight", (_KEY - _ROPE, _LATENT, heads), "F16"),
                (at + "attn_v_b.weight", (_LATENT, _VALUE, heads), "F16"),
            ]
            if absorbed
            else [(at + "attn_kv_b.weight", (_LATENT, heads * (_KEY - _ROPE + _VALUE)), "F16")]
        )
        tensors += [
            _norm(at + "attn_norm.weight"),
            (at + "attn_q_a_norm.weight", (query,), "F32"),
            (at + "attn_kv_a_norm.weight", (_LATENT,), "F32"),
            (at + "attn_q_a.weight", (_WIDTH, query), "F16"),
            (at + "attn_q_b.weight", (query, heads * _KEY), "F16"),
            (at + "attn_kv_a_mqa.weight", (_WIDTH, _LATENT + _ROPE), "F16"),
            *latent,
            (at + "attn_output.weight", (heads * _VALUE, _WIDTH), "F16"),
            _norm(at + "ffn_norm.weight"),
            (at + "ffn_gate_inp.weight", (_WIDTH, _EXPERTS), "F32"),
            (at + "ffn_gate_exps.weight", (_WIDTH, _EXPERT_WIDTH, _EXPERTS), "F16"),
            (at + "ffn_up_exps.weight", (_WIDTH, _EXPERT_WIDTH, _EXPERTS), "F16"),
            (at + "ffn_down_exps.weight", (_EXPERT_WIDTH, _WIDTH, _EXPERTS), "F16"),
            (at + "ffn_gate_shexp.weight", (_WIDTH, _EXPERT_WIDTH), "F16"),
            (at + "ffn_up_shexp.weight", (_WIDTH, _EXPERT_WIDTH), "F16"),
            (at + "ffn_down_shexp.weight", (_EXPERT_WIDTH, _WIDTH), "F16"),
        ]
    widths = (1, _LATENT + _ROPE, _LATENT) if absorbed else (heads, _KEY, _VALUE)
    header = _counts(layers, heads, widths, _ROPE) | {
        "attention.q_lora_rank": query,
        "attention.kv_lora_rank": _LATENT,
        "leading_dense_block_count": 0,
        "expert_shared_count": 1,
        "expert_weights_scale": 1.0,
        "expert_gating_func": 2,
    }
    if absorbed:
        header |= {"attention.key_length_mla": _KEY, "attention.value_length_mla": _VALUE}
    return _card("tiny-latent", "deepseek2", header, tensors)


def _counts(layers: int, heads: int, cached: tuple[int, int, int], rope: int) -> dict[str, Any]:
    """What both have; cached are the number of key heads, and the widths of a key and a value."""
    kv_heads, key, value = cached
    return {
        "block_count": layers,
        "context_length": 32768,
        "embedding_length": _WIDTH,
        "feed_forward_length": _EXPERT_WIDTH,
        "expert_feed_forward_length": _EXPERT_WIDTH,
        "expert_count": _EXPERTS,
        "expert_used_count": 2,
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
        "attention.key_length": key,
        "attention.value_length": value,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.dimension_count": rope,
        "rope.freq_base": 10000.0,
    }


def _card(
    name: str, architecture: str, header: dict[str, Any], tensors: list[tuple[str, tuple[int, ...], str]]
) -> Card:
    recipe = {"merges": 20, "specials": ["<|endoftext|>", "<|im_end|>"]}
    size = 256 + 20 + 2
    ends = [("token_embd.weight", (_WIDTH, size), "F16"), _norm("output_norm.weight")]
    every = [*ends, ("output.weight", (_WIDTH, size), "F16"), *tensors]
    metadata = {"general.architecture": {"type": "string", "value": architecture}}
    metadata |= {f"{architecture}.{key}": _entry(value) for key, value in header.items()}
    content = {
        "format": "shape-card/1",
        "name": name,
        "shape": {
            "rule": "explicit",
            "metadata": metadata,
            "tensors": [{"name": each, "shape": list(shape), "type": kind} for each, shape, kind in every],
        },
        "tokenizer": recipe,
        "weights": {"seed": 1},
    }
    return parse_card(json.dumps(content), where=f"{name}.json")


def _entry(value: Any) -> dict[str, Any]:
    first = value[0] if isinstance(value, list) else value
    kind = "bool" if isinstance(first, bool) else "u32" if isinstance(first, int) else "f32"
    return {"type": kind, "value": value}


def _norm(name: str) -> tuple[str, tuple[int, ...], str]:
    return (name, (_WIDTH,), "F32")


def _biased(name: str, *shape: int, kind: str = "F16") -> list[tuple[str, tuple[int, ...], str]]:
    return [(f"{name}.weight", shape, kind), (f"{name}.bias", shape[1:], "F32")]
