"""Make a model file from a card: F16 (or whatever the card's table says), byte for byte the same on every node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from harness.domain.errors import BadInput
from harness.models import weights
from harness.models.card import CARD_KEY, SYNTHETIC_KEY, Card
from harness.models.gguf_format import MetaValue, TensorSpec
from harness.models.gguf_writer import Writable, file_size, write_gguf
from harness.models.makeable import mixture_asked, require_drawable
from harness.models.mixtures import mixed
from harness.models.quantize import Quant
from harness.models.routing import MOST_OFTEN, RouterEstimate, estimate
from harness.models.tokenizer import TokenKind, Vocabulary, build_vocabulary

MAKER_VERSION = 1
"""Raised whenever the same card would give other bytes; part of every cache key."""

CARD_DIGEST_KEY = "moe_harness.card_sha256"
_QUANTIZATION_VERSION = 2
"""``GGML_QNT_VERSION`` of both forks."""

BytesDone = Callable[[int, int], None]
"""Told how many bytes of how many are written."""


@dataclass(frozen=True)
class Plan:
    """Everything that decides the bytes of a model file but the random draws.

    Attributes:
        card: The card.
        metadata: All metadata in order, tokenizer and provenance included.
        tensors: All tensors in order.
        control_rows: Ids of control tokens.
    """

    card: Card
    metadata: dict[str, MetaValue]
    tensors: tuple[TensorSpec, ...]
    control_rows: frozenset[int]

    @property
    def nbytes(self) -> int:
        """Bytes of the file."""
        return file_size(self.metadata, self.tensors)

    @property
    def drawing(self) -> weights.Drawing:
        """What the tensors are drawn by."""
        return weights.Drawing(self.card.weights, self.control_rows, experts_used(self.metadata))

    @property
    def routers(self) -> tuple[TensorSpec, ...]:
        """The tensors that score experts."""
        return tuple(tensor for tensor in self.tensors if weights.is_router(tensor.name))


def plan_model(card: Card, quant: Quant | None = None) -> Plan:
    """Work out header and tensors.

    Args:
        card: The card.
        quant: The mixture to draw; ``None``: the types that the card says.

    Raises:
        BadInput: ``E-card-not-makeable``: a tensor type that can't be drawn, or a tokenizer recipe that does not work
            out; ``E-mixture-unknown``; ``E-card-has-types``: another quantization than the card's table has.
    """
    quant = mixture_asked(card, quant)
    vocabulary = _vocabulary(card)
    layout = card.shape.layout(len(vocabulary.tokens) if vocabulary else 0)
    tensors = layout.tensors if quant is None else mixed(layout.tensors, quant.name, card.name)
    require_drawable(tensors, card.name)
    metadata = {**layout.metadata, **_provenance(card), **(_quantized(quant) if quant else {})}
    control: frozenset[int] = frozenset()
    if vocabulary and card.tokenizer:
        metadata |= vocabulary.metadata(card.tokenizer.pre)
        control = frozenset(number for number, kind in enumerate(vocabulary.kinds) if kind is not TokenKind.NORMAL)
    plan = Plan(card, metadata, tensors, control)
    _check_routers(plan)
    return plan


def experts_used(metadata: dict[str, MetaValue]) -> int:
    """Experts that a token goes through, as the metadata say; 1 where they don't."""
    architecture = metadata.get("general.architecture")
    entry = metadata.get(f"{architecture.value}.expert_used_count") if architecture else None
    return entry.value if entry is not None and isinstance(entry.value, int) and entry.value > 0 else 1


def estimate_routing(plan: Plan) -> tuple[RouterEstimate, ...]:
    """How often each expert of each layer is chosen, estimated; nothing for routers that are quantized."""
    used = plan.drawing.experts_used
    drawn = [tensor for tensor in plan.routers if tensor.type.block == 1]
    return tuple(estimate(tensor.name, weights.router_rows(tensor, plan.drawing), used) for tensor in drawn)


def write_model(file: Writable, plan: Plan, progress: BytesDone | None = None) -> None:
    """Write the model file.

    Args:
        file: Takes the bytes, from the first one on.
        plan: From `plan_model`.
        progress: Told the bytes of weights done and in all.
    """
    total = sum(tensor.nbytes for tensor in plan.tensors)
    done = 0
    drawing = plan.drawing

    def produced(tensor: TensorSpec) -> Iterator[bytes]:
        nonlocal done
        for piece in weights.tensor_bytes(tensor, drawing):
            yield piece
            done += len(piece)
            if progress is not None:
                progress(done, total)

    write_gguf(file, plan.metadata, plan.tensors, produced)


def _check_routers(plan: Plan) -> None:
    """A skew needs enough experts to choose from."""
    if plan.card.weights.router == "balanced":
        return
    used = plan.drawing.experts_used
    few = [tensor for tensor in plan.routers if used > MOST_OFTEN * (tensor.parameters // tensor.shape[0])]
    if few or not plan.routers:
        found = f"'{few[0].name}' scores {few[0].parameters // few[0].shape[0]}" if few else "there is no router"
        said = f"a skewed router needs more than {1 / MOST_OFTEN:g} experts for each of the {used} used; {found}"
        raise BadInput("E-card-not-makeable", said, hint='set router = "balanced"', where=f"{plan.card.name}: weights")


def _provenance(card: Card) -> dict[str, MetaValue]:
    return {
        "general.name": MetaValue("string", card.name),
        SYNTHETIC_KEY: MetaValue("bool", True),
        CARD_KEY: MetaValue("string", card.name),
        CARD_DIGEST_KEY: MetaValue("string", card.digest()),
    }


def _quantized(quant: Quant) -> dict[str, MetaValue]:
    return {
        "general.file_type": MetaValue("u32", quant.file_type),
        "general.quantization_version": MetaValue("u32", _QUANTIZATION_VERSION),
    }


def _vocabulary(card: Card) -> Vocabulary | None:
    recipe = card.tokenizer
    if recipe is None:
        return None
    try:
        return _trained(recipe.corpus_text(), recipe.merges, recipe.specials, recipe.size)
    except (ValueError, OSError) as fault:
        raise BadInput("E-card-not-makeable", str(fault), where=f"{card.name}: tokenizer") from fault


_trained = lru_cache(maxsize=4)(build_vocabulary)
