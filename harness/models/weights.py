"""Seeded random weights that are the same bytes on every machine.

Only raw bits of a bit generator (numpy promises those for ever, NEP 19), integer arithmetic, and float operations that
IEEE 754 rounds exactly are used; numpy's own normal deviates promise neither. A weight is the centred sum of the four
16-bit parts of one 64-bit draw: nearly normal (excess kurtosis -0.3), never further than 3.46 standard deviations out.

What the sizes mean. RMS norms make every matrix see entries of size one, so a matrix with standard deviation ``1 /
sqrt(row length)`` gives entries of size one again. Then:

- embeddings have size one, and each sub-layer adds ``residual_gain`` to that (attention over few tokens; it averages
  out over many);
- queries and keys have size one after their norms, whose weights make the scores' standard deviation ``attention_sd``;
- the rows of a router have length one, so its scores have standard deviation one, for each expert alike: balanced;
- ``output.weight`` gives logits of ``logits_sd``; the rows of control tokens are a tenth of that, so that greedy text
  does not end.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from harness.models.blocks import BLOCK_TYPES, BlockShape, draw_blocks
from harness.models.card import WeightRecipe
from harness.models.gguf_format import TensorSpec

_CHUNK_VALUES = 1 << 18
_PARTS = 4
_PART_RANGE = 1 << 16
_CENTRE = _PARTS * (_PART_RANGE - 1) // 2
_DRAW_SD = math.sqrt(_PARTS * (_PART_RANGE**2 - 1) / 12)
_PART_MASK = np.uint64(_PART_RANGE - 1)
_CONTROL_DAMPING = 0.1
# Size of what leaves an expert's gate and up (silu(a) * b of unit normals), times that of the mean over four experts.
_EXPERTS_OUT = 0.6 * 0.53
_FORMATS: dict[str, np.dtype[np.floating]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2")}

FILLED_TYPES = frozenset(_FORMATS) | BLOCK_TYPES
"""Names of the tensor types that can be drawn here."""

Draws = NDArray[np.int64]


def can_fill(tensor: TensorSpec) -> bool:
    """Whether tensors of this type can be drawn here."""
    return tensor.type.name in FILLED_TYPES


def tensor_bytes(tensor: TensorSpec, recipe: WeightRecipe, control_rows: frozenset[int]) -> Iterator[bytes]:
    """The weights of one tensor, in pieces of some mebibytes or one row.

    Args:
        tensor: Name, shape and type; the name decides its role.
        recipe: Seed and gains.
        control_rows: Token ids whose output rows are damped.
    """
    if tensor.type.name in BLOCK_TYPES:
        yield from _block_bytes(tensor, recipe, control_rows)
        return
    form = _FORMATS[tensor.type.name]
    columns = tensor.shape[0]
    rows = tensor.parameters // columns
    if tensor.name.endswith("norm.weight"):
        yield np.full(tensor.parameters, _norm_weight(tensor.name, recipe), form).tobytes()
        return
    source = _source(recipe.seed, tensor.name)
    step = max(1, _CHUNK_VALUES // columns)
    for first in range(0, rows, step):
        block = _draw(source, min(step, rows - first), columns)
        scale = _row_scales(tensor.name, block, recipe)
        if tensor.name == "output.weight":
            damped = [row - first for row in sorted(control_rows) if first <= row < first + len(block)]
            scale[damped] *= np.float32(_CONTROL_DAMPING)
        yield (block.astype(np.float32) * scale).astype(form).tobytes()


def _block_bytes(tensor: TensorSpec, recipe: WeightRecipe, control_rows: frozenset[int]) -> Iterator[bytes]:
    columns = tensor.shape[0]
    rows = tensor.parameters // columns
    row_sd = np.full(1, _row_sd(tensor.name, columns, recipe))
    if tensor.name == "output.weight":
        row_sd = np.repeat(row_sd, rows)
        row_sd[sorted(row for row in control_rows if row < rows)] *= _CONTROL_DAMPING
    shape = BlockShape(tensor.type.name, tensor.type.block_bytes, columns // tensor.type.block, rows)
    return draw_blocks(_source(recipe.seed, tensor.name), shape, row_sd)


def _norm_weight(name: str, recipe: WeightRecipe) -> float:
    """Norms are one, but those of queries and keys share the sharpness of the attention."""
    return math.sqrt(recipe.attention_sd) if name.endswith(("attn_q_norm.weight", "attn_k_norm.weight")) else 1.0


def _source(seed: int, name: str) -> np.random.PCG64:
    words = np.frombuffer(hashlib.sha256(name.encode()).digest()[:16], "<u4")
    return np.random.PCG64(np.random.SeedSequence([seed, *(int(word) for word in words)]))


def _draw(source: np.random.PCG64, rows: int, columns: int) -> Draws:
    """Centred integers with standard deviation `_DRAW_SD`, shape (rows, columns)."""
    raw = source.random_raw(rows * columns)
    total = raw & _PART_MASK
    for part in range(1, _PARTS):
        total += (raw >> np.uint64(16 * part)) & _PART_MASK
    return (total.astype(np.int64) - _CENTRE).reshape(rows, columns)


def _row_scales(name: str, block: Draws, recipe: WeightRecipe) -> NDArray[np.float32]:
    """What a row's draws are multiplied with, shape (rows, 1)."""
    rows, columns = block.shape
    if name.endswith("ffn_gate_inp.weight"):
        squares: NDArray[np.int64] = (block * block).sum(axis=1, keepdims=True)
        scales: NDArray[np.float32] = np.reciprocal(np.sqrt(squares.astype(np.float64))).astype(np.float32)
        return scales
    return np.full((rows, 1), _row_sd(name, columns, recipe) / _DRAW_SD, np.float32)


def _row_sd(name: str, columns: int, recipe: WeightRecipe) -> float:
    """Standard deviation of the weights of a row."""
    return 1.0 if name == "token_embd.weight" else _gain(name, recipe) / math.sqrt(columns)


def _gain(name: str, recipe: WeightRecipe) -> float:
    if name == "output.weight":
        return recipe.logits_sd
    if name.endswith("attn_output.weight"):
        return recipe.residual_gain
    if name.endswith("ffn_down_exps.weight"):
        return recipe.residual_gain / _EXPERTS_OUT
    return 1.0
