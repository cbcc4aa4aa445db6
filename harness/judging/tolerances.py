"""How far distributions may be apart before they count as different: the shipped table, and what else is tolerated.

Source of the table: both wheels on the CPU, a random-weight qwen3moe (32 experts of which 4 used, residual gain 0.15,
at which it takes harmless changes as trained models do), 11,890 positions of eight to ten harmless changes each. A
floor is about three times what these changes showed. They hold for the harness's own synthetic models on the CPU, and
for nothing else: elsewhere a verdict that rests on them is advice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.domain.arm import Arm
from harness.domain.tolerance import ContrastClass, Figures
from harness.judging.quants import Quant

_FULL = Figures(mean=3e-4, decode_mean=3e-4, p99=6e-3, maximum=0.2)
_MIDDLE = Figures(mean=5e-3, decode_mean=5e-3, p99=5e-2, maximum=0.4)
_COARSE = Figures(mean=4.5e-3, decode_mean=4.5e-3, p99=6e-2, maximum=0.15)
_COARSE_ELSEWHERE = Figures(mean=1.5e-2, decode_mean=1.5e-2, p99=0.12, maximum=0.35)

FLOORS: dict[tuple[Quant, ContrastClass], Figures] = {
    (Quant.FULL, ContrastClass.FLAGS): _FULL,
    (Quant.FULL, ContrastClass.BUILD): _FULL,
    (Quant.FULL, ContrastClass.FORK): _FULL,
    (Quant.FULL, ContrastClass.BACKEND): _FULL,
    (Quant.MIDDLE, ContrastClass.FLAGS): _MIDDLE,
    (Quant.MIDDLE, ContrastClass.BUILD): _MIDDLE,
    (Quant.MIDDLE, ContrastClass.FORK): _MIDDLE,
    (Quant.MIDDLE, ContrastClass.BACKEND): _MIDDLE,
    (Quant.COARSE, ContrastClass.FLAGS): _COARSE,
    (Quant.COARSE, ContrastClass.BUILD): _COARSE,
    (Quant.COARSE, ContrastClass.FORK): _COARSE_ELSEWHERE,
    (Quant.COARSE, ContrastClass.BACKEND): _COARSE_ELSEWHERE,
    (Quant.UNKNOWN, ContrastClass.FLAGS): _COARSE,
    (Quant.UNKNOWN, ContrastClass.BUILD): _COARSE,
    (Quant.UNKNOWN, ContrastClass.FORK): _COARSE_ELSEWHERE,
    (Quant.UNKNOWN, ContrastClass.BACKEND): _COARSE_ELSEWHERE,
}

OWN_FACTOR = 3.0
"""An arm that differs from itself by so much under a harmless change may differ from another by this many times it."""

FULL_POSITIONS, FULL_DECODED = 1000, 256
"""Positions from which the floors of the two means hold as they stand. With fewer, one position weighs more than it did
where the floors were measured, and may be as far off as the floor of the maximum."""
P99_POSITIONS = 400
"""With fewer positions their 99th percentile is all but their maximum, and is not judged apart."""

_KV_BUDGETS = ((8, 2e-3), (0, 3e-2))
"""Mean divergence that a quantized KV cache may cost by the bits of its elements: from so many, so much."""
_KV_FLAGS = ("ctk", "ctv")
_KV_BITS = {"f32": 32, "f16": 16, "bf16": 16, "q8_0": 8, "q8_KV": 8, "q6_0": 6}
_FEW_BITS = 4


@dataclass(frozen=True, slots=True)
class Allowed:
    """What is tolerated of one pair of arms, before what they do to themselves is known.

    Attributes:
        floor: Figures that are tolerated at least.
        source: Where they are from, in words.
        widest: The most that the candidate's own noise may widen them to, where it is more than the baseline's.
        lossy: Mean divergence that the factor may cost by declaration, nats; ``None``: nothing is declared.
        factor: In what the arms differ, for words.
        changes_numbers: The factor should change the numbers.
        advisory: Why a verdict that rests on divergences alone is advice; empty where something was calibrated.
    """

    floor: Figures
    source: str
    widest: Figures
    lossy: float | None = None
    factor: str = ""
    changes_numbers: bool = False
    advisory: str = ""


def floor_of(quant: Quant, contrast: ContrastClass) -> Figures:
    """The shipped floor."""
    return FLOORS[quant, contrast]


def largest(figures: Iterable[Figures]) -> Figures | None:
    """The largest of each figure; ``None`` of none."""
    listed = list(figures)
    if not listed:
        return None
    return Figures(
        max(each.mean for each in listed),
        max(each.decode_mean for each in listed),
        max(each.p99 for each in listed),
        max(each.maximum for each in listed),
    )


def times(figures: Figures, factor: float) -> Figures:
    """Every figure that many times."""
    return Figures(factor * figures.mean, factor * figures.decode_mean, factor * figures.p99, factor * figures.maximum)


def at_most(figures: Figures, limit: Figures) -> Figures:
    """Every figure, but none above its limit."""
    return Figures(
        min(figures.mean, limit.mean),
        min(figures.decode_mean, limit.decode_mean),
        min(figures.p99, limit.p99),
        min(figures.maximum, limit.maximum),
    )


def for_positions(figures: Figures, positions: int, decoded: int) -> Figures:
    """The same for as many positions as there are: means of few may hold one that is as far off as the maximum."""
    return Figures(
        figures.mean + figures.maximum * _weight(positions, FULL_POSITIONS),
        figures.decode_mean + figures.maximum * _weight(decoded, FULL_DECODED),
        figures.p99,
        figures.maximum,
    )


def kv_budget(reference: Arm, other: Arm) -> float | None:
    """What the coarser KV cache of two arms may cost; ``None`` where they have the same."""
    differing = [
        value
        for name in _KV_FLAGS
        if reference.flags.get(name) != other.flags.get(name)
        for value in (reference.flags.get(name), other.flags.get(name))
    ]
    bits = min((_KV_BITS.get(str(value), _FEW_BITS) for value in differing if value is not None), default=None)
    if bits is None or bits >= _KV_BITS["f16"]:
        return None
    return next(budget for least, budget in _KV_BUDGETS if bits >= least)


def _weight(positions: int, enough: int) -> float:
    return max(0.0, 1 / positions - 1 / enough) if positions else 0.0
