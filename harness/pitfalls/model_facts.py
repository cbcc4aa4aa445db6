"""What pitfalls depend on in a model, from its header or from its card. No weight is read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from harness.domain.errors import BadInput
from harness.domain.model import Model
from harness.models.card import load_card
from harness.models.gguf_format import MetaValue
from harness.models.inspect import GgufInfo, inspect_gguf
from harness.models.splits import read_headers
from harness.pitfalls.facts import ModelFacts

_EXPERTS = "_exps."
_LATENT = ".attention.kv_lora_rank"


def facts_of_file(path: Path) -> ModelFacts:
    """What a file's header tells.

    Raises:
        BadInput: As `inspect_gguf`.
    """
    info = inspect_gguf(path)
    return _facts(info.architecture, _types(info), read_headers(path)[0].metadata)


@lru_cache(maxsize=64)
def facts_of_model(model: Model) -> ModelFacts | None:
    """What is known of a matrix's model where it is planned; ``None`` where its file is not here, or no model."""
    try:
        if model.card:
            return _of_card(model)
        return facts_of_file(Path(model.path)) if model.path else None
    except (BadInput, OSError):
        return None


def _of_card(model: Model) -> ModelFacts:
    """The mixture that is made of a card stands for the types of its weights."""
    layout = load_card(model.card).shape.layout(0)
    architecture = layout.metadata["general.architecture"].value
    quant = frozenset({model.quant})
    return _facts(str(architecture), (quant, quant), layout.metadata)


def _types(info: GgufInfo) -> tuple[frozenset[str], frozenset[str]]:
    """Types of the experts, or else of all matrices; and of all matrices."""
    matrices = [tensor for tensor in info.tensors if sum(size > 1 for size in tensor.shape) > 1]
    of_experts = [tensor for tensor in matrices if _EXPERTS in tensor.name]
    return frozenset(each.type for each in of_experts or matrices), frozenset(each.type for each in matrices)


def _facts(
    architecture: str, types: tuple[frozenset[str], frozenset[str]], metadata: Mapping[str, MetaValue]
) -> ModelFacts:
    def number(key: str) -> int:
        found = metadata.get(f"{architecture}.{key}")
        values = found.value if found else 0
        listed = values if isinstance(values, tuple) else (values,)
        return max((each for each in listed if isinstance(each, int)), default=0)

    heads, kv_heads = number("attention.head_count"), number("attention.head_count_kv")
    return ModelFacts(
        architecture=architecture,
        main=types[0],
        all=types[1],
        experts=number("expert_count"),
        experts_used=number("expert_used_count"),
        grouped_queries=0 < kv_heads < heads,
        latent_attention=f"{architecture}{_LATENT}" in metadata,
    )
