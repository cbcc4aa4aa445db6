"""How large a model's file is, as far as that can be told without making it."""

from __future__ import annotations

from pathlib import Path

from harness.domain.errors import HarnessError
from harness.domain.model import Model
from harness.models.cache import read_sidecar
from harness.models.card import load_card
from harness.models.storage import cache_root


def model_bytes(model: Model) -> int | None:
    """Bytes of a model's file; ``None`` where it is not there, or was not made of its card yet."""
    try:
        return _cached_bytes(model) if model.card else Path(model.path).stat().st_size
    except (OSError, HarnessError):
        return None


def _cached_bytes(model: Model) -> int | None:
    card = load_card(model.card)
    made = (cache_root() / "models").glob(f"{card.name}-{model.quant}-*.gguf")
    sizes = [side.size for side in map(read_sidecar, made) if side and side.card_sha256 == card.digest()]
    return max(sizes, default=None)
