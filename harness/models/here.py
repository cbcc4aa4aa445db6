"""Whether a model lies on this machine, without making, fetching or hashing anything."""

from __future__ import annotations

from pathlib import Path

from harness.domain.errors import HarnessError
from harness.domain.model import Model
from harness.models.cache import ModelRequest, made_already
from harness.models.card import load_card
from harness.models.fetched import cached_model
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
    return made_already(ModelRequest(load_card(model.card), model.quant), cache_root())


def _fetched(model: Model) -> Path | None:
    return cached_model(model.sha256, cache_root())[0]
