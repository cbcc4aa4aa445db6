"""What decides a model's need of memory: figures of its header and the table of its tensors; no weights."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.models.gguf_format import MetaValue, TensorSpec

INPUT, OUTPUT = -1, -2
"""Layers of the tensors that belong to no block: before the first block, and after the last one."""

_BLOCK = re.compile(r"blk\.(\d+)\.")
_INPUTS = frozenset({"token_embd", "token_embd_norm", "token_types", "position_embd", "per_layer_token_embd"})
_RECURRENT = "ssm_conv1d"
_EXPERTS = re.compile(r"_(ch)?exps\.")
_FLOAT = 4


@dataclass(frozen=True, slots=True)
class Weight:
    """One tensor.

    Attributes:
        spec: Name, shape and type.
        nbytes: Bytes of its weights.
        layer: Its block; or `INPUT` or `OUTPUT`.
    """

    spec: TensorSpec
    nbytes: int
    layer: int

    @property
    def is_expert(self) -> bool:
        """Whether it holds the experts of a layer."""
        return _EXPERTS.search(self.spec.name) is not None


@dataclass(frozen=True)
class ModelShape:
    """A model as far as memory is concerned. Compared by identity: there is one object of each model.

    Attributes:
        name: For messages.
        metadata: Entries of the header.
        weights: Tensors in the file's order.
        file_bytes: Bytes of all its files.
    """

    name: str
    metadata: Mapping[str, MetaValue]
    weights: tuple[Weight, ...]
    file_bytes: int

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def number(self, key: str, default: int = 0) -> int:
        """A figure of the architecture; of a list with one value a layer, the largest."""
        entry = self.metadata.get(f"{self.architecture}.{key}")
        value = entry.value if entry else default
        if isinstance(value, tuple):
            return max((each for each in value if isinstance(each, int)), default=default)
        return value if isinstance(value, int) else default

    @cached_property
    def architecture(self) -> str:
        """Such as ``qwen3moe``."""
        entry = self.metadata.get("general.architecture")
        return str(entry.value) if entry else ""

    @cached_property
    def layers(self) -> int:
        """Blocks."""
        return self.number("block_count")

    @cached_property
    def width(self) -> int:
        """Width of the residual stream."""
        return self.number("embedding_length")

    @cached_property
    def heads(self) -> int:
        """Query heads."""
        return self.number("attention.head_count", 1)

    @cached_property
    def key_width(self) -> int:
        """Width of a head's key."""
        return self.number("attention.key_length", self.width // self.heads)

    @cached_property
    def value_width(self) -> int:
        """Width of a head's value."""
        return self.number("attention.value_length", self.width // self.heads)

    @cached_property
    def vocabulary(self) -> int:
        """Tokens: rows of the embedding."""
        return next((each.spec.shape[-1] for each in self.weights if each.spec.name == "token_embd.weight"), 0)

    @cached_property
    def expert_rows(self) -> int:
        """What one token has inside the experts that it goes through, or inside the dense layer: values of the gate."""
        dense = self.number("feed_forward_length") if not self.experts_used or self.has_dense else 0
        return max(self.experts_used * self._expert_width, dense)

    @cached_property
    def down_rows(self) -> int:
        """What leaves those experts: values a token."""
        return max(self.experts_used, 1) * self.width

    @cached_property
    def experts_used(self) -> int:
        """Experts that a token goes through; 0 for a dense model."""
        return self.number("expert_used_count")

    @cached_property
    def has_dense(self) -> bool:
        """Whether some layer has no experts."""
        return any(each.spec.name.endswith(".ffn_up.weight") for each in self.weights)

    @cached_property
    def _expert_width(self) -> int:
        said = self.number("expert_feed_forward_length")
        up = (each.spec.shape[1] for each in self.weights if ".ffn_up_exps." in each.spec.name)
        return said or next(up, 0)

    @cached_property
    def recurrent_layers(self) -> frozenset[int]:
        """Layers that keep a state instead of keys and values."""
        return frozenset(each.layer for each in self.weights if f".{_RECURRENT}." in each.spec.name)

    @cached_property
    def state_bytes(self) -> int:
        """State of one recurrent layer: its convolution's last tokens and its memory, in 32-bit floats."""
        if not self.recurrent_layers:
            return 0
        inner, state = self.number("ssm.inner_size"), self.number("ssm.state_size")
        return _FLOAT * ((self.number("ssm.conv_kernel") - 1) * self.channels + inner * state)

    @cached_property
    def channels(self) -> int:
        """Values a token that the convolution of a recurrent layer sees; 0 without such layers."""
        if not self.recurrent_layers:
            return 0
        return self.number("ssm.inner_size") + 2 * self.number("ssm.group_count") * self.number("ssm.state_size")

    @cached_property
    def kv_heads(self) -> tuple[int, ...]:
        """Key and value heads of each layer; 0 where it keeps no cache."""
        entry = self.metadata.get(f"{self.architecture}.attention.head_count_kv")
        said = entry.value if entry else self.heads
        each = said if isinstance(said, tuple) else (said,) * self.layers
        return tuple(
            0 if layer in self.recurrent_layers else int(heads) for layer, heads in enumerate(each[: self.layers])
        )


def shape_of(
    name: str, metadata: Mapping[str, MetaValue], tensors: Sequence[TensorSpec], nbytes: Sequence[int], file_bytes: int
) -> ModelShape:
    """Put a shape together.

    Args:
        name: For messages.
        metadata: Entries of the header; the tokenizer is not needed.
        tensors: The table of tensors.
        nbytes: Bytes of each.
        file_bytes: Bytes of all files.
    """
    weights = tuple(Weight(spec, size, _layer(spec.name)) for spec, size in zip(tensors, nbytes, strict=True))
    return ModelShape(name, metadata, weights, file_bytes)


def _layer(name: str) -> int:
    found = _BLOCK.match(name)
    if found:
        return int(found[1])
    return INPUT if name.split(".", maxsplit=1)[0] in _INPUTS else OUTPUT
