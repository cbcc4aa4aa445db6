"""A card whose file takes milliseconds, for tests of models."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.models.card import Card, parse_card
from harness.models.make import plan_model, write_model


def micro_content(**weights: Any) -> dict[str, Any]:
    """A card as JSON whose file has a few hundred kilobytes and takes milliseconds."""
    return {
        "format": "shape-card/1",
        "name": "micro-moe",
        "shape": {
            "rule": "qwen3moe",
            "layers": 1,
            "width": 64,
            "heads": 2,
            "kv_heads": 1,
            "head_width": 32,
            "experts": 4,
            "experts_used": 2,
            "expert_width": 64,
        },
        "tokenizer": {"merges": 20, "specials": ["<|endoftext|>", "<|im_end|>"]},
        "weights": {"seed": 1, **weights},
    }


def micro_card(**weights: Any) -> Card:
    """The micro card, with other weights where given."""
    return parse_card(json.dumps(micro_content(**weights)), where="micro.json")


def write_card_model(card: Card, path: Path) -> Path:
    """Make a card's file outside any cache."""
    with path.open("wb") as file:
        write_model(file, plan_model(card))
    return path


def child_environment() -> dict[str, str]:
    """Environment in which a child finds this very harness, installed or not."""
    return {**os.environ, "PYTHONPATH": str(Path(harness.__file__).parents[1])}


def need_quantizer() -> None:
    """Skip where the ik wheel, whose quantizer is used, is not installed."""
    if find_spec("ik_llama_cpp") is None:
        pytest.skip("moe-harness[local] is not installed")
