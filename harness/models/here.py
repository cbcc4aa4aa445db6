"""Whether a model lies on this machine, without making, fetching or hashing anything."""

from __future__ import annotations

from pathlib import Path

from harness.domain.errors import HarnessError
from harness.domain.model import Model
from harness.models.cache import read_sidecar
from harness.models.card import load_card
from harness.models.fetched import cached_model
from harness.models.quantize import UNQUANTIZED, known_quant
from harness.models.shelf import held_models
from harness.models.splits import parts_of
from harness.models.storage import cache_root


def files_here(model: Model) -> tuple[Path, ...]:
    """All files of a model; none where it does not lie here as a whole, or that can't be told."""
    try:
        first = Path(model.path) if model.path else _made(model) if model.card else _fetched(model)
        files = parts_of(first) if first is not None else ()
        return files if all(file.is_file() for file in files) else ()
    except (HarnessError, OSError):
        return ()  # whoever uses it says what is wrong


def _made(model: Model) -> Path | None:
    """Whatever quantizer made it: of that one no other can be told before it is made."""
    card = load_card(model.card)
    quant = known_quant(card.own_quant if model.quant == UNQUANTIZED else model.quant).name
    for held in held_models(cache_root()):
        known = read_sidecar(held.files[0])
        if known is not None and (known.card_sha256, known.quant) == (card.digest(), quant):
            return held.files[0]
    return None


def _fetched(model: Model) -> Path | None:
    return cached_model(model.sha256, cache_root())[0]
