"""What shapes of cards are made of: metadata and tensors in the order of the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from harness.models.gguf_format import MetaValue, TensorSpec
from harness.models.gguf_types import TYPES_BY_NAME

Positive = Annotated[int, Field(gt=0)]


class Strict(BaseModel):
    """Base of what a card holds: frozen, nothing unknown accepted, nothing coerced."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


@dataclass(frozen=True)
class Layout:
    """Metadata (without tokenizer) and tensors of a file, in the order they are written."""

    metadata: dict[str, MetaValue]
    tensors: tuple[TensorSpec, ...]

    @property
    def parameters(self) -> int:
        """Number of weights."""
        return sum(tensor.parameters for tensor in self.tensors)


def half(name: str, *shape: int) -> TensorSpec:
    """A tensor in F16."""
    return TensorSpec(name, shape, TYPES_BY_NAME["F16"])


def single(name: str, *shape: int) -> TensorSpec:
    """A tensor in F32."""
    return TensorSpec(name, shape, TYPES_BY_NAME["F32"])
