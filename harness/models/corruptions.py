"""Model files with one planted fault: whether a check finds what is broken can only be seen on something broken.

A fault is worked out from the header and a seed alone, so it can be told, and done again, without reading a weight.
`harness.models.corrupting` writes it. Faults are of kinds that real builds have had: experts mixed up, a wrong number
of experts, a head lost, a wrong RoPE base, weights rounded too far, NaN.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from harness.domain.errors import BadInput
from harness.models.corruption_blocks import RowChange, coarsened, zeroed_columns
from harness.models.gguf_format import MetaValue, TensorSpec
from harness.models.gguf_reader import GgufHeader
from harness.models.weights import is_router

_DEFAULT_ROPE_BASE = 10_000.0
_OTHER_ROPE_BASE = 1_000_000.0
_ALL_ONES = 0xFF
_PAIR = 2
_MATRIX_DIMENSIONS = 2


class Kind(StrEnum):
    """What is planted."""

    SWAPPED_EXPERTS = "swapped-experts"
    """Two experts of a layer in each other's place, with the router as it was."""
    ZEROED_EXPERT = "zeroed-expert"
    """One expert of a layer gives nothing."""
    PERMUTED_ROUTER = "permuted-router"
    """Each row of a layer's router in another expert's place."""
    FEWER_EXPERTS = "fewer-experts"
    """One expert fewer for each token, in all layers."""
    ZEROED_HEAD = "zeroed-head"
    """What one attention head of a layer gives is dropped."""
    ROPE_BASE = "rope-base"
    """Another base of the rotary frequencies."""
    COARSE_TENSOR = "coarse-tensor"
    """One matrix of a layer rounded to two bits a weight."""
    NAN_ROW = "nan-row"
    """One row of a layer's matrix is NaN."""


@dataclass(frozen=True)
class Slices:
    """A tensor cut into equal slices, some of them taken from elsewhere or filled.

    Attributes:
        count: How many slices.
        moved: Slice, and the slice whose content it gets.
        filled: Slice, and the byte that it is filled with.
    """

    count: int
    moved: Mapping[int, int] = field(default_factory=dict)
    filled: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Corruption:
    """One planted fault.

    Attributes:
        kind: Which.
        what: What was changed, for a person.
        metadata: Values in place of the header's.
        slices: Tensors of which slices move or are filled, by name.
        rows: Tensors whose rows change, by name.
    """

    kind: Kind
    what: str
    metadata: Mapping[str, MetaValue] = field(default_factory=dict)
    slices: Mapping[str, Slices] = field(default_factory=dict)
    rows: Mapping[str, RowChange] = field(default_factory=dict)

    @property
    def tensors(self) -> frozenset[str]:
        """Names of the tensors that change."""
        return frozenset(self.slices) | frozenset(self.rows)


def plan_corruption(headers: tuple[GgufHeader, ...], kind: Kind, seed: int) -> Corruption:
    """Work out a fault.

    Args:
        headers: Of all files of the model, the first with its metadata.
        kind: What is planted.
        seed: Decides layer, experts, head, tensor and row.

    Raises:
        BadInput: ``E-corruption``: the model has nothing of the kind, such as a router.
    """
    model = _Model(headers, kind)
    return _PLANNERS[kind](model, random.Random(f"{kind}/{seed}"))  # noqa: S311 - no secret


class _Model:
    """What faults ask of a model's headers."""

    def __init__(self, headers: tuple[GgufHeader, ...], kind: Kind) -> None:
        self._path = str(headers[0].path)
        self._kind = kind
        self.metadata = headers[0].metadata
        self.tensors = tuple(placed.spec for header in headers for placed in header.tensors)
        self.architecture = str(self._value("general.architecture", ""))

    def number(self, key: str, default: int | None = None) -> int:
        """A whole number under the architecture's name."""
        value = self._value(f"{self.architecture}.{key}", default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.refused(f"its header has no number {self.architecture}.{key}")
        return value

    def choose(self, draw: random.Random, fits: Callable[[TensorSpec], bool], what: str) -> TensorSpec:
        """One of the tensors that fit."""
        fitting = [tensor for tensor in self.tensors if fits(tensor)]
        if not fitting:
            raise self.refused(f"it has no {what}")
        return draw.choice(fitting)

    def experts_of(self, draw: random.Random) -> tuple[str, list[TensorSpec], int]:
        """A layer with experts: its prefix, all tensors that hold them, and how many they are."""
        first = self.choose(draw, _holds_experts, "tensors of experts")
        prefix, count = _prefix(first), first.shape[-1]
        held = [each for each in self.tensors if _prefix(each) == prefix and "_exps." in each.name]
        if count < _PAIR or any(each.shape[-1] != count for each in held):
            raise self.refused(f"the experts of {prefix.rstrip('.')} are not laid out one after the other")
        return prefix, held, count

    def refused(self, why: str) -> BadInput:
        """The error where a fault can't be planted."""
        return BadInput("E-corruption", f"{self._kind} can't be planted: {why}", where=self._path)

    def _value(self, key: str, default: object) -> object:
        entry = self.metadata.get(key)
        return default if entry is None else entry.value


def _swapped_experts(model: _Model, draw: random.Random) -> Corruption:
    prefix, held, count = model.experts_of(draw)
    one, other = draw.sample(range(count), _PAIR)
    slices = {each.name: Slices(count, moved={one: other, other: one}) for each in held}
    what = f"experts {one} and {other} of {prefix.rstrip('.')} swapped in {len(held)} tensors, the router untouched"
    return Corruption(Kind.SWAPPED_EXPERTS, what, slices=slices)


def _zeroed_expert(model: _Model, draw: random.Random) -> Corruption:
    prefix, held, count = model.experts_of(draw)
    expert = draw.randrange(count)
    slices = {each.name: Slices(count, filled={expert: 0}) for each in held}
    return Corruption(Kind.ZEROED_EXPERT, f"expert {expert} of {prefix.rstrip('.')} zeroed", slices=slices)


def _permuted_router(model: _Model, draw: random.Random) -> Corruption:
    router = model.choose(draw, lambda each: is_router(each.name) and each.shape[-1] >= _PAIR, "router")
    count = router.shape[-1]
    order = list(range(count))
    draw.shuffle(order)
    # In one circle: no row stays where it was.
    moved = {order[at - 1]: order[at] for at in range(count)}
    what = f"the {count} rows of {router.name} permuted"
    return Corruption(Kind.PERMUTED_ROUTER, what, slices={router.name: Slices(count, moved=moved)})


def _fewer_experts(model: _Model, _: random.Random) -> Corruption:
    used = model.number("expert_used_count")
    if used <= 1:
        raise model.refused("a token goes through one expert only")
    key = f"{model.architecture}.expert_used_count"
    metadata = {key: MetaValue(model.metadata[key].kind, used - 1)}
    return Corruption(Kind.FEWER_EXPERTS, f"{key} {used - 1} instead of {used}", metadata=metadata)


def _zeroed_head(model: _Model, draw: random.Random) -> Corruption:
    output = model.choose(draw, lambda each: each.name.endswith(".attn_output.weight"), "attn_output")
    heads = model.number("attention.head_count")
    if heads < 1 or output.shape[0] % heads:
        raise model.refused(f"{output.name} has {output.shape[0]} columns for {heads} heads")
    width, head = output.shape[0] // heads, draw.randrange(heads)
    zeroed = zeroed_columns(output.type, head * width, (head + 1) * width)
    what = f"head {head} zeroed: columns {zeroed.first} to {zeroed.stop - 1} of {output.name}"
    return Corruption(Kind.ZEROED_HEAD, what, rows={output.name: zeroed.change})


def _rope_base(model: _Model, _: random.Random) -> Corruption:
    key = f"{model.architecture}.rope.freq_base"
    entry = model.metadata.get(key)
    found = entry.value if entry is not None and isinstance(entry.value, float) else _DEFAULT_ROPE_BASE
    other = _OTHER_ROPE_BASE if found == _DEFAULT_ROPE_BASE else _DEFAULT_ROPE_BASE
    return Corruption(Kind.ROPE_BASE, f"{key} {other:g} instead of {found:g}", metadata={key: MetaValue("f32", other)})


def _coarse_tensor(model: _Model, draw: random.Random) -> Corruption:
    tensor = model.choose(draw, lambda each: _is_matrix(each) and coarsened(each.type) is not None, "matrix to round")
    change = coarsened(tensor.type)
    assert change is not None  # noqa: S101 - chosen for it
    return Corruption(Kind.COARSE_TENSOR, f"{tensor.name} rounded to two bits a weight", rows={tensor.name: change})


def _nan_row(model: _Model, draw: random.Random) -> Corruption:
    tensor = model.choose(draw, _is_matrix, "matrix")
    count = tensor.parameters // tensor.shape[0]
    row = draw.randrange(count)
    what = f"row {row} of {tensor.name} ({count} rows) is NaN"
    return Corruption(Kind.NAN_ROW, what, slices={tensor.name: Slices(count, filled={row: _ALL_ONES})})


_PLANNERS: Mapping[Kind, Callable[[_Model, random.Random], Corruption]] = {
    Kind.SWAPPED_EXPERTS: _swapped_experts,
    Kind.ZEROED_EXPERT: _zeroed_expert,
    Kind.PERMUTED_ROUTER: _permuted_router,
    Kind.FEWER_EXPERTS: _fewer_experts,
    Kind.ZEROED_HEAD: _zeroed_head,
    Kind.ROPE_BASE: _rope_base,
    Kind.COARSE_TENSOR: _coarse_tensor,
    Kind.NAN_ROW: _nan_row,
}


def _prefix(tensor: TensorSpec) -> str:
    """The layer of a tensor, such as ``blk.3.``; empty outside of layers."""
    parts = tensor.name.split(".")
    return f"blk.{parts[1]}." if parts[0] == "blk" and len(parts) > _PAIR else ""


def _holds_experts(tensor: TensorSpec) -> bool:
    return bool(_prefix(tensor)) and tensor.name.endswith("_exps.weight")


def _is_matrix(tensor: TensorSpec) -> bool:
    """Whether it is a layer's matrix, and not its router."""
    return (
        bool(_prefix(tensor))
        and len(tensor.shape) >= _MATRIX_DIMENSIONS
        and tensor.name.endswith(".weight")
        and not is_router(tensor.name)
    )
