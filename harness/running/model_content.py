"""What a model is made of, in one word: by it a calibration of its outputs is found again."""

from __future__ import annotations

from pathlib import Path

from harness.domain.canonical import digest
from harness.domain.errors import BadInput
from harness.domain.model import Model
from harness.models.card import load_card
from harness.models.hashing import known_sha256


def content_of(model: Model) -> str:
    """The content of a model, without reading its weights; empty where it is not known.

    Args:
        model: The model. Of a card, the card decides; of a file that has no declared digest, the digest that was made
            when it was last used here, as long as the file has not changed.
    """
    if model.card:
        try:
            return f"card {digest([load_card(model.card).digest(), model.quant])}"
        except BadInput:
            return ""
    if model.sha256:
        return f"sha256 {digest(list(model.sha256))}"
    found = known_sha256(Path(model.path)) if model.path else ()
    return f"sha256 {digest(list(found))}" if found else ""
