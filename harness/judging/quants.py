"""How far apart harmless changes drive the outputs of a quantization, in nats of the reference's margin."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.domain.model import Model

_COARSE = re.compile(r"(?:^|[^A-Z0-9])(?:I?Q[1-4]_|I?Q[1-4](?:$|[^0-9])|MXFP4|NVFP4|TQ[12]_)")
_FINE = re.compile(r"(?:^|[^A-Z0-9])(?:B?F16|F32|Q8_|Q6_|Q5_|I?Q[5-8]_)")


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a first divergence stops being a tie and starts being proof.

    Attributes:
        tie: Reference margin, nats, up to which a divergence is a near-tie.
        hard: Reference margin, nats, above which a divergence shows different outputs.
    """

    tie: float
    hard: float


FINE = Limits(tie=0.1, hard=1.0)
COARSE = Limits(tie=0.5, hard=2.0)
UNKNOWN = Limits(tie=FINE.tie, hard=COARSE.hard)
"""Neither a tie is granted easily nor a difference proven easily: what lies between is left undecided."""


def limits_of(model: Model) -> Limits:
    """The limits for a model: by its declared quantization, else by its file's name."""
    text = (model.quant or model.path or model.file_name).upper()
    if _COARSE.search(text):
        return COARSE
    return FINE if _FINE.search(text) else UNKNOWN
