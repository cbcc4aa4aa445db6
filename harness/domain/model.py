"""Models: a file that exists or can be fetched, or a shape card that every node can make a file of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.domain.canonical import fields_of


@dataclass(frozen=True, slots=True)
class Model:
    """One model under a name. Exactly one of ``card``, ``path`` and ``url`` is set, or only ``sha256``.

    Attributes:
        name: The matrix's name for it.
        card: Packaged card's name, or path of a card file.
        quant: Quantization to make of a card, e.g. ``IQ4_XS``; ``F16`` is the card as written.
        path: A GGUF file, or the first part of a split one.
        url: Where it is fetched from; of a split one, the first part.
        sha256: Digests of its files in their order, in lower-case hexadecimal; empty where nobody gave any.
    """

    name: str
    card: str = ""
    quant: str = ""
    path: str = ""
    url: str = ""
    sha256: tuple[str, ...] = ()

    @property
    def synthetic(self) -> bool:
        """Weights are random: results are labelled so, and nothing that looks at content may be claimed."""
        return bool(self.card)

    @property
    def file_name(self) -> str:
        """Name of its file; the model's own where only a digest is known."""
        return (self.path or self.url).rpartition("/")[2] or self.name

    @property
    def declared(self) -> dict[str, Any]:
        """What identifies it: all but where it lies. Digests only where there are any, as before there were."""
        parts = fields_of(self)
        del parts["path"], parts["url"]
        if not self.sha256:
            del parts["sha256"]
        return parts
