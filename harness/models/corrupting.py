"""Write a model with a planted fault: a copy in pieces, never a whole file or tensor in memory."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from harness.models.corruption_blocks import RowChange
from harness.models.corruptions import Corruption, Kind, Slices, plan_corruption
from harness.models.gguf_format import TensorSpec
from harness.models.gguf_reader import GgufHeader, PlacedTensor
from harness.models.gguf_writer import write_gguf
from harness.models.splits import read_headers
from harness.models.storage import appearing, disk_errors, require_space

_PIECE = 1 << 22


def write_corrupted(source: Path, folder: Path, kind: Kind, seed: int = 0) -> tuple[Path, Corruption]:
    """Copy a model with one fault planted.

    Args:
        source: The model's file, or any part of a split one. Of a split model only the parts that change are copied;
            links stand for the others.
        folder: Where the copy is made under the same name; not the source's own.
        kind: What is planted.
        seed: Decides where.

    Returns:
        The copy, its first part where it is split, and what was changed.

    Raises:
        BadInput: As `harness.models.splits.read_headers`; ``E-corruption``.
        Infrastructure: ``E-disk-full`` before anything is written, and what the disk says meanwhile.
    """
    headers = read_headers(source)
    corruption = plan_corruption(headers, kind, seed)
    changed = [header for number, header in enumerate(headers) if _changes(header, corruption, first=number == 0)]
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    require_space(folder, sum(header.size for header in changed))
    for header in headers:
        target = folder / header.path.name
        with disk_errors(target, header.size):
            if header not in changed:
                target.unlink(missing_ok=True)
                target.symlink_to(header.path.resolve())
                continue
            with header.path.open("rb") as original, appearing(target) as temporary, temporary.open("xb") as file:
                _copy(original, file, header, corruption)
    return folder / headers[0].path.name, corruption


def _changes(header: GgufHeader, corruption: Corruption, *, first: bool) -> bool:
    return (first and bool(corruption.metadata)) or any(
        placed.spec.name in corruption.tensors for placed in header.tensors
    )


def _copy(original: BinaryIO, file: BinaryIO, header: GgufHeader, corruption: Corruption) -> None:
    """Header and weights in their order, changed where the fault says so."""
    placed = {tensor.spec.name: tensor for tensor in header.tensors}
    replaced = {
        key: value for key, value in corruption.metadata.items() if key in header.metadata or not _later(header)
    }

    def weights(tensor: TensorSpec) -> Iterator[bytes]:
        return _tensor(original, placed[tensor.name], corruption)

    specs = [tensor.spec for tensor in header.tensors]
    write_gguf(file, {**header.metadata, **replaced}, specs, weights)


def _later(header: GgufHeader) -> bool:
    """Whether it is a part after the first, which has no model's metadata of its own."""
    number = header.metadata.get("split.no")
    return number is not None and bool(number.value)


def _tensor(original: BinaryIO, tensor: PlacedTensor, corruption: Corruption) -> Iterator[bytes]:
    name, size = tensor.spec.name, tensor.spec.nbytes
    if slices := corruption.slices.get(name):
        return _sliced(original, tensor, slices)
    if change := corruption.rows.get(name):
        return _changed(original, tensor, change)
    return _read(original, tensor.offset, size)


def _sliced(original: BinaryIO, tensor: PlacedTensor, slices: Slices) -> Iterator[bytes]:
    size = tensor.spec.nbytes // slices.count
    for number in range(slices.count):
        filled = slices.filled.get(number)
        if filled is not None:
            yield bytes([filled]) * size
        else:
            yield from _read(original, tensor.offset + slices.moved.get(number, number) * size, size)


def _changed(original: BinaryIO, tensor: PlacedTensor, change: RowChange) -> Iterator[bytes]:
    rows = tensor.spec.parameters // tensor.spec.shape[0]
    row_bytes = tensor.spec.nbytes // rows
    at_once = max(1, _PIECE // row_bytes)
    for first in range(0, rows, at_once):
        count = min(at_once, rows - first)
        raw = b"".join(_read(original, tensor.offset + first * row_bytes, count * row_bytes))
        yield change(np.frombuffer(raw, np.uint8).reshape(count, row_bytes)).tobytes()


def _read(original: BinaryIO, at: int, size: int) -> Iterator[bytes]:
    """Some bytes of the file, in pieces."""
    original.seek(at)
    while size:
        piece = original.read(min(size, _PIECE))
        if not piece:
            raise OSError(errno.EIO, "the file shrank while it was copied")
        size -= len(piece)
        yield piece
