"""Shape cards: small JSON files from which any node makes the same model file with seeded random weights.

A card says the shape (derived from hyperparameters, or every tensor by name), the tokenizer and how the weights are
drawn. Packaged cards lie in ``harness/models/cards``; ``load_card`` takes the name of one of them or the path of a
file.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError, model_validator

from harness import bounded
from harness.domain.errors import BadInput
from harness.domain.suggest import did_you_mean
from harness.models.layout import Positive, Strict
from harness.models.quantize import QUANT_OF_FILE_TYPE, QUANTS, UNQUANTIZED
from harness.models.qwen35moe import Qwen35MoeShape
from harness.models.shapes import ExplicitShape, MetaEntry, Qwen3MoeShape, Shape, TensorEntry

SYNTHETIC_KEY = "moe_harness.synthetic"
CARD_KEY = "moe_harness.card"
"""Metadata of made files: that the weights are random, and the name of their card."""

_CARDS = resources.files("harness.models") / "cards"
_RULES = ("qwen3moe", "qwen35moe", "explicit")


class TokenizerRecipe(Strict):
    """A byte-level BPE vocabulary learned from a packaged text.

    Attributes:
        recipe: The only recipe so far.
        pre: Pre-tokenizer the engines use.
        corpus: Name of the packaged training text.
        merges: Merges to learn.
        specials: Control tokens, numbered after the merges.
        size: Vocabulary size to pad to with unused tokens; None for no padding.
    """

    recipe: Literal["bpe"] = "bpe"
    pre: Literal["qwen2"] = "qwen2"
    corpus: str = "tiny-corpus.txt"
    merges: Annotated[int, Field(ge=0)]
    specials: tuple[str, ...]
    size: Positive | None = None

    def corpus_text(self) -> str:
        """The training text."""
        return (_CARDS / self.corpus).read_text(encoding="ascii")


class WeightRecipe(Strict):
    """How the weights are drawn; the meaning of the gains is written in `harness.models.weights`.

    Attributes:
        seed: Seed of all tensors.
        residual_gain: Size of each sub-layer's output beside a residual stream of size one. 0.15 behaves like trained
            models under small numerical changes; at 0.7 the network is chaotic (measured, docs of judging).
        logits_sd: Standard deviation of the logits.
        attention_sd: Standard deviation of the attention scores. At 2 attention picks a few tokens as trained heads do,
            so that greedy text does not fall into cycles; at 1 it averages over all of them.
        router: How tokens spread over the experts: ``balanced``, each about equally often; or ``zipf``, few of them
            often and most of them seldom, as `harness.models.routing` says.
        blocks: Where quantized weights come from: ``quantized`` rounds the card's F16 network with a real quantizer;
            ``drawn`` draws random blocks, so that a model of 30 billion parameters is written in the time that its disk
            takes and no F16 file is needed. Two quants that are drawn are two different networks.
        router_exponent: With ``zipf``: the expert of rank r is chosen about r to the minus this as often as the first.
    """

    seed: Annotated[int, Field(ge=0)]
    residual_gain: Annotated[float, Field(gt=0)] = 0.15
    logits_sd: Annotated[float, Field(gt=0)] = 3.5
    attention_sd: Annotated[float, Field(gt=0)] = 2.0
    router: Literal["balanced", "zipf"] = "balanced"
    blocks: Literal["quantized", "drawn"] = "quantized"
    router_exponent: Annotated[float, Field(gt=0, le=4)] = 1.0

    @model_validator(mode="after")
    def _exponent_of_zipf(self) -> WeightRecipe:
        if self.router_exponent != 1.0 and self.router != "zipf":
            raise ValueError("'router_exponent' goes with router = \"zipf\"")
        return self


class Card(Strict):
    """A shape card.

    Attributes:
        format: Format of the card.
        name: Name of the model; part of file names and case ids.
        description: What it is for.
        shape: Metadata and tensors.
        tokenizer: Vocabulary, unless the explicit metadata holds one.
        weights: How the weights are drawn.
    """

    format: Literal["shape-card/1"]
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._+-]*$")]
    description: str = ""
    shape: Shape
    tokenizer: TokenizerRecipe | None = None
    weights: WeightRecipe

    @property
    def own_quant(self) -> str:
        """The quantization that the card's own table has, by the best word there is for it; ``F16`` if none."""
        if not isinstance(self.shape, ExplicitShape):
            return UNQUANTIZED
        layout = self.shape.layout(0)
        sizes: Counter[str] = Counter()
        for tensor in layout.tensors:
            sizes[tensor.type.name] += tensor.nbytes
        if all(tensor.type.block == 1 for tensor in layout.tensors):
            return UNQUANTIZED
        file_type = layout.metadata.get("general.file_type")
        named = QUANT_OF_FILE_TYPE.get(file_type.value) if file_type and isinstance(file_type.value, int) else None
        return named or next((name for name, _ in sizes.most_common() if name in QUANTS), UNQUANTIZED)

    def canonical_json(self) -> str:
        """The card as JSON that does not depend on formatting, key order or which defaults were written out."""
        # Keys younger than the format are left out at their defaults: older cards' files keep their digests.
        younger = {
            key
            for key, meaningless in (
                ("blocks", self.weights.blocks == "quantized"),
                ("router_exponent", self.weights.router == "balanced"),
            )
            if meaningless
        }
        content = self.model_dump(mode="json", exclude={"weights": younger})
        return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def digest(self) -> str:
        """SHA-256 over the card and the training text it names, in hexadecimal."""
        content = hashlib.sha256(self.canonical_json().encode())
        if self.tokenizer is not None:
            content.update(self.tokenizer.corpus_text().encode())
        return content.hexdigest()


def packaged_cards() -> tuple[str, ...]:
    """Names of the cards that come with the package."""
    names = (entry.name for entry in _CARDS.iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in names if name.endswith(".json")))


def load_card(name_or_path: str | Path) -> Card:
    """Load a packaged card by name, or a card file by path.

    Raises:
        BadInput: ``E-unknown-card`` (with the nearest name), ``E-card-unreadable``, ``E-card-json``,
            ``E-card-invalid``.
    """
    if str(name_or_path) in packaged_cards():
        entry = _CARDS / f"{name_or_path}.json"
        return parse_card(entry.read_text(encoding="utf-8"), where=entry.name)
    path = Path(name_or_path)
    if path.suffix != ".json" and not path.exists():
        hint = did_you_mean(str(name_or_path), packaged_cards())
        raise BadInput("E-unknown-card", f"no packaged card is named '{name_or_path}'", hint=hint)
    try:
        text = bounded.read_text(path, bounded.MOST_KEPT_BYTES)
    except (OSError, UnicodeDecodeError) as failure:
        raise BadInput("E-card-unreadable", f"the card can't be read: {failure}", where=str(path)) from failure
    return parse_card(text, where=str(path))


def written_quant(name_or_path: str | Path) -> str:
    """The quantization of a card that is made as it is written; ``F16`` where the card can't be read here."""
    try:
        return load_card(name_or_path).own_quant
    except BadInput:
        return UNQUANTIZED


def parse_card(text: str, *, where: str) -> Card:
    """Parse and validate a card.

    Args:
        text: JSON.
        where: File named in errors.

    Raises:
        BadInput: ``E-card-json`` or ``E-card-invalid``; ``where`` is ``file: key``.
    """
    try:
        return Card.model_validate_json(text)
    except ValidationError as invalid:
        raise _invalid(invalid, where) from invalid


def _invalid(invalid: ValidationError, where: str) -> BadInput:
    """The first fault as an error; how many more there are is said too."""
    faults = invalid.errors()
    first = faults[0]
    if first["type"] == "json_invalid":
        return BadInput("E-card-json", first["msg"], where=where)
    location = tuple(part for part in first["loc"] if part not in _RULES)
    key = ".".join(str(part) for part in location) or "(card)"
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    found = "" if first["type"] in ("missing", "value_error") else f", found {_shown(first['input'])}"
    hint = did_you_mean(str(location[-1]), _siblings(first["loc"])) if first["type"] == "extra_forbidden" else ""
    message = "unknown key" if first["type"] == "extra_forbidden" else first["msg"] + found
    return BadInput("E-card-invalid", message + more, hint=hint, where=f"{where}: {key}")


def _shown(value: Any) -> str:
    shown = repr(value)
    longest = 60
    return shown if len(shown) <= longest else shown[:longest] + "..."


def _siblings(location: tuple[int | str, ...]) -> tuple[str, ...]:
    """The keys that are known where an unknown one was found."""
    models: dict[int | str, type[BaseModel]] = {
        "tokenizer": TokenizerRecipe,
        "weights": WeightRecipe,
        "qwen3moe": Qwen3MoeShape,
        "qwen35moe": Qwen35MoeShape,
        "explicit": ExplicitShape,
        "metadata": MetaEntry,
        "tensors": TensorEntry,
    }
    named = [models[part] for part in location[:-1] if part in models]
    return tuple((named[-1] if named else Card).model_fields)
