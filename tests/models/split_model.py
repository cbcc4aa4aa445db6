"""Split a model file as gguf-split does: metadata in the first part, numbers in each."""

from __future__ import annotations

from pathlib import Path

from harness.models.gguf_format import MetaValue
from harness.models.gguf_reader import PlacedTensor, read_header
from harness.models.gguf_writer import write_gguf


def split(whole: Path, folder: Path, count: int, *, name: str = "") -> list[Path]:
    """Write the parts of a model and give their paths."""
    header = read_header(whole)
    placed = {tensor.spec.name: tensor for tensor in header.tensors}
    raw = whole.read_bytes()

    def bytes_of(tensor: PlacedTensor) -> list[bytes]:
        return [raw[tensor.offset : tensor.offset + tensor.spec.nbytes]]

    step = -(-len(header.tensors) // count)
    parts = []
    for number in range(count):
        mine = [tensor.spec for tensor in header.tensors[number * step : (number + 1) * step]]
        metadata = {
            **(header.metadata if number == 0 else {}),
            "split.no": MetaValue("u16", number),
            "split.count": MetaValue("u16", count),
            "split.tensors.count": MetaValue("i32", len(header.tensors)),
        }
        path = folder / f"{name or whole.stem}-{number + 1:05d}-of-{count:05d}.gguf"
        with path.open("wb") as file:
            write_gguf(file, metadata, mine, lambda spec: bytes_of(placed[spec.name]))
        parts.append(path)
    return parts
