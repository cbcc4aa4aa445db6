"""A shape card of a model that somebody has: its shape without its weights, its words, or who made it.

Kept are the tensor table and what the architecture says in its own keys. Left out are names, authors, licences, paths
and the vocabulary: a real one has megabytes and is somebody's work. In its place the card gets the recipe of a
vocabulary of the same size, so that embeddings and output have their sizes; texts have other numbers of tokens in it.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.domain.errors import BadInput
from harness.models.card import Card, TokenizerRecipe, WeightRecipe
from harness.models.gguf_format import ALIGNMENT_KEY, MetaValue, TensorSpec
from harness.models.shapes import ExplicitShape, MetaEntry, TensorEntry
from harness.models.splits import read_headers, stem_of
from harness.models.weights import can_fill

_KEPT_OF_GENERAL = ("general.architecture", "general.file_type", "general.quantization_version", ALIGNMENT_KEY)
_LEFT_OUT = ("general.", "tokenizer.", "split.", "quantize.", "moe_harness.")
_EMBEDDINGS = "token_embd.weight"
_BYTES = 256
_MOST_MERGES = 1016
_SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>")
_SEED_DIGITS = 8
_FLOATS = ("f32", "f64")


def card_of(path: Path) -> Card:
    """The shape card of a model.

    Args:
        path: A GGUF file of either fork, or any part of a split one. Only headers are read.

    Raises:
        BadInput: As `read_headers`; ``E-card-no-shape`` for a file without weights or with what a card can't hold.
    """
    headers = read_headers(path)
    tensors = tuple(placed.spec for header in headers for placed in header.tensors)
    if not tensors:
        raise BadInput("E-card-no-shape", "there are no weights in it, only a header", where=str(path))
    shape = ExplicitShape(
        rule="explicit",
        metadata={key: _entry(key, value, path) for key, value in _kept(headers[0].metadata)},
        tensors=tuple(_tensor(spec, path) for spec in tensors),
    )
    table = json.dumps([(spec.name, spec.shape, spec.type.name) for spec in tensors])
    seed = int(hashlib.sha256(table.encode()).hexdigest()[:_SEED_DIGITS], 16)
    return Card(
        format="shape-card/1",
        name=_name(path),
        description="Shape of a model file, with random weights",
        shape=shape,
        tokenizer=_tokenizer(tensors),
        weights=WeightRecipe(seed=seed, blocks="drawn"),
    )


def card_text(card: Card) -> str:
    """A card as JSON, one tensor and one metadata entry a line."""
    content = card.model_dump(mode="json", exclude_defaults=True)
    shape = content["shape"]
    entries = {key: shape[key] for key in ("metadata", "tensors")}
    shape |= dict.fromkeys(entries, "")
    text = json.dumps(content, indent=2, ensure_ascii=False)
    for key, value in entries.items():
        text = text.replace(f'"{key}": ""', f'"{key}": {_one_a_line(value)}', 1)
    return text + "\n"


def _one_a_line(entries: Any) -> str:
    if isinstance(entries, dict):
        lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in entries.items()]
        return "{\n      " + ",\n      ".join(lines) + "\n    }"
    return "[\n      " + ",\n      ".join(json.dumps(entry) for entry in entries) + "\n    ]"


def undrawable(card: Card) -> tuple[str, ...]:
    """Names of the card's tensor types that can't be drawn, so that no model can be made of it."""
    layout = card.shape.layout(0)
    return tuple(sorted({tensor.type.name for tensor in layout.tensors if not can_fill(tensor)}))


def _kept(metadata: Mapping[str, MetaValue]) -> Iterable[tuple[str, MetaValue]]:
    for key, value in metadata.items():
        if key in _KEPT_OF_GENERAL or not key.startswith(_LEFT_OUT):
            yield key, value


def _entry(key: str, entry: MetaValue, path: Path) -> MetaEntry:
    values = entry.value if isinstance(entry.value, tuple) else (entry.value,)
    if entry.kind in _FLOATS and not all(math.isfinite(float(value)) for value in values):
        raise BadInput("E-card-no-shape", f"'{key}' is no finite number, which JSON can't hold", where=str(path))
    if entry.kind == "string":
        clean = tuple(str(value).encode("utf-8", "replace").decode() for value in values)
        return MetaEntry(type=entry.kind, value=clean if isinstance(entry.value, tuple) else clean[0])
    return MetaEntry(type=entry.kind, value=entry.value)


def _tensor(spec: TensorSpec, path: Path) -> TensorEntry:
    try:
        return TensorEntry(name=spec.name, shape=spec.shape, type=spec.type.name)
    except ValueError as misfit:
        said = f"tensor '{spec.name}' of shape {spec.shape} fits no card"
        raise BadInput("E-card-no-shape", said, where=str(path)) from misfit


def _tokenizer(tensors: tuple[TensorSpec, ...]) -> TokenizerRecipe | None:
    """A recipe as large as the embeddings; none where they are too few for every byte, or are not there."""
    size = next((spec.shape[1] for spec in tensors if spec.name == _EMBEDDINGS and len(spec.shape) > 1), 0)
    merges = min(_MOST_MERGES, size - _BYTES - len(_SPECIALS))
    return TokenizerRecipe(merges=merges, specials=_SPECIALS, size=size) if merges >= 0 else None


def _name(path: Path) -> str:
    word = re.sub(r"[^a-z0-9._+-]+", "-", stem_of(path).lower()).strip("-._+")
    return word or "model"
