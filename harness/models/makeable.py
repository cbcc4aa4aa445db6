"""Whether a card can be made in a quantization: told from the card alone, before anything is drawn."""

from __future__ import annotations

from collections.abc import Sequence

from harness.domain.errors import BadInput
from harness.models.card import Card
from harness.models.gguf_format import TensorSpec
from harness.models.mixtures import mixed
from harness.models.quantize import QUANTS, UNQUANTIZED, Quant
from harness.models.shapes import ExplicitShape


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
        BadInput: ``E-card-has-types``; as `require_drawable` of cards with a table of tensors, as `mixed` of those that
            are drawn.
    """
    mixture = None if quant == UNQUANTIZED else mixture_asked(card, QUANTS[quant])
    if isinstance(card.shape, ExplicitShape):
        require_drawable(card.shape.layout(0).tensors, card.name)
    if mixture is not None and card.weights.blocks == "drawn":
        mixed(card.shape.layout(0).tensors, mixture.name, card.name)


def require_drawable(tensors: Sequence[TensorSpec], where: str) -> None:
    """Refuse tensors of types that nothing here draws.

    Args:
        tensors: All of a model.
        where: Named in errors.

    Raises:
        BadInput: ``E-card-not-makeable`` with the first such tensor, and how many more there are.
    """
    from harness.models.weights import FILLED_TYPES, can_fill  # noqa: PLC0415 - brings numpy, which plans do without

    foreign = [tensor for tensor in tensors if not can_fill(tensor)]
    if foreign:
        more = f" (and {len(foreign) - 1} more)" if len(foreign) > 1 else ""
        said = f"tensor '{foreign[0].name}' has type {foreign[0].type.name}, which can't be drawn{more}"
        hint = f"types that can: {', '.join(sorted(FILLED_TYPES))}"
        raise BadInput("E-card-not-makeable", said, hint=hint, where=where)
