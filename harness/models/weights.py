"""Seeded random weights that are the same bytes on every machine.

Only raw bits of a bit generator (numpy promises those for ever, NEP 19), integer arithmetic, and float operations that
IEEE 754 rounds exactly are used; numpy's own normal deviates promise neither. A weight is the centred sum of the four
16-bit parts of one 64-bit draw: nearly normal (excess kurtosis -0.3), never further than 3.46 standard deviations out.

What the sizes mean. RMS norms make every matrix see entries of size one, so a matrix with standard deviation ``1 /
sqrt(row length)`` gives entries of size one again. Then:

- embeddings have size one, and each sub-layer adds ``residual_gain`` to that (attention over few tokens; it averages
  out over many);
- queries and keys have size one after their norms, whose weights make the scores' standard deviation ``attention_sd``;
- the rows of a router have length one, so its scores have standard deviation one, for each expert alike: balanced; or
  lengths that make few experts win often (`harness.models.routing`);
- ``output.weight`` gives logits of ``logits_sd``; the rows of control tokens are a tenth of that, so that greedy text
  does not end;
- what multiplies or adds (norms, scales, biases) is one or zero, and the delta nets' heads forget at rates from one
  token to some hundreds.

Roles are read off the names that llama.cpp's converters give; a tensor of another name is a matrix like any other.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.models.blocks import BLOCK_TYPES, BlockShape, draw_blocks
from harness.models.card import WeightRecipe
from harness.models.gguf_format import TensorSpec
from harness.models.routing import row_lengths

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
_BF16 = "BF16"
_ONES = re.compile(r"norm(_\d+)?\.weight$|(^|\.)rope_(freqs|factors_(long|short))\.weight$|scale(\.weight)?$|ssm_d$")
_ZEROS = re.compile(r"\.bias$|attn_sinks\.weight$")
_FORGETTING = re.compile(r"\bssm_a$")
_RATES = 8
_RESIDUAL_OUT = re.compile(r"\.(attn_output|ssm_out)\.weight$")
_EXPERTS_DOWN = re.compile(r"\.ffn_down(_exps|_shexp)?\.weight$")

FILLED_TYPES = frozenset((*_FORMATS, _BF16)) | BLOCK_TYPES
"""Names of the tensor types that can be drawn here."""

Draws = NDArray[np.int64]


@dataclass(frozen=True)
class Drawing:
    """What tensors are drawn by, beside their own name, shape and type.

    Attributes:
        recipe: Seed and gains.
        control_rows: Token ids whose output rows are damped.
        experts_used: Experts that a token goes through.
    """

    recipe: WeightRecipe
    control_rows: frozenset[int] = frozenset()
    experts_used: int = 1


def can_fill(tensor: TensorSpec) -> bool:
    """Whether tensors of this type can be drawn here."""
    return tensor.type.name in FILLED_TYPES


def tensor_bytes(tensor: TensorSpec, drawing: Drawing) -> Iterator[bytes]:
    """The weights of one tensor, in pieces of some mebibytes or one row.

    Args:
        tensor: Name, shape and type; the name decides its role.
        drawing: How all tensors of the model are drawn.
    """
    columns = tensor.shape[0]
    rows = tensor.parameters // columns
    constant = _constant(tensor.name, drawing.recipe)
    if tensor.type.name in BLOCK_TYPES:
        yield from _block_bytes(tensor, drawing)
    elif constant is not None:
        for first in range(0, tensor.parameters, _CHUNK_VALUES):
            count = min(_CHUNK_VALUES, tensor.parameters - first)
            yield _stored(np.full(count, constant, np.float32), tensor.type.name)
    elif _FORGETTING.search(tensor.name):
        yield _stored(_forgetting(tensor.parameters), tensor.type.name)
    else:
        for block in _rows(tensor.name, rows, columns, drawing):
            yield _stored(block, tensor.type.name)


def router_rows(tensor: TensorSpec, drawing: Drawing) -> NDArray[np.float32]:
    """The rows of a router, shape (experts, width), as `tensor_bytes` draws them for unquantized types."""
    columns = tensor.shape[0]
    return np.concatenate(list(_rows(tensor.name, tensor.parameters // columns, columns, drawing)))


def is_router(name: str) -> bool:
    """Whether a tensor scores experts."""
    return name.endswith("ffn_gate_inp.weight")


def _rows(name: str, rows: int, columns: int, drawing: Drawing) -> Iterator[NDArray[np.float32]]:
    source = _source(drawing.recipe.seed, name)
    lengths = _router_lengths(name, rows, drawing)
    step = max(1, _CHUNK_VALUES // columns)
    for first in range(0, rows, step):
        block = _draw(source, min(step, rows - first), columns)
        scale = _row_scales(name, block, drawing.recipe)
        if lengths is not None:
            scale *= lengths[first : first + len(block), None]
        if name == "output.weight":
            damped = [row - first for row in sorted(drawing.control_rows) if first <= row < first + len(block)]
            scale[damped] *= np.float32(_CONTROL_DAMPING)
        yield block.astype(np.float32) * scale


def _router_lengths(name: str, rows: int, drawing: Drawing) -> NDArray[np.float32] | None:
    """Lengths of a skewed router's rows; None where all are one."""
    if drawing.recipe.router == "balanced" or not is_router(name):
        return None
    order = _source(drawing.recipe.seed, f"{name} ranks").random_raw(rows)
    return row_lengths(order, drawing.experts_used, drawing.recipe.router_exponent)


def _block_bytes(tensor: TensorSpec, drawing: Drawing) -> Iterator[bytes]:
    columns = tensor.shape[0]
    rows = tensor.parameters // columns
    row_sd = np.full(1, _row_sd(tensor.name, columns, drawing.recipe))
    lengths = _router_lengths(tensor.name, rows, drawing)
    if lengths is not None:
        row_sd = row_sd * lengths
    if tensor.name == "output.weight":
        row_sd = np.repeat(row_sd, rows)
        row_sd[sorted(row for row in drawing.control_rows if row < rows)] *= _CONTROL_DAMPING
    shape = BlockShape(tensor.type.name, tensor.type.block_bytes, columns // tensor.type.block, rows)
    return draw_blocks(_source(drawing.recipe.seed, tensor.name), shape, row_sd)


def _constant(name: str, recipe: WeightRecipe) -> float | None:
    """The one value of a tensor that is no matrix: norms are one, but those of queries and keys share the sharpness."""
    if name.endswith(("attn_q_norm.weight", "attn_k_norm.weight")):
        return math.sqrt(recipe.attention_sd)
    if _ONES.search(name):
        return 1.0
    return 0.0 if _ZEROS.search(name) else None


def _forgetting(heads: int) -> NDArray[np.float32]:
    """Rates of delta nets' and state spaces' heads: -1, -1/2, ... -1/128, and again."""
    return np.array([-math.ldexp(1.0, -(head % _RATES)) for head in range(heads)], np.float32)


def _stored(values: NDArray[np.float32], kind: str) -> bytes:
    if kind != _BF16:
        return values.astype(_FORMATS[kind]).tobytes()
    bits = values.astype("<f4").view("<u4")
    # To the nearest, ties to even: what both forks do for finite values.
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return rounded.astype("<u2").tobytes()


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
    if is_router(name):
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
    if _RESIDUAL_OUT.search(name):
        return recipe.residual_gain
    if _EXPERTS_DOWN.search(name):
        return recipe.residual_gain / _EXPERTS_OUT
    return 1.0
