"""Bytes of a model's tensors by device, and what of them is mapped, copied or only passing through RAM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from harness.domain.build import Fork
from harness.domain.flags import FlagValue
from harness.domain.patterns import override_pairs
from harness.models.memory_placement import CPU, Asked, Placement, place
from harness.models.memory_shape import INPUT, OUTPUT, ModelShape, Weight

_REPACKED = frozenset({"Q4_0", "Q4_K", "IQ4_NL", "MXFP4"})
_REPACKED_ROWS = 8
"""What llama.cpp's CPU backend keeps a rearranged copy of on x86 with AVX2, and by how many rows."""
_MATRIX = 2
_HOST_BUFFERS = frozenset({"CPU", "CUDA_Host"})
"""Buffers of ``ot`` in main memory."""


@dataclass(frozen=True, slots=True)
class Loading:
    """How the file comes into memory.

    Attributes:
        mapped: By mapping it.
        repacked: llama.cpp's CPU backend keeps rearranged copies of some tensors.
        fused: ik_llama.cpp multiplies with the experts' gates and ups in one step.
    """

    mapped: bool
    repacked: bool
    fused: bool

    @classmethod
    def of(cls, fork: Fork, flags: Mapping[str, FlagValue], gpus: int) -> Loading:
        """Take it from a complete set of flags: ``mmap`` is 0 there where another flag switches it off.

        Since #1510 (build 4357) ik_llama.cpp maps no file of which overrides send tensors to the CPU, whatever is said:
        they lie in pinned memory.
        """
        copies = fork is Fork.LLAMA_CPP and bool(flags.get("repack", 1))
        # Beside a GPU, the GPU's host buffers come first, and those rearrange nothing.
        fused = fork is Fork.IK_LLAMA_CPP and bool(flags.get("fmoe", 1))
        mapped = bool(flags.get("mmap", 1)) and not (fork is Fork.IK_LLAMA_CPP and _sends_to_the_cpu(flags))
        return cls(mapped, copies and (not gpus or bool(flags.get("no_host", 0))), fused)


@dataclass(frozen=True, slots=True)
class Weights:
    """Tensors by device.

    Attributes:
        bytes: On each GPU, and in RAM as the last one.
        mapped: What of those in RAM is mapped from the file.
        loading: Resident in RAM while loading, and needed by nothing afterwards.
        lent: Experts in RAM: large batches are multiplied on a GPU, of whatever layer they are, and it gets a copy of
            what one step needs. The largest such copy.
        works_in_ram: Whether the CPU has more to do than to look embeddings up.
    """

    bytes: tuple[int, ...]
    mapped: int
    loading: int
    lent: int
    works_in_ram: bool


@lru_cache(maxsize=512)
def weights_of(shape: ModelShape, asked: Asked, loading: Loading) -> Weights:
    """Sum the tensors up.

    Raises:
        BadInput: As `place`.
    """
    placement = place(shape, asked)
    sizes = [0] * (len(asked.gpus) + 1)
    lent: dict[tuple[int, str], int] = {}
    plain = passing = 0
    works_in_ram = placement.output == CPU
    for weight, device in zip(shape.weights, placement.tensors, strict=True):
        for home, part in split(weight.nbytes, device, placement):
            sizes[home] += part
        if device != CPU or (loading.repacked and _is_repacked(weight)):
            passing = max(passing, weight.nbytes)
        else:
            plain += weight.nbytes
        if device == CPU and weight.layer not in (INPUT, OUTPUT):
            works_in_ram = True
            if weight.is_expert:
                step = (weight.layer, _step_of(weight, fused=loading.fused))
                lent[step] = lent.get(step, 0) + weight.nbytes
    sizes[placement.output] += _output_again(shape, placement)
    mapped, only_loading = (plain, max(0, shape.file_bytes - plain)) if loading.mapped else (0, passing)
    return Weights(tuple(sizes), mapped, only_loading, max(lent.values(), default=0), works_in_ram)


def _sends_to_the_cpu(flags: Mapping[str, FlagValue]) -> bool:
    """Whether overrides keep tensors in main memory."""
    buffers = {buffer for _, buffer in override_pairs(str(flags.get("ot", "")))}
    return bool(flags.get("ncmoe")) or bool(buffers & _HOST_BUFFERS)


def split(nbytes: int, device: int, placement: Placement) -> Iterable[tuple[int, int]]:
    """Devices, RAM as the last one, and the bytes on each; their sum is the whole."""
    if device == CPU or not placement.shares:
        return ((device, nbytes),)
    parts = [int(nbytes * share) for share in placement.shares]
    largest = max(range(len(parts)), key=placement.shares.__getitem__)
    parts[largest] += nbytes - sum(parts)
    return enumerate(parts)


def _step_of(weight: Weight, *, fused: bool) -> str:
    """In which step of its layer a tensor of experts is multiplied with, and so copied to a GPU."""
    name = weight.spec.name
    return "gate and up" if fused and ("_gate_" in name or "_up_" in name) else name


def _is_repacked(weight: Weight) -> bool:
    """Whether it is a matrix that is multiplied with, of a type and height that copies are made of."""
    extents = weight.spec.shape
    is_matrix = len(extents) >= _MATRIX and weight.layer != INPUT
    return weight.spec.type.name in _REPACKED and is_matrix and extents[1] % _REPACKED_ROWS == 0


def _output_again(shape: ModelShape, placement: Placement) -> int:
    """Bytes of embeddings that a GPU holds once more as output; 0 where the model has an output of its own."""
    if placement.output == CPU or any(each.spec.name == "output.weight" for each in shape.weights):
        return 0
    return next((each.nbytes for each in shape.weights if each.spec.name == "token_embd.weight"), 0)
