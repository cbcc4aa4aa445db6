"""A model as a command names it: the path of a GGUF, or a shape card with a quantization (``tiny-moe:IQ4_XS``)."""

from __future__ import annotations

from pathlib import Path

from harness.domain.errors import BadInput
from harness.domain.model import Model
from harness.domain.suggest import did_you_mean
from harness.models.card import load_card, packaged_cards
from harness.models.inspect import inspect_gguf
from harness.models.makeable import require_makeable
from harness.models.quantize import QUANTS, UNQUANTIZED

TINY_CARD = "tiny-moe"
"""The card that is taken where no model is named: it is made in seconds, and both forks' wheels run it anywhere."""
DEFAULT_QUANT = "IQ4_XS"


def model_named(word: str) -> Model:
    """The model that a word names.

    Args:
        word: The path of a GGUF file, or a card's name or path, with ``:QUANT`` behind it or not; empty: the tiny card.

    Raises:
        BadInput: ``E-model-missing``, ``E-unknown-card``, ``E-unknown-quant``, what is wrong with the file or card.
    """
    if Path(word).is_file() and not word.endswith(".json"):
        inspect_gguf(Path(word))
        return Model(Path(word).stem, path=str(Path(word).absolute()))
    parted = ":" in word and not word.endswith(".json")
    card, quant = word.rsplit(":", 1) if parted else (word or TINY_CARD, "")
    if card not in packaged_cards() and not card.endswith(".json"):
        raise _unknown(word, card)
    return _of_card(card, quant)


def _of_card(card: str, quant: str) -> Model:
    found = load_card(card)
    name = found.name
    quant = quant or (DEFAULT_QUANT if found.own_quant == UNQUANTIZED else found.own_quant)
    if quant.upper() not in QUANTS:
        hint = did_you_mean(quant, QUANTS)
        raise BadInput("E-unknown-quant", f"no quantization '{quant}' can be made of card '{name}'", hint=hint)
    path = card if card in packaged_cards() else str(Path(card).absolute())
    require_makeable(found, quant.upper())
    return Model(f"{name}-{quant.lower()}", card=path, quant=quant.upper())


def _unknown(word: str, card: str) -> BadInput:
    """A path that is not there, or a card that nobody knows."""
    path = Path(word)
    if "/" in word or path.suffix == ".gguf":
        folder = path.parent
        beside = [found.name for found in sorted(folder.glob("*.gguf"))] if folder.is_dir() else []
        hint = did_you_mean(path.name, beside) or f"{folder} holds no .gguf file"
        return BadInput("E-model-missing", f"there is no model file at {path}", hint=hint)
    hint = f"{did_you_mean(card, packaged_cards())}; or give the path of a GGUF file"
    return BadInput("E-unknown-card", f"'{word}' is neither a file nor a packaged card", hint=hint)
