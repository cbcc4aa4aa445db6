"""Read the header of a GGUF file, trusting nothing in it.

Weights are never touched. Every count and length is held against what is left of the file and against a limit before
anything is allocated for it, so that a damaged or hostile file costs an error message and not the machine's memory.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from os import SEEK_END
from pathlib import Path
from typing import BinaryIO

from harness.domain.errors import BadInput
from harness.models.gguf_format import (
    ALIGNMENT_KEY,
    ARRAY_CODE,
    DEFAULT_ALIGNMENT,
    MAGIC,
    MAX_DIMENSIONS,
    READ_VERSIONS,
    SCALAR_NAMES,
    STRUCT_FORMATS,
    MetaValue,
    Scalar,
    TensorSpec,
    padded,
)
from harness.models.gguf_types import TYPES_BY_CODE

# Limits well above any real file (the largest vocabularies have 262 thousand tokens and 515 thousand merges).
MAX_ENTRIES = 1 << 16
MAX_ARRAY = 1 << 21
MAX_STRING = 1 << 24
MAX_KEY = 1 << 16
MAX_EXTENT = 1 << 40
MAX_HEADER = 1 << 28
_MAX_ALIGNMENT = 1 << 20


@dataclass(frozen=True)
class PlacedTensor:
    """A tensor and where its weights begin, in bytes from the start of the file."""

    spec: TensorSpec
    offset: int


@dataclass(frozen=True)
class GgufHeader:
    """Everything in a GGUF file but the weights.

    Attributes:
        path: The file.
        version: Version of the format.
        size: Bytes of the file.
        metadata: Typed values by key, in file order.
        tensors: In file order.
        data_start: Where the weights begin, in bytes.
    """

    path: Path
    version: int
    size: int
    metadata: dict[str, MetaValue]
    tensors: tuple[PlacedTensor, ...]
    data_start: int


def read_header(path: Path) -> GgufHeader:
    """Read and check the header of a GGUF file.

    Raises:
        BadInput: ``E-model-missing``, ``E-model-unreadable``, ``E-not-gguf``, ``E-gguf-version``, ``E-gguf-truncated``,
            ``E-gguf-tensor-type`` or ``E-gguf-corrupt``; each says the file, what was expected and what was found.
    """
    try:
        if path.exists() and not path.is_file():
            raise _error(path, "E-not-gguf", "expected a GGUF file, found something that is not a regular file")
        with path.open("rb") as file:
            return _parse(_Cursor(path, file))
    except FileNotFoundError as absent:
        raise _error(path, "E-model-missing", "no such file") from absent
    except OSError as failure:
        raise _error(path, "E-model-unreadable", f"can't be read: {failure.strerror or failure}") from failure


class _Cursor:
    """A position in the file that refuses to move past its end.

    Plain reads, not a memory map: a file that shrinks meanwhile is an error then, and not a bus error.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self.file = file
        self.size = file.seek(0, SEEK_END)
        self.at = file.seek(0)

    @property
    def left(self) -> int:
        """Bytes from here to the end of the file."""
        return self.size - self.at

    def take(self, count: int, what: str) -> bytes:
        """The next bytes."""
        if count > self.left:
            raise self.truncated(f"{what} needs {count} bytes at offset {self.at}, the file ends after {self.left}")
        if self.at + count > MAX_HEADER:
            raise self.corrupt(f"{what} reaches past {MAX_HEADER} bytes of header")
        raw = self.file.read(count)
        if len(raw) < count:
            raise self.truncated(f"{what} ends after {len(raw)} of {count} bytes; the file shrank while it was read")
        self.at += count
        return raw

    def scalar(self, kind: str, what: str) -> Scalar:
        """The next scalar of a type."""
        if kind == "string":
            return self.string(MAX_STRING, what)
        layout = struct.Struct("<" + STRUCT_FORMATS[kind])
        value: Scalar = layout.unpack(self.take(layout.size, what))[0]
        return value

    def count(self, kind: str, limit: int, what: str) -> int:
        """The next unsigned number, which may not exceed a limit."""
        value = int(self.scalar(kind, what))
        if value > limit:
            raise self.corrupt(f"{what} is {value}, more than the plausible {limit}")
        return value

    def string(self, limit: int, what: str) -> str:
        """The next string: length (u64), then UTF-8; bytes that are not UTF-8 survive as surrogates."""
        length = self.count("u64", limit, f"length of {what}")
        return self.take(length, what).decode("utf-8", "surrogateescape")

    def truncated(self, found: str) -> BadInput:
        """An error for a file that ends too early."""
        return _error(self.path, "E-gguf-truncated", found, hint="copy or make the file again")

    def corrupt(self, found: str) -> BadInput:
        """An error for what can't be true of a sound file."""
        return _error(self.path, "E-gguf-corrupt", f"{found} (before offset {self.at})", hint="make or fetch it again")


def _error(path: Path, slug: str, message: str, hint: str = "") -> BadInput:
    return BadInput(slug, message, hint=hint, where=str(path))


def _parse(cursor: _Cursor) -> GgufHeader:
    version = _version(cursor)
    tensor_count = cursor.count("u64", MAX_ENTRIES, "number of tensors")
    metadata_count = cursor.count("u64", MAX_ENTRIES, "number of metadata entries")
    metadata = _metadata(cursor, metadata_count)
    described = [_described_tensor(cursor) for _ in range(tensor_count)]
    alignment = _alignment(cursor, metadata)
    data_start = padded(cursor.at, alignment)
    tensors = tuple(PlacedTensor(spec, data_start + offset) for spec, offset in described)
    _check_places(cursor, tensors, alignment)
    return GgufHeader(cursor.path, version, cursor.size, metadata, tensors, data_start)


def _version(cursor: _Cursor) -> int:
    magic = cursor.take(min(len(MAGIC), cursor.size), "magic")
    if magic != MAGIC:
        raise _error(cursor.path, "E-not-gguf", f"expected a file beginning with {MAGIC!r}, found {magic!r}")
    raw = cursor.take(4, "version")
    version = int.from_bytes(raw, "little")
    if version in READ_VERSIONS:
        return version
    known = " and ".join(str(known) for known in READ_VERSIONS)
    if int.from_bytes(raw, "big") in READ_VERSIONS:
        raise _error(cursor.path, "E-gguf-version", "a big-endian GGUF file, expected a little-endian one")
    raise _error(cursor.path, "E-gguf-version", f"GGUF version {version}, expected {known}")


def _metadata(cursor: _Cursor, count: int) -> dict[str, MetaValue]:
    metadata: dict[str, MetaValue] = {}
    for number in range(count):
        key = cursor.string(MAX_KEY, f"key of metadata entry {number}")
        if key in metadata:
            raise cursor.corrupt(f"metadata key '{key}' occurs twice")
        metadata[key] = _meta_value(cursor, key)
    return metadata


def _meta_value(cursor: _Cursor, key: str) -> MetaValue:
    code = int(cursor.scalar("u32", f"type of '{key}'"))
    if code != ARRAY_CODE:
        kind = _kind(cursor, code, key)
        return MetaValue(kind, cursor.scalar(kind, f"value of '{key}'"))
    kind = _kind(cursor, int(cursor.scalar("u32", f"element type of '{key}'")), key)
    return MetaValue(kind, _array(cursor, kind, key))


def _kind(cursor: _Cursor, code: int, key: str) -> str:
    if code not in SCALAR_NAMES:
        raise cursor.corrupt(f"'{key}' has the unknown value type {code}")
    return SCALAR_NAMES[code]


def _array(cursor: _Cursor, kind: str, key: str) -> tuple[Scalar, ...]:
    count = cursor.count("u64", MAX_ARRAY, f"length of the array '{key}'")
    if kind == "string":
        return tuple(cursor.string(MAX_STRING, f"element {number} of '{key}'") for number in range(count))
    layout = STRUCT_FORMATS[kind]
    raw = cursor.take(count * struct.calcsize("<" + layout), f"array '{key}'")
    return struct.unpack(f"<{count}{layout}", raw)


def _alignment(cursor: _Cursor, metadata: dict[str, MetaValue]) -> int:
    entry = metadata.get(ALIGNMENT_KEY)
    if entry is None:
        return DEFAULT_ALIGNMENT
    value = entry.value
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= _MAX_ALIGNMENT or value & (value - 1):
        raise cursor.corrupt(f"{ALIGNMENT_KEY} is {value!r}, expected a power of two")
    return value


def _described_tensor(cursor: _Cursor) -> tuple[TensorSpec, int]:
    name = cursor.string(MAX_KEY, "a tensor's name")
    dimensions = cursor.count("u32", MAX_DIMENSIONS, f"number of dimensions of '{name}'")
    shape = tuple(cursor.count("u64", MAX_EXTENT, f"a dimension of '{name}'") for _ in range(dimensions))
    code = int(cursor.scalar("u32", f"type of '{name}'"))
    offset = int(cursor.scalar("u64", f"offset of '{name}'"))
    if code not in TYPES_BY_CODE:
        raise _error(
            cursor.path,
            "E-gguf-tensor-type",
            f"tensor '{name}' has type {code}, which neither fork's table has",
            hint="a newer format, or a damaged file",
        )
    return TensorSpec(name, shape, TYPES_BY_CODE[code]), offset


def _check_places(cursor: _Cursor, tensors: tuple[PlacedTensor, ...], alignment: int) -> None:
    """Each tensor lies aligned inside the file, and none lies on another."""
    end, before = 0, ""
    seen: set[str] = set()
    for tensor in sorted(tensors, key=lambda placed: placed.offset):
        name = tensor.spec.name
        if name in seen:
            raise cursor.corrupt(f"tensor '{name}' occurs twice")
        seen.add(name)
        if tensor.offset % alignment:
            raise cursor.corrupt(f"tensor '{name}' is not aligned to {alignment} bytes")
        if tensor.offset < end:
            raise cursor.corrupt(f"tensors '{before}' and '{name}' overlap")
        end, before = tensor.offset + _nbytes(cursor, tensor.spec), name
        if end > cursor.size:
            raise cursor.truncated(f"tensor '{name}' ends at byte {end}, the file has {cursor.size}")


def _nbytes(cursor: _Cursor, spec: TensorSpec) -> int:
    try:
        return spec.nbytes
    except ValueError as misfit:
        raise cursor.corrupt(f"tensor '{spec.name}': {misfit}") from misfit
