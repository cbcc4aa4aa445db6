"""A small sibling of the packaged hybrid card: delta nets, every fourth layer attention, experts."""

from __future__ import annotations

import json

from harness.models.card import Card, load_card, parse_card

_SMALLER = {
    "layers": 4,
    "width": 256,
    "heads": 4,
    "kv_heads": 1,
    "head_width": 64,
    "delta_key_heads": 2,
    "delta_value_heads": 4,
    "delta_width": 64,
    "experts": 32,
    "experts_used": 4,
    "expert_width": 256,
    "shared_width": 256,
    "context_length": 8192,
}


def hybrid_card(**weights: object) -> Card:
    """The card with fewer and narrower layers, with other weights where given."""
    content = json.loads(load_card("qwen3.6-35b-a3b").model_dump_json())
    content["name"] = "tiny-hybrid"
    content["shape"] |= _SMALLER
    content["tokenizer"]["size"] = None
    content["weights"] |= weights
    return parse_card(json.dumps(content), where="tiny-hybrid.json")
