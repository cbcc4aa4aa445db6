"""How coarse a model's weights are: the coarser, the further apart harmless changes drive its outputs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from harness.domain.model import Model

_Q4_K = re.compile(r"(?:^|[^A-Z0-9])Q4_K(?:$|[^A-Z0-9])")
_IQ4_XS = re.compile(r"(?:^|[^A-Z0-9])IQ4_XS(?:$|[^A-Z0-9])")
_COARSE = re.compile(r"(?:^|[^A-Z0-9])(?:I?Q[1-4]_|I?Q[1-4](?:$|[^0-9])|MXFP4|NVFP4|TQ[12]_)")
_MIDDLE = re.compile(r"(?:^|[^A-Z0-9])(?:Q8_|Q6_|Q5_|I?Q[5-8]_)")
_FULL = re.compile(r"(?:^|[^A-Z0-9])(?:B?F16|F32)")


class Quant(StrEnum):
    """A class of quantizations; the value is its name in reasons."""

    FULL = "16 bits"
    MIDDLE = "5 to 8 bits"
    Q4_K = "Q4_K"
    IQ4_XS = "IQ4_XS"
    COARSE = "4 bits and less"
    UNKNOWN = "unknown quantization"


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a first divergence stops being a tie and starts being proof.

    Attributes:
        tie: Reference margin, nats, up to which a divergence is a near-tie.
        hard: Reference margin, nats, above which a divergence shows different outputs, where margins are all there is.
        flip: The same where distributions at many positions are compared: of many one is sometimes far out.
    """

    tie: float
    hard: float
    flip: float


FINE = Limits(tie=0.1, hard=1.0, flip=2.0)
COARSE = Limits(tie=0.5, hard=2.0, flip=3.0)
UNKNOWN = Limits(tie=FINE.tie, hard=COARSE.hard, flip=COARSE.flip)
"""Neither a tie is granted easily nor a difference proven easily: what lies between is left undecided."""

_LIMITS = {
    Quant.FULL: FINE,
    Quant.MIDDLE: FINE,
    Quant.Q4_K: COARSE,
    Quant.IQ4_XS: COARSE,
    Quant.COARSE: COARSE,
    Quant.UNKNOWN: UNKNOWN,
}
_PATTERNS = (
    (Quant.Q4_K, _Q4_K),
    (Quant.IQ4_XS, _IQ4_XS),
    (Quant.COARSE, _COARSE),
    (Quant.MIDDLE, _MIDDLE),
    (Quant.FULL, _FULL),
)
"""The first that is found: the types that have floors of their own stand before the others of their width."""


def quant_of(model: Model) -> Quant:
    """The class of a model: by its declared quantization, else by its file's name, else by the folder of that."""
    # No folder further up: a user or a collection may be called like a quantization.
    folder, _, name = (model.path or model.file_name).rpartition("/")
    found = (_quant_in(text) for text in ((model.quant,) if model.quant else (name, folder.rpartition("/")[2])))
    return next((quant for quant in found if quant is not Quant.UNKNOWN), Quant.UNKNOWN)


def _quant_in(text: str) -> Quant:
    return next((quant for quant, pattern in _PATTERNS if pattern.search(text.upper())), Quant.UNKNOWN)


def limits_of(model: Model) -> Limits:
    """The limits for a model."""
    return _LIMITS[quant_of(model)]
