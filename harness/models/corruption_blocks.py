"""Bit work on rows of weights as they lie in a file: parts of a row made zero, rows made coarser, nothing dequantized.

A row is an array of raw bytes, shape (rows, bytes). Zero bytes are zero weights in every type: the scale is zero. Bytes
of ones are NaN in every type: half, single and bfloat scales are NaN then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.models.gguf_types import TensorType

Bytes: TypeAlias = NDArray[np.uint8]
RowChange: TypeAlias = Callable[[Bytes], Bytes]

_SIX_BITS, _LOW_NIBBLE, _HIGH_NIBBLE, _TOP_TWO = 0x3F, 0x0F, 0xF0, 0xC0
_SUPER = 256
_HALF = 4
"""Sub-blocks of a K-quant whose scales have six bits of their own; the later four share theirs with these."""
_IQ4_ZERO_HIGH = 2
"""High bits of IQ4_XS's scale 32, which stands for nought."""
_FLOATS: Mapping[str, np.dtype[np.floating]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2")}
_COARSE_LEVELS = 4
_COARSE_BLOCK = 32


@dataclass(frozen=True)
class ZeroedColumns:
    """Columns of a tensor that can be made zero together.

    Attributes:
        first: The first of them.
        stop: The one after the last.
        change: Makes them zero.
    """

    first: int
    stop: int
    change: RowChange


def zeroed_columns(kind: TensorType, first: int, stop: int) -> ZeroedColumns:
    """Make columns zero; where a type can't say zero for so few, those of the whole blocks around them.

    Args:
        kind: The tensor's type.
        first: First column.
        stop: Column after the last.
    """
    parts = _ZERO_PARTS.get(kind.name)
    if parts is None:
        return _zeroed_blocks(kind, first, stop)
    width = _SUPER // parts.count
    first, stop = first // width, -(-stop // width)

    def change(rows: Bytes) -> Bytes:
        blocks = rows.reshape(-1, kind.block_bytes).copy()
        per_row = rows.shape[1] // kind.block_bytes
        for part in range(first, stop):
            parts.zero(blocks[part // parts.count :: per_row], part % parts.count)
        return blocks.reshape(rows.shape)

    return ZeroedColumns(first * width, stop * width, change)


def _zeroed_blocks(kind: TensorType, first: int, stop: int) -> ZeroedColumns:
    first, stop = first // kind.block, -(-stop // kind.block)

    def change(rows: Bytes) -> Bytes:
        changed = rows.copy()
        changed[:, kind.row_bytes + first * kind.block_bytes : kind.row_bytes + stop * kind.block_bytes] = 0
        return changed

    return ZeroedColumns(first * kind.block, stop * kind.block, change)


def coarsened(kind: TensorType) -> RowChange | None:
    """Keep two bits of each weight, in the type that it has; ``None`` for types whose bits are not known here."""
    dtype = _FLOATS.get(kind.name)
    if dtype is not None:
        return lambda rows: _four_levels(rows, dtype)
    by_block = _COARSEN.get(kind.name)
    if by_block is None:
        return None

    def change(rows: Bytes) -> Bytes:
        blocks = rows.reshape(-1, kind.block_bytes).copy()
        by_block(blocks)
        return blocks.reshape(rows.shape)

    return change


def _four_levels(rows: Bytes, dtype: np.dtype[np.floating]) -> Bytes:
    """Round to four levels, evenly between the largest and its negative in each block of 32 (or the whole row)."""
    values = rows.view(dtype)
    size = _COARSE_BLOCK if values.shape[1] % _COARSE_BLOCK == 0 else values.shape[1]
    blocks = values.reshape(-1, size).astype(np.float32)
    step = 2 * np.abs(blocks).max(axis=1, keepdims=True) / (_COARSE_LEVELS - 1)
    places = np.clip(np.floor(blocks / np.where(step > 0, step, 1)), -_COARSE_LEVELS // 2, _COARSE_LEVELS // 2 - 1)
    levels: Bytes = ((places + np.float32(0.5)) * step).astype(dtype).view(np.uint8)
    return levels.reshape(rows.shape)


# ---- parts of a block of 256 -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Parts:
    """Sub-blocks of a block of 256 with scales of their own.

    Attributes:
        count: How many.
        zero: Makes one of them zero in all blocks, given as shape (blocks, bytes).
    """

    count: int
    zero: Callable[[Bytes, int], None]


def _zero_k_part(blocks: Bytes, part: int) -> None:
    """Q4_K and Q5_K: twelve bytes of packed scales and minima after the two halves."""
    packed = blocks[:, 4:16]
    if part < _HALF:
        packed[:, part] &= _TOP_TWO
        packed[:, part + _HALF] &= _TOP_TWO
        return
    packed[:, part + _HALF] = 0
    packed[:, part - _HALF] &= _SIX_BITS
    packed[:, part] &= _SIX_BITS


def _zero_q6_part(blocks: Bytes, part: int) -> None:
    """Q6_K: sixteen signed scales after the quants."""
    blocks[:, 192 + part] = 0


def _zero_iq4_part(blocks: Bytes, part: int) -> None:
    """IQ4_XS: after the half two bytes of high scale bits, then four of low nibbles; scales are 32 more than meant."""
    high, low = 2 + part // 4, 4 + part // 2
    blocks[:, high] = (blocks[:, high] & ~np.uint8(3 << 2 * (part % 4))) | np.uint8(_IQ4_ZERO_HIGH << 2 * (part % 4))
    blocks[:, low] &= _HIGH_NIBBLE if part % 2 == 0 else _LOW_NIBBLE


_ZERO_PARTS: Mapping[str, _Parts] = {
    "Q4_K": _Parts(8, _zero_k_part),
    "Q5_K": _Parts(8, _zero_k_part),
    "Q6_K": _Parts(16, _zero_q6_part),
    "IQ4_XS": _Parts(8, _zero_iq4_part),
}


# ---- fewer bits in each weight ---------------------------------------------------------------------------------------


def _coarsen_bytes(blocks: Bytes) -> None:
    """Q8_0: signed bytes after the half, to the middles of four ranges."""
    quants = blocks[:, 2:].view(np.int8)
    quants[:] = (quants & np.int8(-64)) + np.int8(32)


def _coarsen_nibbles(start: int) -> Callable[[Bytes], None]:
    """Nibbles of two bits each, the others set to the middle."""

    def change(blocks: Bytes) -> None:
        blocks[:, start:] = (blocks[:, start:] & 0xCC) | 0x22

    return change


def _coarsen_q5(blocks: Bytes) -> None:
    """Q5_K: the fifth bits lie apart and stay; of the nibbles one bit."""
    blocks[:, 48:] = (blocks[:, 48:] & 0x88) | 0x44


def _coarsen_q6(blocks: Bytes) -> None:
    """Q6_K: the high two bits lie apart and stay."""
    blocks[:, :128] = 0x88


_COARSEN: Mapping[str, Callable[[Bytes], None]] = {
    "Q8_0": _coarsen_bytes,
    "Q4_0": _coarsen_nibbles(2),
    "IQ4_NL": _coarsen_nibbles(2),
    "IQ4_XS": _coarsen_nibbles(8),
    "Q4_K": _coarsen_nibbles(16),
    "Q5_K": _coarsen_q5,
    "Q6_K": _coarsen_q6,
}
