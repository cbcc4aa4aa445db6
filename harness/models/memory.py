"""How much memory an arm needs, on every GPU and in RAM, told from the table of its model's tensors and its flags.

Nothing is loaded and nothing is run. What is counted, and how near it comes to what processes really take, is written
in ``docs/explanation/memory.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork, Tool
from harness.domain.flags import FlagValue
from harness.domain.workload import OutputProfile, ProfileWorkload, Timed, Workload
from harness.models.gguf_types import TYPES_BY_NAME
from harness.models.memory_cache import PATTERN, Row, cache_types, has_window, is_latent, not_counted, rows_of
from harness.models.memory_compute import Batch, compute_bytes, converted_scores, input_bytes
from harness.models.memory_model import model_shape
from harness.models.memory_placement import CPU, Asked, Placement, place
from harness.models.memory_shape import ModelShape
from harness.models.memory_weights import Loading, Weights, split, weights_of

_CONTEXT_STEP = 256
_FLOAT = 4
_TOKEN_BYTES = 170
"""Of each token of the vocabulary inside a process; measured with 152 thousand tokens: 170 and 150 by fork."""
_DECIDING = frozenset(
    {"ngl", "ot", "ncmoe", "sm", "mg", "ts", "mmap", "repack", "no_host", "nkvo"}
    | {"ctk", "ctv", "b", "ub", "fa", "fmoe", "amb", "mla"}
)
"""The flags that are read here or in `Asked` and `Loading`."""
_TEXT_BYTES = 3
"""Bytes of text that are taken to make one token, where only the model's tokenizer knows."""


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """Bytes on one device, by what they are for.

    Attributes:
        weights: Tensors of the model.
        cache: Keys, values and states of the context.
        compute: Work buffers.
        other: Logits that are handed out, and the vocabulary.
    """

    weights: int = 0
    cache: int = 0
    compute: int = 0
    other: int = 0

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.cache + self.compute + self.other

    @property
    def parts(self) -> dict[str, int]:
        """The parts by the word that people read."""
        named = {"weights": self.weights, "KV": self.cache, "compute": self.compute, "other": self.other}
        return {word: size for word, size in named.items() if size}


@dataclass(frozen=True, slots=True)
class Memory:
    """What one process of an arm needs.

    Attributes:
        ram: What it uses in main memory while it works.
        gpus: What it uses on each GPU.
        mapped: Part of the weights in RAM that is mapped from the file: pages that the kernel can drop and read again.
        loading: Bytes that are resident only while it loads, and that nothing needs afterwards.
        notes: What is odd about the flags, and what could not be counted.
    """

    ram: DeviceMemory
    gpus: tuple[DeviceMemory, ...] = ()
    mapped: int = 0
    loading: int = 0
    notes: tuple[str, ...] = ()

    @property
    def held(self) -> int:
        """Bytes of RAM that the kernel can't take back."""
        return self.ram.total - self.mapped

    @property
    def peak_rss(self) -> int:
        """Peak resident memory of the process, above an engine without a model."""
        return self.ram.total + self.loading


def bytes_needed(arm: Arm, workloads: Iterable[Timed | OutputProfile], gpus: tuple[int, ...] = ()) -> Memory | None:
    """Bytes that a process of an arm needs for some workloads.

    Args:
        arm: The arm, its flags complete.
        workloads: What the process does; its context has room for the largest.
        gpus: Bytes of memory of each GPU that the build can use; none for a build of the CPU.

    Returns:
        ``None`` where the model's tensors are not known here.

    Raises:
        BadInput: ``E-bad-flag-value``: a pattern of ``ot`` is no regular expression.
    """
    shape = model_shape(arm.model)
    if shape is None or not shape.layers:
        return None
    engine = (arm.build.fork, keeps_windows(arm.build))
    return _estimated(shape, engine, deciding_flags(arm), context_cells(workloads), gpus)


def deciding_flags(arm: Arm) -> tuple[tuple[str, FlagValue], ...]:
    """Of an arm's flags, those that decide its memory."""
    return tuple([item for item in arm.flags if item[0] in _DECIDING])


def keeps_windows(build: Build) -> bool:
    """Whether a build's layers with a window keep no more than that.

    Only llama.cpp's tools ask its library for that. A wheel's library, asked for nothing, keeps every token; so does
    ik_llama.cpp's.
    """
    return build.fork is Fork.LLAMA_CPP and build.tool is Tool.LLAMA_BENCH


@lru_cache(maxsize=4096)
def _estimated(
    shape: ModelShape,
    engine: tuple[Fork, bool],
    flags: tuple[tuple[str, FlagValue], ...],
    cells: int,
    gpus: tuple[int, ...],
) -> Memory:
    """Once for all arms that differ in other flags only; of the engine, its fork and whether it keeps windows."""
    fork, windowed = engine
    return estimate(shape, fork, dict(flags), cells, gpus, windowed=windowed)


def context_cells(workloads: Iterable[Timed | OutputProfile]) -> int:
    """Tokens of context that a process makes for its workloads, one sequence, in the step that both forks allocate."""
    most = max([_tokens(load) for load in workloads], default=0)
    return max(1, -(-most // _CONTEXT_STEP)) * _CONTEXT_STEP


def estimate(
    shape: ModelShape,
    fork: Fork,
    flags: Mapping[str, FlagValue],
    cells: int,
    gpus: tuple[int, ...] = (),
    *,
    windowed: bool = False,
) -> Memory:
    """Bytes that a process needs.

    Args:
        shape: The model.
        fork: Whose loader and graphs.
        flags: Flags by name; those that are missing are at their defaults.
        cells: Tokens of context.
        gpus: Bytes of memory of each GPU.
        windowed: As `keeps_windows`.

    Raises:
        BadInput: ``E-bad-flag-value``: a pattern of ``ot`` is no regular expression.
    """
    asked = Asked.of(fork, flags, gpus)
    placement = place(shape, asked)
    weights = weights_of(shape, asked, Loading.of(fork, flags, len(gpus)))
    caches = work = (0,) * len(weights.bytes)
    unknown = not_counted(shape, windowed=windowed)
    wanted = _Work(shape, fork, flags, cells, windowed)
    if not unknown:
        caches = _caches(placement, wanted)
        work = work if is_latent(shape) else _work(placement, weights, wanted)
    other = (0,) * len(gpus) + (shape.vocabulary * (_FLOAT + _TOKEN_BYTES),)
    devices = [DeviceMemory(*sizes) for sizes in zip(weights.bytes, caches, work, other, strict=True)]
    notes = (*_notes(shape, placement, asked), *_uncounted_notes(shape, fork, unknown))
    return Memory(devices[-1], tuple(devices[:-1]), weights.mapped, weights.loading, notes)


def _caches(placement: Placement, work: _Work) -> tuple[int, ...]:
    """Bytes of keys, values and states by device, RAM last."""
    sizes = [0] * (len(placement.gpus) + 1)
    in_ram = bool(work.flags.get("nkvo", 0))
    of_key, of_value = map(_bytes_of, cache_types(work.shape, work.fork, work.flags))
    for (device, row), count in Counter(zip(placement.layers, work.rows, strict=True)).items():
        each = (of_key(row.key) + of_value(row.value)) * row.cells(work.cells, work.tokens) + row.state
        for home, part in split(count * each, CPU if in_ram else device, placement):
            sizes[home] += part
    return tuple(sizes)


def _bytes_of(kind: str) -> Callable[[int], int]:
    """Bytes of a row of a cache type; engines refuse rows that are not whole blocks, so those are rounded up."""
    stored = TYPES_BY_NAME[kind]
    return lambda values: stored.nbytes((-(-values // stored.block) * stored.block,)) if values else 0


@dataclass(frozen=True, slots=True)
class _Work:
    """What decides caches and work buffers, beside the placement."""

    shape: ModelShape
    fork: Fork
    flags: Mapping[str, FlagValue]
    cells: int
    windowed: bool

    @property
    def rows(self) -> tuple[Row, ...]:
        """What each layer keeps."""
        return rows_of(self.shape, self.fork, self.flags, windowed=self.windowed)

    @property
    def window_cells(self) -> int:
        """Tokens of context of the layers with a window; 0 without such layers."""
        if not has_window(self.shape):
            return 0
        return min(row.cells(self.cells, self.tokens) for row in self.rows)

    @property
    def tokens(self) -> int:
        """Tokens of a physical batch: never more than of a logical one, nor than of the context."""
        return min(int(self.flags.get("ub", 512)), int(self.flags.get("b", 2048)), self.cells)

    def batch(self, outputs: int) -> Batch:
        """The batch with logits of so many tokens."""
        flags = self.flags
        experts, bound = bool(flags.get("fmoe", 1)), int(flags.get("amb", 0))
        flash = flags.get("fa", 1) != 0
        return Batch(self.fork, self.cells, self.tokens, outputs, flash, experts, bound, self.window_cells)


def _work(placement: Placement, weights: Weights, work: _Work) -> tuple[int, ...]:
    """Bytes of work buffers by device, RAM last."""
    shape = work.shape
    used = {placement.output, *placement.layers}
    # In RAM, pages of logits that nobody asks for are never touched.
    batch = work.batch(1)
    layers = compute_bytes(shape, batch)
    # Logits come after the layers, and lie where copies of experts lay.
    with_logits = max(compute_bytes(shape, work.batch(work.tokens)), layers + weights.lent)
    sizes = [
        (with_logits if device == placement.output else layers + weights.lent)
        if device in used or placement.shares
        else 0
        for device in range(len(placement.gpus))
    ]
    in_ram = layers + converted_scores(shape, batch) if weights.works_in_ram else input_bytes(shape, batch)
    return (*sizes, in_ram)


def _notes(shape: ModelShape, placement: Placement, asked: Asked) -> tuple[str, ...]:
    notes = [f"ot: '{pattern}' matches no tensor of {shape.name}" for pattern in placement.unmatched]
    if placement.shares:
        notes.append(f"split mode {asked.split_mode}: every tensor of the GPUs is counted by their shares")
    return tuple(notes)


def _uncounted_notes(shape: ModelShape, fork: Fork, unknown: str) -> tuple[str, ...]:
    """What the figures leave out, if anything."""
    if unknown:
        told = "does not say" if unknown == PATTERN else "has"
        return (f"{shape.architecture} {told} {unknown}: only its weights are counted",)
    if not is_latent(shape):
        return ()
    made = " and what the fork adds to its tensors" if fork is Fork.IK_LLAMA_CPP else ""
    return (f"{shape.architecture} has latent attention: its work buffers{made} are not counted",)


def _tokens(load: Timed | OutputProfile) -> int:
    """Tokens that a workload fills."""
    match load:
        case Workload():
            return load.n_depth + load.n_prompt + load.n_gen
        case ProfileWorkload():
            profile = load.profile
            return (profile.prompt_tokens or _tokens_of(profile.text)) + profile.n_predict
        case OutputProfile():
            return max((_tokens_of(prompt.text) for prompt in load.prompts), default=0) + load.n_predict


def _tokens_of(text: str) -> int:
    return -(-len(text.encode()) // _TEXT_BYTES)
