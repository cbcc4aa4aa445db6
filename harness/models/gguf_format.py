"""What a GGUF header is made of: typed metadata values and tensor descriptions.

Shared by the reader, the writer and the cards.

The layout (version 3, little-endian): the four bytes ``GGUF``, version (u32), tensor count (u64), metadata count (u64),
the metadata pairs, the tensor descriptions, padding to the alignment, then the weights, each tensor at an aligned
offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from harness.models.gguf_types import TensorType

MAGIC = b"GGUF"
WRITTEN_VERSION = 3
READ_VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
ALIGNMENT_KEY = "general.alignment"
MAX_DIMENSIONS = 4

SCALAR_CODES: dict[str, int] = {
    "u8": 0,
    "i8": 1,
    "u16": 2,
    "i16": 3,
    "u32": 4,
    "i32": 5,
    "f32": 6,
    "bool": 7,
    "string": 8,
    "u64": 10,
    "i64": 11,
    "f64": 12,
}
SCALAR_NAMES: dict[int, str] = {code: name for name, code in SCALAR_CODES.items()}
STRUCT_FORMATS: dict[str, str] = {
    "u8": "B",
    "i8": "b",
    "u16": "H",
    "i16": "h",
    "u32": "I",
    "i32": "i",
    "f32": "f",
    "bool": "?",
    "u64": "Q",
    "i64": "q",
    "f64": "d",
}
ARRAY_CODE = 9

Scalar: TypeAlias = bool | int | float | str


@dataclass(frozen=True)
class MetaValue:
    """One metadata value with its type, so that what is read can be written again without loss.

    Attributes:
        kind: Name of the scalar type (keys of `SCALAR_CODES`); of the elements when `value` is a tuple.
        value: A scalar, or a tuple for an array.
    """

    kind: str
    value: Scalar | tuple[Scalar, ...]


@dataclass(frozen=True)
class TensorSpec:
    """Name, shape and type of a tensor.

    Attributes:
        name: Such as ``blk.0.ffn_up_exps.weight``.
        shape: Dimensions in ggml order: the row length first, experts last.
        type: How its values are stored.
    """

    name: str
    shape: tuple[int, ...]
    type: TensorType

    @property
    def nbytes(self) -> int:
        """Bytes of the weights without padding."""
        return self.type.nbytes(self.shape)

    @property
    def parameters(self) -> int:
        """Number of values."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count


def padded(size: int, alignment: int) -> int:
    """The next multiple of the alignment, in bytes."""
    return -(-size // alignment) * alignment
