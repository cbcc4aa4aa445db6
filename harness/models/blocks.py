"""Quantized blocks of random weights, drawn as they lie in the file: no float is ever quantized.

A block is random bytes with its scale set so that the weights have the standard deviation that is wanted. Every byte
pattern of these types is a valid block, so kernels do with it what they do with a trained model's. Where a type keeps
a minimum beside the scale, sub-blocks get one that centres them: weights have mean zero.

This is for models whose F16 file nobody wants to hold (30 billion parameters are 61 GB). What it is not: the rounding
of some network. Two types drawn so are two different networks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]

_CHUNK_BYTES = 1 << 22
_SIGN = 0x80
_LOW_NIBBLE, _BOTH_NIBBLES = 0x0F, 0x11


def _nothing(blocks: Bytes) -> None:
    del blocks


def _six_bit_pairs(blocks: Bytes) -> None:
    """Scale and minimum of every sub-block alike (Q4_K, Q5_K: twelve bytes after the two halves)."""
    blocks[:, 8:12] = blocks[:, 4:8]
    blocks[:, 12:16] = (blocks[:, 12:16] & _LOW_NIBBLE) * _BOTH_NIBBLES


def _four_bit_pairs(blocks: Bytes) -> None:
    """Scale and minimum of every sub-block alike (Q2_K: the first sixteen bytes)."""
    blocks[:, :16] = (blocks[:, :16] & _LOW_NIBBLE) * _BOTH_NIBBLES


@dataclass(frozen=True)
class _Recipe:
    """How a block of one type is made of random bytes.

    Attributes:
        unit_sd: Standard deviation of the weights where the scale is 1; found by dequantizing 20,000 random blocks with
            the gguf package, which a test does again.
        scale_at: Where the half-precision scale lies.
        minimum: Where the half-precision minimum lies, and its ratio to the scale; ``None`` for types without one.
        couple: Makes the sub-blocks' minima fit their scales.
    """

    unit_sd: float
    scale_at: int
    minimum: tuple[int, float] | None = None
    couple: Callable[[Bytes], None] = _nothing


_RECIPES: dict[str, _Recipe] = {
    "Q4_0": _Recipe(4.61, 0),
    "Q4_1": _Recipe(4.61, 0, (2, -7.5)),
    "Q5_0": _Recipe(9.24, 0),
    "Q5_1": _Recipe(9.24, 0, (2, -15.5)),
    "Q8_0": _Recipe(73.9, 0),
    "Q2_K": _Recipe(9.83, 80, (82, 1.5), _four_bit_pairs),
    "Q3_K": _Recipe(43.3, 108),
    "Q4_K": _Recipe(169.0, 0, (2, 7.5), _six_bit_pairs),
    "Q5_K": _Recipe(337.0, 0, (2, 15.5), _six_bit_pairs),
    "Q6_K": _Recipe(1366.0, 208),
    "IQ4_NL": _Recipe(67.1, 0),
    "IQ4_XS": _Recipe(1248.0, 0),
    "IQ3_S": _Recipe(140.0, 0),
    "IQ3_XXS": _Recipe(142.0, 0),
    "IQ2_S": _Recipe(56.3, 0),
    "IQ2_XS": _Recipe(55.8, 0),
    "IQ2_XXS": _Recipe(53.4, 0),
}

BLOCK_TYPES = frozenset(_RECIPES)
"""Names of the types that can be drawn."""


@dataclass(frozen=True)
class BlockShape:
    """Rows of blocks.

    Attributes:
        type: Name of the tensor type.
        block_bytes: Bytes of a block.
        blocks: Blocks in a row.
        rows: Rows.
    """

    type: str
    block_bytes: int
    blocks: int
    rows: int


def draw_blocks(source: np.random.PCG64, shape: BlockShape, row_sd: NDArray[np.float64]) -> Iterator[bytes]:
    """Draw the blocks of a tensor in pieces of some mebibytes.

    Args:
        source: Gives raw bits.
        shape: What to draw.
        row_sd: Standard deviation of each row's weights, shape (rows,) or (1,) for all rows alike.
    """
    recipe = _RECIPES[shape.type]
    row_bytes = shape.blocks * shape.block_bytes
    step = max(1, _CHUNK_BYTES // row_bytes)
    sds = np.broadcast_to(row_sd, (shape.rows,))
    for first in range(0, shape.rows, step):
        scales = np.repeat(sds[first : first + step] / recipe.unit_sd, shape.blocks)
        blocks = _random_bytes(source, len(scales) * shape.block_bytes).reshape(-1, shape.block_bytes)
        recipe.couple(blocks)
        _set_scales(blocks, recipe, scales)
        yield blocks.tobytes()


def _random_bytes(source: np.random.PCG64, count: int) -> Bytes:
    words: NDArray[np.uint64] = source.random_raw(-(-count // 8))
    return words.astype("<u8", copy=False).view(np.uint8)[:count]


def _set_scales(blocks: Bytes, recipe: _Recipe, scales: NDArray[np.float64]) -> None:
    at = recipe.scale_at
    signs = blocks[:, at + 1] & _SIGN
    blocks[:, at : at + 2] = _halves(scales)
    if recipe.minimum is None:
        # The values of some types are not centred; with either sign of the scale their mean is zero all the same.
        blocks[:, at + 1] |= signs
        return
    offset, ratio = recipe.minimum
    blocks[:, offset : offset + 2] = _halves(scales * ratio)


def _halves(values: NDArray[np.float64]) -> Bytes:
    return values.astype("<f2").view(np.uint8).reshape(-1, 2)
