"""Write a GGUF file: the header from metadata and tensor specs, then the weights as they are produced."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from harness.models.gguf_format import (
    ALIGNMENT_KEY,
    ARRAY_CODE,
    DEFAULT_ALIGNMENT,
    MAGIC,
    SCALAR_CODES,
    STRUCT_FORMATS,
    WRITTEN_VERSION,
    MetaValue,
    Scalar,
    TensorSpec,
    padded,
)

TensorBytes = Callable[[TensorSpec], Iterable[bytes]]
"""Produces the weights of a tensor in pieces that add up to its `nbytes`."""


def header_bytes(metadata: Mapping[str, MetaValue], tensors: Sequence[TensorSpec]) -> bytes:
    """The header, padded to where the weights begin."""
    alignment = _alignment(metadata)
    parts = [MAGIC, struct.pack("<IQQ", WRITTEN_VERSION, len(tensors), len(metadata))]
    parts += [_string(key) + _value(value) for key, value in metadata.items()]
    offset = 0
    for tensor in tensors:
        parts.append(_described(tensor, offset))
        offset += padded(tensor.nbytes, alignment)
    raw = b"".join(parts)
    return raw.ljust(padded(len(raw), alignment), b"\0")


def file_size(metadata: Mapping[str, MetaValue], tensors: Sequence[TensorSpec]) -> int:
    """Bytes of the file that `write_gguf` makes."""
    alignment = _alignment(metadata)
    return len(header_bytes(metadata, tensors)) + sum(padded(tensor.nbytes, alignment) for tensor in tensors)


class Writable(Protocol):
    """What is written to."""

    def write(self, piece: bytes, /) -> int:
        """Write a piece and give its bytes."""
        ...


def write_gguf(
    file: Writable, metadata: Mapping[str, MetaValue], tensors: Sequence[TensorSpec], weights: TensorBytes
) -> None:
    """Write header and weights.

    Raises:
        ValueError: The producer gave more or fewer bytes than the tensor has.
    """
    alignment = _alignment(metadata)
    file.write(header_bytes(metadata, tensors))
    for tensor in tensors:
        written = sum(file.write(piece) for piece in weights(tensor))
        if written != tensor.nbytes:
            raise ValueError(f"{tensor.name}: {written} bytes produced, {tensor.nbytes} expected")
        file.write(b"\0" * (padded(written, alignment) - written))


def _alignment(metadata: Mapping[str, MetaValue]) -> int:
    entry = metadata.get(ALIGNMENT_KEY)
    return entry.value if entry is not None and isinstance(entry.value, int) else DEFAULT_ALIGNMENT


def _string(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(raw)) + raw


def _scalar(kind: str, value: Scalar) -> bytes:
    if kind == "string":
        return _string(str(value))
    return struct.pack("<" + STRUCT_FORMATS[kind], value)


def _value(entry: MetaValue) -> bytes:
    code = SCALAR_CODES[entry.kind]
    if not isinstance(entry.value, tuple):
        return struct.pack("<I", code) + _scalar(entry.kind, entry.value)
    body = b"".join(_scalar(entry.kind, value) for value in entry.value)
    return struct.pack("<IIQ", ARRAY_CODE, code, len(entry.value)) + body


def _described(tensor: TensorSpec, offset: int) -> bytes:
    shape = struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *tensor.shape)
    return _string(tensor.name) + shape + struct.pack("<IQ", tensor.type.code, offset)
