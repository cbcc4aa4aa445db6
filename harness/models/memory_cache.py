"""What each layer keeps of the tokens before: keys and values of all of them or of a window, a latent row, or a state.

Read in both forks' sources and held against what their libraries print (docs/explanation/memory.md). What is not known
is said by `not_counted` and never guessed: a number too high would refuse a model that fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from harness.domain.build import Fork
from harness.domain.flags import FlagValue
from harness.models.memory_shape import ModelShape

_LATENT = "attention.kv_lora_rank"
_WINDOW = "attention.sliding_window"
PATTERN = "attention.sliding_window_pattern"
"""The key that says which layers have a window."""
_WINDOW_STEP = 256
_LATENT_ARCHITECTURES = frozenset({"deepseek2"})
_WINDOW_PERIODS = {"gpt-oss": 2}
"""Architectures whose layers keep plain keys and values. Where the header says no pattern: of so many layers, the last
sees all tokens."""
_ODD_KEYS = (
    "attention.key_length_swa",
    "attention.value_length_swa",
    "attention.shared_kv_layers",
    "attention.indexer.head_count",
    "nextn_predict_layers",
)
"""With them, layers have caches of other widths, of other layers, or more than one."""
_TRANSPOSED, _DEFAULT_MLA = 1, 3


class Row(NamedTuple):
    """What one layer keeps.

    Attributes:
        key: Values of keys, or of what stands for them, a token.
        value: Values of values a token.
        window: Tokens that it looks back, 0 for all.
        state: Bytes of a state that does not grow with the tokens.
    """

    key: int
    value: int
    window: int = 0
    state: int = 0

    def cells(self, context: int, batch: int) -> int:
        """Tokens that llama.cpp makes room for where it keeps a window of them: the window and a batch, at most all."""
        if not self.window:
            return context
        return -(-min(context, self.window + batch) // _WINDOW_STEP) * _WINDOW_STEP


def not_counted(shape: ModelShape, *, windowed: bool) -> str:
    """The header's key that nothing is known for here; empty where all that layers keep is known.

    Args:
        shape: The model.
        windowed: Whether layers with a window keep no more than that.
    """
    told = _LATENT if shape.number(_LATENT) else _WINDOW if shape.number(_WINDOW) else ""
    if not told:
        return ""
    odd = next((key for key in _ODD_KEYS if shape.number(key)), "")
    if odd or shape.architecture not in (_LATENT_ARCHITECTURES if told == _LATENT else _WINDOW_PERIODS):
        return odd or told
    return "" if told == _LATENT or not windowed or _windows(shape) is not None else PATTERN


def is_latent(shape: ModelShape) -> bool:
    """Whether attention goes through a latent row."""
    return bool(shape.number(_LATENT))


def has_window(shape: ModelShape) -> bool:
    """Whether some layers look back through a window only: batches then have a second mask."""
    return bool(shape.number(_WINDOW))


def rows_of(shape: ModelShape, fork: Fork, flags: Mapping[str, FlagValue], *, windowed: bool) -> tuple[Row, ...]:
    """What each layer keeps; only for models of which `not_counted` says nothing.

    Args:
        shape: The model.
        fork: Whose cache.
        flags: Flags by name; those that are missing are at their defaults.
        windowed: Whether layers with a window keep no more than that.
    """
    return _rows(shape, fork, _mla(flags), flags.get("fa", 1) != 0, windowed)


def cache_types(shape: ModelShape, fork: Fork, flags: Mapping[str, FlagValue]) -> tuple[str, str]:
    """Types of keys and values, as GGUF names them."""
    key, value = (str(flags.get(name, "f16")).upper() for name in ("ctk", "ctv"))
    # Without flash attention ik_llama.cpp keeps latent rows, from which it makes values too, in the values' type.
    as_values = fork is Fork.IK_LLAMA_CPP and is_latent(shape) and _mla(flags) > _TRANSPOSED and flags.get("fa", 1) == 0
    return (value if as_values else key), value


def _mla(flags: Mapping[str, FlagValue]) -> int:
    return int(flags.get("mla", _DEFAULT_MLA))


@lru_cache(maxsize=256)
def _rows(shape: ModelShape, fork: Fork, mla: int, flash: bool, windowed: bool) -> tuple[Row, ...]:
    if is_latent(shape):
        row = _latent_of_mainline(shape) if fork is Fork.LLAMA_CPP else _latent_of_ik(shape, mla, flash=flash)
        return (row,) * shape.layers
    windows = (_windows(shape) if windowed and has_window(shape) else None) or (0,) * shape.layers
    return tuple(
        Row(heads * shape.key_width, heads * shape.value_width, window) if heads else Row(0, 0, 0, shape.state_bytes)
        for heads, window in zip(shape.kv_heads, windows, strict=True)
    )


def _latent_of_mainline(shape: ModelShape) -> Row:
    """Files made since 2025 have widths of their own for heads: then one latent row is key and value."""
    heads = max(shape.kv_heads, default=0)
    latent = shape.number("attention.key_length_mla") and shape.number("attention.value_length_mla")
    return Row(heads * shape.key_width, 0 if latent else heads * shape.value_width)


def _latent_of_ik(shape: ModelShape, mla: int, *, flash: bool) -> Row:
    """A latent row; without flash attention ``mla = 1`` has values too, transposed. ``mla = 0``: whole heads."""
    if not mla:
        key = shape.number("attention.key_length_mla", shape.key_width)
        return Row(shape.heads * key, shape.heads * shape.number("attention.value_length_mla", shape.value_width))
    rank = shape.number(_LATENT)
    return Row(rank + shape.number("rope.dimension_count"), rank if mla == _TRANSPOSED and not flash else 0)


def _windows(shape: ModelShape) -> tuple[int, ...] | None:
    """The window of each layer, 0 for none; ``None`` where the header's pattern is not one of its layers."""
    window, layers = shape.number(_WINDOW), shape.layers
    entry = shape.metadata.get(f"{shape.architecture}.{PATTERN}")
    said = entry.value if entry else _WINDOW_PERIODS[shape.architecture]
    if isinstance(said, tuple):
        return tuple(window if each else 0 for each in said) if len(said) == layers else None
    if not isinstance(said, int) or said < 0:
        return None
    return tuple(window if not said or layer % said < said - 1 else 0 for layer in range(layers))
