"""How far distributions may be apart before they count as different: the shipped table, and what else is tolerated.

The floors were measured by ``benchmarks/equivalence.py`` (``--floors`` prints them): both wheels on the CPU, eight
networks of random weights in three shapes at residual gain 0.15, where such networks take harmless changes as trained
models do, 1,024 positions of each pair of harmless ways. Each is the largest figure of its kind of weights and of its
group of contrasts (the same kernels, or others), times its surplus, rounded up. They hold for the harness's own
card ``tiny-moe`` on the CPU, and for nothing else: elsewhere a verdict that rests on them is advice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, replace

from harness.domain.arm import Arm
from harness.domain.tolerance import ContrastClass, Figures
from harness.judging.quants import Quant

SURPLUS = Figures(
    mean=1.5, decode_mean=2.0, median=1.5, p90=2.0, decode_p90=3.0, p99=2.0, maximum=3.0, p25=1.35, decode_median=1.4
)
"""A floor is so many times the largest figure that harmless changes showed: the more a figure hangs on few positions,
the further it differs from network to network."""

_FULL = Figures(
    mean=1e-3, decode_mean=1e-3, median=5e-5, p90=2e-4, decode_p90=3e-4, p99=6e-3, maximum=0.3,
    p25=3e-5, decode_median=5e-5,
)  # fmt: skip
"""Of most figures ten times and more what was measured: 16 bits are not all alike, and faults show a thousand times as
much."""
_MIDDLE = Figures(
    mean=2.9e-3, decode_mean=2.9e-3, median=4e-4, p90=1.3e-3, decode_p90=2.1e-3, p99=7.9e-2, maximum=1.2,
    p25=2.4e-4, decode_median=3.8e-4,
)  # fmt: skip
_MIDDLE_ELSEWHERE = Figures(
    mean=3.5e-3, decode_mean=4.9e-3, median=4.8e-4, p90=2.1e-3, decode_p90=2.9e-3, p99=0.11, maximum=1.2,
    p25=2.8e-4, decode_median=4.5e-4,
)  # fmt: skip
_Q4_K = Figures(
    mean=4.2e-3, decode_mean=1.1e-2, median=7.5e-4, p90=3.5e-3, decode_p90=2.3e-2, p99=0.16, maximum=1.8,
    p25=4.5e-4, decode_median=7.2e-4,
)  # fmt: skip
_Q4_K_ELSEWHERE = Figures(
    mean=6.3e-3, decode_mean=1.4e-2, median=9.5e-4, p90=1.7e-2, decode_p90=2.9e-2, p99=0.23, maximum=1.9,
    p25=5.6e-4, decode_median=8.3e-4,
)  # fmt: skip
_IQ4_XS = Figures(
    mean=8.1e-3, decode_mean=6.7e-3, median=1.4e-3, p90=1.4e-2, decode_p90=8.2e-3, p99=0.23, maximum=1.4,
    p25=6.2e-4, decode_median=7.0e-4,
)  # fmt: skip
_IQ4_XS_ELSEWHERE = Figures(
    mean=1.6e-2, decode_mean=2.3e-2, median=4.1e-3, p90=5.9e-2, decode_p90=9.3e-2, p99=0.38, maximum=1.4,
    p25=1.7e-3, decode_median=4.3e-3,
)  # fmt: skip


def _each(combine: Callable[[tuple[float, ...]], float], *figures: Figures) -> Figures:
    """Figures of which each is made of those of the same name."""
    return Figures(*map(combine, zip(*map(astuple, figures), strict=True)))


_COARSE = _each(max, _Q4_K, _IQ4_XS)
"""Of few bits otherwise, of which nothing was measured: the larger."""
_COARSE_ELSEWHERE = _each(max, _Q4_K_ELSEWHERE, _IQ4_XS_ELSEWHERE)

_BY_KERNELS = {
    Quant.FULL: (_FULL, _FULL),
    Quant.MIDDLE: (_MIDDLE, _MIDDLE_ELSEWHERE),
    Quant.Q4_K: (_Q4_K, _Q4_K_ELSEWHERE),
    Quant.IQ4_XS: (_IQ4_XS, _IQ4_XS_ELSEWHERE),
    Quant.COARSE: (_COARSE, _COARSE_ELSEWHERE),
    Quant.UNKNOWN: (_COARSE, _COARSE_ELSEWHERE),
}
_SAME_KERNELS = (ContrastClass.FLAGS, ContrastClass.BUILD)

FLOORS: dict[tuple[Quant, ContrastClass], Figures] = {
    (quant, contrast): same if contrast in _SAME_KERNELS else others
    for quant, (same, others) in _BY_KERNELS.items()
    for contrast in ContrastClass
}

OWN_FACTOR = 2.0
"""An arm that differs from itself by so much under a harmless change may differ from another by this many times it."""

FULL_POSITIONS, FULL_DECODED = 1000, 256
"""Positions from which the floors of the two means hold as they stand. With fewer, one position weighs more than it did
where the floors were measured, and may be as far off as the floor of the maximum."""
QUANTILE_POSITIONS, QUANTILE_DECODED = 400, 200
"""With fewer positions median and percentiles tell little beside mean and maximum, and are not judged."""

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
    return _each(max, *listed) if listed else None


def times(figures: Figures, factor: float) -> Figures:
    """Every figure that many times."""
    return _each(lambda values: factor * values[0], figures)


def with_surplus(seen: Figures, surplus: Figures = SURPLUS) -> Figures:
    """The floor that follows from the largest figures that sound runs showed."""
    return Figures(*(factor * value for factor, value in zip(astuple(surplus), astuple(seen), strict=True)))


def at_most(figures: Figures, limit: Figures) -> Figures:
    """Every figure, but none above its limit."""
    return _each(min, figures, limit)


def for_positions(figures: Figures, positions: int, decoded: int) -> Figures:
    """The same for as many positions as there are: means of few may hold one that is as far off as the maximum."""
    return replace(
        figures,
        mean=figures.mean + figures.maximum * _weight(positions, FULL_POSITIONS),
        decode_mean=figures.decode_mean + figures.maximum * _weight(decoded, FULL_DECODED),
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
