"""Models: a file that exists, or a shape card that every node can make a file of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Model:
    """One model under a name. Exactly one of ``card`` and ``path`` is set.

    Attributes:
        name: The matrix's name for it.
        card: Packaged card's name, or path of a card file.
        quant: Quantization to make of a card, e.g. ``IQ4_XS``; ``F16`` is the card as written.
        path: A GGUF file.
    """

    name: str
    card: str = ""
    quant: str = ""
    path: str = ""

    @property
    def synthetic(self) -> bool:
        """Weights are random: results are labelled so, and nothing that looks at content may be claimed."""
        return bool(self.card)
