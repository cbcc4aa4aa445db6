"""Work buffers of both forks: what a batch needs beside weights and caches.

Each fork lays the tensors of its largest graph into one buffer a device. Which of them are alive together was read off
that buffer's size, which both libraries print, over shapes, contexts and batches (docs/explanation/memory.md); the sums
here give it within a few percent. All sizes are those of one physical batch.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.domain.build import Fork
from harness.models.memory_shape import ModelShape

_FLOAT, _HALF = 4, 2
_MIB = 1024**2


@dataclass(frozen=True, slots=True)
class Batch:
    """What is worked on at once.

    Attributes:
        fork: Whose graph.
        cells: Tokens of context.
        tokens: Tokens of a physical batch.
        outputs: Tokens whose logits are kept.
        flash: Flash attention.
        fused_experts: ik_llama.cpp's fused gate and up.
        attention_mib: ik_llama.cpp's bound on attention scores, MiB; 0: none.
        window_cells: Tokens of context of the layers that see a window, which have a mask of their own.
    """

    fork: Fork
    cells: int
    tokens: int
    outputs: int
    flash: bool
    fused_experts: bool = True
    attention_mib: int = 0
    window_cells: int = 0


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Bytes of the tensors that large graphs are made of."""

    stream: int
    queries: int
    keys: int
    gate: int
    down: int
    channels: int
    logits: int
    scores: int
    mask: int


def compute_bytes(shape: ModelShape, batch: Batch) -> int:
    """Bytes of the work buffer of a device that has repeating layers and the output layer."""
    sizes = _sizes(shape, batch)
    return _mainline(sizes, batch) if batch.fork is Fork.LLAMA_CPP else _ik(sizes, batch)


def converted_scores(shape: ModelShape, batch: Batch) -> int:
    """Bytes that llama.cpp's CPU backend adds without flash attention: the scores again, in 16 bits."""
    wanted = batch.fork is Fork.LLAMA_CPP and not batch.flash
    return _sizes(shape, batch).scores // _HALF if wanted else 0


def input_bytes(shape: ModelShape, batch: Batch) -> int:
    """Bytes in RAM of what a batch hands to GPUs that do all the work: mask and embedded tokens."""
    sizes = _sizes(shape, batch)
    return sizes.mask + sizes.stream


def _sizes(shape: ModelShape, batch: Batch) -> _Sizes:
    token = batch.tokens * _FLOAT
    kv_heads = max(shape.kv_heads, default=0)
    scores = 0 if batch.flash else batch.cells * token * shape.heads
    # The bound works where every query head has its own key head, and then heads are taken one by one.
    if shape.heads == kv_heads and 0 < batch.attention_mib * _MIB < scores:
        scores = batch.cells * token
    return _Sizes(
        stream=shape.width * token,
        queries=shape.heads * shape.key_width * token,
        keys=kv_heads * shape.key_width * token,
        gate=shape.expert_rows * token,
        down=shape.down_rows * token,
        channels=shape.channels * token,
        logits=shape.vocabulary * batch.outputs * _FLOAT,
        scores=scores,
        mask=(batch.cells + batch.window_cells) * batch.tokens * (_HALF if batch.flash else _FLOAT),
    )


def _mainline(sizes: _Sizes, batch: Batch) -> int:
    stream = 5 * sizes.stream
    within = max(stream + max(3 * sizes.gate, sizes.down, 4 * sizes.channels), 2 * sizes.stream + 3 * sizes.queries)
    if not batch.flash:
        within = max(within, stream + sizes.scores) + 2 * sizes.queries
        stream += 2 * sizes.queries
    # Logits lie where the mask lay, if they fit there.
    last = stream + sizes.logits if sizes.logits > sizes.mask else 0
    return sizes.mask + max(within, last)


def _ik(sizes: _Sizes, batch: Batch) -> int:
    stream = 2 * sizes.stream
    attention = stream + 2 * sizes.queries + 2 * sizes.keys + sizes.scores
    experts = stream + max(sizes.gate + sizes.down, sizes.down + sizes.stream)
    if not batch.fused_experts:
        experts = max(experts, stream + 3 * sizes.gate)
    within = max(attention, experts, stream + 3 * sizes.channels)
    return max(sizes.logits + stream, sizes.mask + within)
