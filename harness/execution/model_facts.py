"""What file an engine's outputs are of: they are a reference for no other one."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

from harness.domain.errors import BadInput
from harness.domain.golden import MODEL, TENSORS, TOKENIZER
from harness.models.hashing import model_sha256
from harness.models.splits import read_headers

_OF_TOKENIZER = "tokenizer."


def model_facts(path: Path) -> dict[str, str]:
    """Digests of a model and of its tokenizer, and how many tensors have which type.

    Args:
        path: The file, or any part of a split model. Its content was hashed when the job was prepared: that is kept.

    Returns:
        Facts by name; empty where the file can't be read any more: the engine says so itself.
    """
    try:
        headers = read_headers(path)
        content = model_sha256(path)
    except BadInput:
        return {}
    types = Counter(tensor.spec.type.name for header in headers for tensor in header.tensors)
    tokenizer = hashlib.sha256()
    for key, value in sorted(headers[0].metadata.items()):
        if key.startswith(_OF_TOKENIZER):
            tokenizer.update(f"{key}={value.kind}:{value.value!r}\n".encode("utf-8", "surrogatepass"))
    told = ", ".join(f"{name} {count}" for name, count in sorted(types.items()))
    return {MODEL: content, TOKENIZER: tokenizer.hexdigest(), TENSORS: told}
