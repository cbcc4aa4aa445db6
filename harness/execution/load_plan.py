"""What a process was estimated to need, beside what its build says that it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.domain.errors import BadInput
from harness.domain.load_facts import RAM, Buffer, LoadFacts, device_word
from harness.engines.engine import Order
from harness.models.memory import Memory, bytes_needed

_MIB = 2**20


def with_plan(load: LoadFacts | None, order: Order, vram: Sequence[int]) -> LoadFacts | None:
    """What was said of loading with what was estimated; as it is where nothing can be.

    Args:
        load: What was said.
        order: What the process was asked to do.
        vram: Bytes of memory of each GPU. They count where the build says that it used one.
    """
    if load is None or not load.buffers:
        return load
    on_gpus = any(device_word(buffer.device) != RAM for buffer in load.buffers)
    loads = (*order.workloads, *([order.outputs] if order.outputs else []))
    try:
        memory = bytes_needed(order.arm, loads, tuple(vram) if on_gpus else ())
    except BadInput:  # a pattern that only the engine understands
        return load
    return replace(load, planned=_buffers(memory)) if memory else load


def _buffers(memory: Memory) -> tuple[Buffer, ...]:
    devices = {**{f"GPU {number}": gpu for number, gpu in enumerate(memory.gpus)}, RAM: memory.ram}
    return tuple(
        Buffer(use, device, round(size / _MIB, 2))
        for device, needed in devices.items()
        for use, size in needed.parts.items()
    )
