"""How large a model's file is, as far as that can be told without making it."""

from __future__ import annotations

from pathlib import Path

from harness.domain.errors import HarnessError
from harness.domain.model import Model
from harness.models.cache import read_sidecar
from harness.models.card import load_card
from harness.models.shelf import held_models, made_folder
from harness.models.splits import parts_of
from harness.models.storage import cache_root


def model_bytes(model: Model) -> int | None:
    """Bytes of a model, all its files; ``None`` where it is not there, or was not made of its card or fetched yet."""
    try:
        if model.path:
            return sum(part.stat().st_size for part in parts_of(Path(model.path)))
        return _made_bytes(model) if model.card else _fetched_bytes(model)
    except (OSError, HarnessError):
        return None


def _made_bytes(model: Model) -> int | None:
    card = load_card(model.card)
    made = made_folder(cache_root()).glob(f"{card.name}-{model.quant}-*.gguf")
    sizes = [side.size for side in map(read_sidecar, made) if side and side.card_sha256 == card.digest()]
    return max(sizes, default=None)


def _fetched_bytes(model: Model) -> int | None:
    return next((held.size for held in held_models(cache_root()) if held.sha256 == model.sha256), None)
