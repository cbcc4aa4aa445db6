"""Where each tensor and each layer's cache goes, as the loaders of both forks decide it.

Read in llama.cpp b11434 and ik_llama.cpp 8337e4cd. What they share: token embeddings stay on the CPU, repeating layers
go to the GPUs from the last one down, overrides are searched in the order in which they were given and the first that
matches wins. What they don't: in llama.cpp the output layer is the first that ``ngl`` counts, in ik_llama.cpp the last;
and ik_llama.cpp's ``--n-cpu-moe`` counts from the last layer down (builds of 2025 from the first up).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from harness.domain.build import Fork
from harness.domain.flags import FlagValue
from harness.domain.patterns import compiled_pattern, override_pairs
from harness.models.memory_shape import INPUT, OUTPUT, ModelShape

CPU = -1
"""The host, where devices are numbers of GPUs."""

_NONE = "none"
_SHARED_MODES = ("row", "tensor", "graph")
_EXPERTS_OF = {
    Fork.LLAMA_CPP: r"blk\.{}\.ffn_(up|down|gate|gate_up)_(ch|)exps",
    Fork.IK_LLAMA_CPP: r"blk\.{}\.ffn_(up|down|gate|gate_up)_exps\.(weight|scale)",
}
_DEVICE = re.compile(r"(\d+)$")


@dataclass(frozen=True, slots=True)
class Override:
    """A pattern of tensor names and where its tensors go.

    Attributes:
        pattern: As it was given.
        device: `CPU` or the number of a GPU.
    """

    pattern: str
    device: int


@dataclass(frozen=True, slots=True)
class Placement:
    """Where things go.

    Attributes:
        layers: Device of each repeating layer: of its cache and its work.
        output: Device of the output layer.
        tensors: Device of each tensor, in the file's order.
        gpus: Bytes of each GPU's memory.
        shares: Share of each GPU where tensors are split over all of them; empty where every tensor is on one device.
        unmatched: Patterns of overrides that match no tensor.
    """

    layers: tuple[int, ...]
    output: int
    tensors: tuple[int, ...]
    gpus: tuple[int, ...] = ()
    shares: tuple[float, ...] = ()
    unmatched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """What decides the placement, so that it is worked out once for all arms that share it.

    Attributes:
        fork: Whose loader.
        ngl: Layers on GPUs.
        overrides: Text of ``ot``, pieces joined by ``;``.
        cpu_moe: Layers whose experts stay on the CPU.
        split_mode: How several GPUs share.
        main_gpu: The one that is used where they don't.
        shares: Text of ``ts``.
        gpus: Bytes of each GPU's memory.
    """

    fork: Fork
    ngl: int
    overrides: str
    cpu_moe: int
    split_mode: str
    main_gpu: int
    shares: str
    gpus: tuple[int, ...]

    @classmethod
    def of(cls, fork: Fork, flags: Mapping[str, FlagValue], gpus: tuple[int, ...]) -> Asked:
        """Take it from a complete set of flags; those that a tool does not have are at their defaults."""
        return cls(
            fork,
            int(flags.get("ngl", 0)),
            str(flags.get("ot", _NONE)),
            int(flags.get("ncmoe", 0)),
            str(flags.get("sm", "layer")),
            int(flags.get("mg", 0)),
            str(flags.get("ts", _NONE)),
            gpus,
        )


@lru_cache(maxsize=512)
def place(shape: ModelShape, asked: Asked) -> Placement:
    """Decide where everything goes.

    Raises:
        BadInput: ``E-bad-flag-value``: a pattern is no regular expression.
    """
    devices = _devices(asked)
    layers, output = _layers(shape, asked, devices)
    given = [Override(pattern, _buffer(name, len(asked.gpus))) for pattern, name in override_pairs(asked.overrides)]
    overrides = given + _cpu_experts(shape, asked, layers)
    tensors = [_home(weight.layer, layers, output) for weight in shape.weights]
    for override in reversed(overrides):
        for index in matching(shape, override.pattern):
            tensors[index] = override.device
    unmatched = tuple(each.pattern for each in given if not matching(shape, each.pattern))
    shares = _relative(asked, devices) if len(devices) > 1 and asked.split_mode in _SHARED_MODES else ()
    return Placement(layers, output, tuple(tensors), asked.gpus, shares, unmatched)


@lru_cache(maxsize=4096)
def matching(shape: ModelShape, pattern: str) -> frozenset[int]:
    """Numbers of the tensors whose names a pattern is found in."""
    search = compiled_pattern(pattern).search
    return frozenset(index for index, weight in enumerate(shape.weights) if search(weight.spec.name))


def _buffer(name: str, gpus: int) -> int:
    number = _DEVICE.search(name)
    return min(int(number[1]), gpus - 1) if number and gpus and "host" not in name.lower() else CPU


def _home(layer: int, layers: Sequence[int], output: int) -> int:
    if layer == INPUT:
        return CPU
    return output if layer == OUTPUT or layer >= len(layers) else layers[layer]


def _devices(asked: Asked) -> tuple[int, ...]:
    """Numbers of the GPUs that are used."""
    if not asked.gpus or asked.ngl == 0:
        return ()
    if asked.split_mode == _NONE:
        return (min(asked.main_gpu, len(asked.gpus) - 1),)
    return tuple(range(len(asked.gpus)))


def _relative(asked: Asked, devices: Sequence[int]) -> tuple[float, ...]:
    """The share of each GPU: as ``ts`` says, or by memory."""
    said = [float(part) for part in asked.shares.split("/")] if asked.shares != _NONE else []
    given = [*said, *[0.0] * len(asked.gpus)][: len(asked.gpus)]
    shares = given if any(given) else [float(size) for size in asked.gpus]
    total = sum(shares[device] for device in devices) or 1.0
    return tuple(shares[device] / total if device in devices else 0.0 for device in range(len(asked.gpus)))


def _layers(shape: ModelShape, asked: Asked, devices: Sequence[int]) -> tuple[tuple[int, ...], int]:
    if not devices:
        return (CPU,) * shape.layers, CPU
    counted = _FIRST_ON_GPU[asked.fork](shape.layers, asked.ngl)
    on_gpu = [layer for layer in range(shape.layers + 1) if counted(layer)]
    if asked.fork is Fork.IK_LLAMA_CPP and len(devices) > 1:
        homes = _by_bytes(shape, on_gpu, _relative(asked, devices), devices)
    else:
        homes = _by_number(on_gpu, _relative(asked, devices), devices)
    return tuple(homes.get(layer, CPU) for layer in range(shape.layers)), homes.get(shape.layers, CPU)


def _counts_output_first(layers: int, ngl: int) -> Callable[[int], bool]:
    """llama.cpp: the last ``ngl`` of the layers and the output layer after them; -1: all."""
    first = max(layers + 1 - ngl, 0) if ngl >= 0 else 0
    return lambda layer: layer >= first


def _counts_output_last(layers: int, ngl: int) -> Callable[[int], bool]:
    """ik_llama.cpp: the last ``ngl`` of the layers; the output layer with more than all of them."""
    first = max(layers - ngl, 0)
    return lambda layer: first <= layer < layers or (layer == layers and ngl > layers)


_FIRST_ON_GPU = {Fork.LLAMA_CPP: _counts_output_first, Fork.IK_LLAMA_CPP: _counts_output_last}


def _by_number(on_gpu: Sequence[int], shares: Sequence[float], devices: Sequence[int]) -> dict[int, int]:
    """llama.cpp: layers are dealt out by their number."""
    ends = list(accumulate(shares[device] for device in devices))
    return {
        layer: devices[min(bisect_right(ends, index / len(on_gpu)), len(devices) - 1)]
        for index, layer in enumerate(on_gpu)
    }


def _by_bytes(
    shape: ModelShape, on_gpu: Sequence[int], shares: Sequence[float], devices: Sequence[int]
) -> dict[int, int]:
    """ik_llama.cpp: layers are dealt out by their bytes, each GPU takes one more where that is nearer to its share."""
    sizes = [0] * (shape.layers + 1)
    for weight in shape.weights:
        if weight.layer != INPUT:
            sizes[weight.layer if 0 <= weight.layer < shape.layers else shape.layers] += weight.nbytes
    total = sum(sizes[layer] for layer in on_gpu)
    homes = dict.fromkeys(on_gpu, devices[-1])
    waiting = list(on_gpu)
    taken, end = 0.0, 0.0
    for device in devices:
        end += shares[device] * total
        while waiting and taken + sizes[waiting[0]] / 2 < end:
            taken += sizes[waiting[0]]
            homes[waiting.pop(0)] = device
    return homes


def _cpu_experts(shape: ModelShape, asked: Asked, layers: Sequence[int]) -> list[Override]:
    """What ``--n-cpu-moe`` expands to."""
    with_experts = sorted({weight.layer for weight in shape.weights if weight.is_expert})
    if asked.fork is Fork.LLAMA_CPP:
        chosen = [layer for layer in with_experts if layer < asked.cpu_moe]
    else:
        chosen = _spread(with_experts, layers, asked)
    return [Override(_EXPERTS_OF[asked.fork].format(layer), CPU) for layer in chosen]


def _spread(with_experts: Sequence[int], layers: Sequence[int], asked: Asked) -> list[int]:
    """ik_llama.cpp: the last layers; of several GPUs, the last ones of each in proportion to what it holds."""
    if asked.cpu_moe <= 0:
        return []
    count = min(asked.cpu_moe, len(with_experts))
    if asked.split_mode != "layer" or count == len(with_experts) or len(asked.gpus) < 2:  # noqa: PLR2004
        return list(with_experts)[-count:]
    # Layers in RAM count as the last GPU's.
    of = [device if device != CPU else len(asked.gpus) - 1 for device in layers]
    held = {device: [layer for layer in with_experts if of[layer] == device] for device in sorted(set(of))}
    wanted = {device: len(mine) * count / len(with_experts) for device, mine in held.items()}
    quota = {device: round(want) for device, want in wanted.items()}
    while sum(quota.values()) > count:
        quota[max((each for each in quota if quota[each]), key=lambda each: quota[each] - wanted[each])] -= 1
    while sum(quota.values()) < count:
        free = [each for each in quota if quota[each] < len(held[each])]
        quota[min(free, key=lambda each: quota[each] - wanted[each])] += 1
    return [layer for device, mine in held.items() for layer in mine[len(mine) - quota[device] :]]
