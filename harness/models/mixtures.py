"""Which tensor gets which type in a quantization's mixture, for models that are drawn and not quantized.

The rules are those of llama.cpp's ``llama-quantize`` (read in ``src/llama-quant.cpp`` at 0c1e570) for mixtures of more
than eight experts with at least four query heads per key head, without an importance matrix. ik_llama.cpp's tool gives
the attention of such models more bits. Only mixtures that are listed are known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from harness.domain.errors import BadInput
from harness.domain.suggest import did_you_mean
from harness.models.gguf_format import TensorSpec
from harness.models.gguf_types import TYPES_BY_NAME

_LAYER = re.compile(r"blk\.(\d+)\.")
_EDGE = 8
_EVERY = 3
_VALUES = ("attn_v", "attn_qkv")
_DOWN = ("ffn_down", "ffn_down_exps", "ffn_down_shexp")


@dataclass(frozen=True)
class _Place:
    """Where a tensor lies: its name without the layer, its layer, and the number of layers."""

    role: str
    layer: int
    layers: int

    @property
    def gets_more_bits(self) -> bool:
        """The first and last eighth of the layers and every third between: ``use_more_bits`` of the tool."""
        edge = self.layers // _EDGE
        return self.layer < edge or self.layer >= 7 * self.layers // _EDGE or (self.layer - edge) % _EVERY == _EVERY - 1

    @property
    def is_early(self) -> bool:
        return self.layer < self.layers // _EDGE


_Rule: TypeAlias = Callable[[_Place], str]


def _q4_k_m(place: _Place) -> str:
    bigger = place.role in (*_VALUES, *_DOWN) and place.gets_more_bits
    return "Q6_K" if bigger or place.role == "output" else "Q4_K"


def _q4_k_s(place: _Place) -> str:
    early = place.role in _DOWN and place.is_early
    if place.role == "output":
        return "Q6_K"
    return "Q5_K" if early or (place.role in _VALUES and place.layer < 4) else "Q4_K"  # noqa: PLR2004 - the tool's


def _iq4_xs(place: _Place) -> str:
    if place.role == "output":
        return "Q6_K"
    early = place.role in _DOWN and place.is_early
    return "Q5_K" if early or place.role in _VALUES else "IQ4_XS"


_MIXTURES: Mapping[str, _Rule] = {
    "Q4_K_M": _q4_k_m,
    "Q4_K_S": _q4_k_s,
    "IQ4_XS": _iq4_xs,
    "Q8_0": lambda _: "Q8_0",
    "Q4_0": lambda place: "Q6_K" if place.role == "output" else "Q4_0",
}


def mixed(tensors: tuple[TensorSpec, ...], quant: str, where: str) -> tuple[TensorSpec, ...]:
    """The tensors with the types that a mixture gives them; one-dimensional ones and routers stay as they are.

    Args:
        tensors: An unquantized layout.
        quant: Name of the mixture.
        where: Named in errors.

    Raises:
        BadInput: ``E-mixture-unknown``; ``E-card-not-makeable`` where rows are not whole blocks of a type.
    """
    rule = _MIXTURES.get(quant)
    if rule is None:
        hint = did_you_mean(quant, _MIXTURES) or f"known: {', '.join(_MIXTURES)}"
        raise BadInput("E-mixture-unknown", f"'{quant}' can't be drawn, only quantized", hint=hint, where=where)
    layers = 1 + max((int(found[1]) for tensor in tensors if (found := _LAYER.match(tensor.name))), default=-1)
    return tuple(_retyped(tensor, rule, layers, where) for tensor in tensors)


def _retyped(tensor: TensorSpec, rule: _Rule, layers: int, where: str) -> TensorSpec:
    if tensor.type.name != "F16":
        return tensor
    found = _LAYER.match(tensor.name)
    role = tensor.name[found.end() if found else 0 :].removesuffix(".weight")
    kind = TYPES_BY_NAME[rule(_Place(role, int(found[1]) if found else -1, layers))]
    if tensor.shape[0] % kind.block:
        said = f"rows of '{tensor.name}' have {tensor.shape[0]} values, which are not whole blocks of {kind.name}"
        raise BadInput("E-card-not-makeable", said, where=where)
    return replace(tensor, type=kind)
