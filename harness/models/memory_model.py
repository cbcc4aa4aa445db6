"""Shapes of a matrix's models: read from the headers of files that are here, or planned from a card."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from harness.domain.errors import HarnessError
from harness.domain.model import Model
from harness.models.card import Card, load_card
from harness.models.gguf_format import TensorSpec
from harness.models.memory_shape import ModelShape, shape_of
from harness.models.mixtures import mixed
from harness.models.quantize import QUANTS, UNQUANTIZED
from harness.models.shelf import held_models
from harness.models.splits import read_headers
from harness.models.storage import cache_root

_BYTE_TOKENS = 256
_KEPT = 64
_BITS = 8


def model_shape(model: Model) -> ModelShape | None:
    """What is known of a model's tensors; ``None`` where neither a card nor a file on this machine says it."""
    try:
        return _known(model)
    except (HarnessError, OSError):
        return None


@lru_cache(maxsize=_KEPT)
def _known(model: Model) -> ModelShape:
    """Errors are not kept: what is not here yet may come."""
    if model.card:
        return card_shape(load_card(model.card), model.quant)
    return file_shape(Path(model.path) if model.path else _fetched(model))


def _fetched(model: Model) -> Path:
    held = next((held for held in held_models(cache_root()) if held.sha256 and held.sha256 == model.sha256), None)
    if held is None:
        raise FileNotFoundError(model.name)
    return held.files[0]


def file_shape(path: Path) -> ModelShape:
    """The shape of a file, or of all parts of a split one; no weights are read.

    Raises:
        BadInput: As `read_headers`.
    """
    headers = read_headers(path)
    tensors = [placed.spec for header in headers for placed in header.tensors]
    sizes = [tensor.nbytes for tensor in tensors]
    return shape_of(path.name, headers[0].metadata, tensors, sizes, sum(header.size for header in headers))


def card_shape(card: Card, quant: str) -> ModelShape:
    """The shape that a card's file will have.

    The types of a mixture that is drawn are known; where ``llama-quantize`` decides, they are those of the same rules
    or, for mixtures without rules here, the mixture's mean bits for every tensor that is quantized.

    Raises:
        BadInput: As `mixed`.
    """
    recipe = card.tokenizer
    vocabulary = (recipe.size or _BYTE_TOKENS + recipe.merges + len(recipe.specials)) if recipe else 0
    layout = card.shape.layout(vocabulary)
    tensors, sizes = _quantized(layout.tensors, quant, card.name)
    return shape_of(card.name, layout.metadata, tensors, sizes, sum(sizes))


def _quantized(tensors: tuple[TensorSpec, ...], quant: str, where: str) -> tuple[tuple[TensorSpec, ...], list[int]]:
    if quant in ("", UNQUANTIZED) or quant not in QUANTS:
        return tensors, [tensor.nbytes for tensor in tensors]
    try:
        typed = mixed(tensors, quant, where)
    except HarnessError:
        bits = QUANTS[quant].bits
        return tensors, [
            int(tensor.parameters * bits / _BITS) if tensor.type.name == UNQUANTIZED else tensor.nbytes
            for tensor in tensors
        ]
    return typed, [tensor.nbytes for tensor in typed]
