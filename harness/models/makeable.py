"""Whether a card can be made in a quantization: told from the card alone, before anything is drawn."""

from __future__ import annotations

from harness.domain.errors import BadInput
from harness.models.card import Card
from harness.models.mixtures import mixed
from harness.models.quantize import QUANTS, UNQUANTIZED, Quant


def mixture_asked(card: Card, quant: Quant | None) -> Quant | None:
    """The mixture to give a card's tensors; none where the card's table has types already.

    Raises:
        BadInput: ``E-card-has-types``: another quantization than the card's table has.
    """
    if quant is None or card.own_quant == UNQUANTIZED:
        return quant
    if quant.name != card.own_quant:
        message = f"the card's table has types of its own ({card.own_quant}); it can't be made as {quant.name}"
        raise BadInput("E-card-has-types", message, hint="leave the quantization out", where=card.name)
    return None


def require_makeable(card: Card, quant: str) -> None:
    """Refuse what would be refused when the model is made.

    Args:
        card: The card.
        quant: A known quantization; ``F16`` is the card as written.

    Raises:
        BadInput: ``E-card-has-types``; of cards that are drawn, as `mixed`.
    """
    mixture = None if quant == UNQUANTIZED else mixture_asked(card, QUANTS[quant])
    if mixture is not None and card.weights.blocks == "drawn":
        mixed(card.shape.layout(0).tensors, mixture.name, card.name)
