"""What a GGUF file is, from its header alone."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.models.card import CARD_KEY, SYNTHETIC_KEY
from harness.models.gguf_format import MetaValue
from harness.models.gguf_reader import GgufHeader, PlacedTensor
from harness.models.quantize import QUANT_OF_FILE_TYPE
from harness.models.splits import read_headers


@dataclass(frozen=True)
class TensorInfo:
    """One tensor.

    Attributes:
        name: Such as ``blk.0.ffn_up_exps.weight``.
        shape: Dimensions in ggml order, the row length first.
        type: Such as ``IQ4_XS``.
        nbytes: Bytes of its weights.
        offset: Where they begin, in bytes from the start of the file.
        part: Which file of a split model they are in, from 1.
    """

    name: str
    shape: tuple[int, ...]
    type: str
    nbytes: int
    offset: int
    part: int = 1


@dataclass(frozen=True)
class TokenizerInfo:
    """The vocabulary.

    Attributes:
        model: Such as ``gpt2``; empty where the file says none.
        pre: Pre-tokenizer; empty where the file says none.
        size: Number of tokens.
        sha256: Hash of tokens, merges, scores, types and special ids: equal hashes tokenize alike.
    """

    model: str
    pre: str
    size: int
    sha256: str


@dataclass(frozen=True)
class GgufInfo:
    """A model in figures, all its files together; a figure that is not given is 0, a word is empty.

    Attributes:
        path: The file, the first one of a split model.
        version: Of the format.
        size: Bytes of all files.
        architecture: Such as ``qwen3moe``.
        name: ``general.name``.
        quant: Mixture by the file's own word, such as ``Q4_K_M``; else the type with the most bytes.
        quant_mix: Bytes by tensor type, largest first.
        parameters: Number of weights.
        layers: Transformer layers.
        width: Model width.
        experts: Experts in a layer; 0 for a dense model.
        experts_used: Experts a token goes through.
        context_length: Tokens the model was made for.
        tokenizer: The vocabulary.
        tensors: In file order.
        synthetic: Made from a shape card: speed follows shapes, content means nothing.
        card: Name of that card.
        shards: Number of files the model is split into.
    """

    path: Path
    version: int
    size: int
    architecture: str
    name: str
    quant: str
    quant_mix: dict[str, int]
    parameters: int
    layers: int
    width: int
    experts: int
    experts_used: int
    context_length: int
    tokenizer: TokenizerInfo
    tensors: tuple[TensorInfo, ...]
    synthetic: bool
    card: str
    shards: int


def inspect_gguf(path: str | Path) -> GgufInfo:
    """Read a model's headers and say what it is; the weights are not read.

    Args:
        path: The file, or any part of a split model.

    Raises:
        BadInput: As `harness.models.splits.read_headers`; the file is named in each.
    """
    return describe(read_headers(Path(path)))


def describe(headers: Sequence[GgufHeader]) -> GgufInfo:
    """Turn the headers of a model into figures."""
    metadata = headers[0].metadata
    architecture = _word(metadata, "general.architecture")
    mix = _quant_mix(headers)
    return GgufInfo(
        path=headers[0].path,
        version=headers[0].version,
        size=sum(header.size for header in headers),
        architecture=architecture,
        name=_word(metadata, "general.name"),
        quant=_quant(metadata, mix),
        quant_mix=mix,
        parameters=sum(tensor.spec.parameters for header in headers for tensor in header.tensors),
        layers=_number(metadata, f"{architecture}.block_count"),
        width=_number(metadata, f"{architecture}.embedding_length"),
        experts=_number(metadata, f"{architecture}.expert_count"),
        experts_used=_number(metadata, f"{architecture}.expert_used_count"),
        context_length=_number(metadata, f"{architecture}.context_length"),
        tokenizer=_tokenizer(metadata),
        tensors=tuple(_tensor(placed, part) for part, header in enumerate(headers, 1) for placed in header.tensors),
        synthetic=_entry(metadata, SYNTHETIC_KEY) is True,
        card=_word(metadata, CARD_KEY),
        shards=len(headers),
    )


def _entry(metadata: dict[str, MetaValue], key: str) -> object:
    found = metadata.get(key)
    return None if found is None else found.value


def _word(metadata: dict[str, MetaValue], key: str) -> str:
    value = _entry(metadata, key)
    return value if isinstance(value, str) else ""


def _number(metadata: dict[str, MetaValue], key: str) -> int:
    """A number; of a list with one value per layer, the largest."""
    value = _entry(metadata, key)
    if isinstance(value, tuple):
        return max((each for each in value if isinstance(each, int)), default=0)
    return value if isinstance(value, int) else 0


def _quant_mix(headers: Sequence[GgufHeader]) -> dict[str, int]:
    mix: Counter[str] = Counter()
    for header in headers:
        for tensor in header.tensors:
            mix[tensor.spec.type.name] += tensor.spec.nbytes
    return dict(mix.most_common())


def _quant(metadata: dict[str, MetaValue], mix: dict[str, int]) -> str:
    named = QUANT_OF_FILE_TYPE.get(_number(metadata, "general.file_type")) if "general.file_type" in metadata else None
    return named or next(iter(mix), "")


def _tensor(placed: PlacedTensor, part: int) -> TensorInfo:
    spec = placed.spec
    return TensorInfo(spec.name, spec.shape, spec.type.name, spec.nbytes, placed.offset, part)


def _tokenizer(metadata: dict[str, MetaValue]) -> TokenizerInfo:
    tokens = _entry(metadata, "tokenizer.ggml.tokens")
    content = hashlib.sha256()
    for key in sorted(key for key in metadata if key.startswith("tokenizer.ggml.")):
        content.update(repr((key, metadata[key].kind, metadata[key].value)).encode("utf-8", "surrogateescape"))
    return TokenizerInfo(
        model=_word(metadata, "tokenizer.ggml.model"),
        pre=_word(metadata, "tokenizer.ggml.pre"),
        size=len(tokens) if isinstance(tokens, tuple) else 0,
        sha256=content.hexdigest(),
    )
