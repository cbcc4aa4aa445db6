"""What is tolerated of two arms once it is known how far each is from itself, and which figures are beyond it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from harness.domain.tolerance import ContrastClass, Figures
from harness.judging.quants import Limits, Quant
from harness.judging.tolerances import (
    OWN_FACTOR,
    QUANTILE_DECODED,
    QUANTILE_POSITIONS,
    Allowed,
    at_most,
    floor_of,
    for_positions,
    largest,
    times,
)

_MOST_BELIEVED = floor_of(Quant.COARSE, ContrastClass.BACKEND)
"""No sound arm that was measured came from itself, or from any other, further than that."""


@dataclass(frozen=True, slots=True)
class Tolerated:
    """The limits of one comparison.

    Attributes:
        figures: Of each figure the most that is tolerated.
        hard: Margin of the reference, nats, above which another token is no rounding.
        source: Where the limits are from, in words.
        notes: What a reader has to know of the arms' own noise.
        believed: The limits without what no measurement of sound arms explains; ``None`` where that is nothing.
    """

    figures: Figures
    hard: float
    source: str
    notes: tuple[str, ...] = ()
    believed: Tolerated | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One figure beside its limit.

    Attributes:
        name: Its name.
        found: Its value.
        limit: The most that is tolerated; ``None``: shown and not judged.
    """

    name: str
    found: float
    limit: float | None

    @property
    def over(self) -> bool:
        """Whether it is beyond its limit; what is no number is."""
        return self.limit is not None and not self.found <= self.limit


def tolerated(
    allowed: Allowed,
    limits: Limits,
    own: Mapping[str, Figures],
    candidates_own: Mapping[str, Figures],
    largest_own_flip: float,
) -> Tolerated:
    """The limits: floors, or what the arms do to themselves under harmless changes where that is more.

    The candidate's own noise widens them no further than the widest shipped floor, or the baseline's own noise: a
    candidate that is broken under another batch must not be excused by it. The baseline's own noise counts whole, but a
    baseline that moves more than anything sound was seen to is no reference: ``believed`` has the limits without that.

    Args:
        allowed: Floors, and where they are from.
        limits: Of margins, at this quantization.
        own: The baseline against itself, by variation.
        candidates_own: The candidate against itself, by variation.
        largest_own_flip: Largest margin, nats, at which the baseline flips against itself; 0: at none.
    """
    notes, parts = [], [allowed.floor]
    ours, theirs = largest(own.values()), largest(candidates_own.values())
    if ours:
        parts.append(times(ours, OWN_FACTOR))
    if theirs:
        widened = times(theirs, OWN_FACTOR)
        believed = at_most(widened, largest([*parts, allowed.widest]) or allowed.widest)
        parts.append(believed)
        if believed != widened:
            notes.append(
                f"the candidate differs from itself by more than is believed to be harmless ({_by(candidates_own)})"
            )
    figures = largest(parts) or allowed.floor
    hard = max(limits.flip, OWN_FACTOR * largest_own_flip)
    believed_figures = largest([at_most(parts[1], _MOST_BELIEVED), *parts[:1], *parts[2:]]) if ours else figures
    believed_hard = min(hard, OWN_FACTOR * limits.flip)
    unbelieved = believed_figures != figures or believed_hard != hard
    if unbelieved:
        notes.append(f"the baseline differs from itself by more than is believed to be harmless ({_by(own)})")
    source = allowed.source
    if figures != allowed.floor:
        noise = f"{OWN_FACTOR:g} times what an arm differs from itself"
        source += f", and where that is more {noise} ({_both(own, candidates_own)})"
    strict = Tolerated(believed_figures or figures, believed_hard, source) if unbelieved else None
    return Tolerated(figures, hard, source, tuple(notes), strict)


def rows_of(found: Figures, tolerable: Tolerated, positions: int, decoded: int) -> tuple[Row, ...]:
    """The judged figures beside their limits.

    Args:
        found: What was found.
        tolerable: The limits.
        positions: How many positions it was found at.
        decoded: How many of them were decoded one at a time.
    """
    limits = for_positions(tolerable.figures, positions, decoded)
    quantiles, of_many = positions >= QUANTILE_POSITIONS, decoded >= QUANTILE_DECODED
    of_decoding = [
        Row("decode mean", found.decode_mean, limits.decode_mean),
        Row("decode median", found.decode_median, _known(limits.decode_median) if of_many else None),
        Row("decode p90", found.decode_p90, _known(limits.decode_p90) if of_many else None),
    ]
    return (
        Row("mean KLD", found.mean, limits.mean),
        Row("p25", found.p25, _known(limits.p25) if quantiles else None),
        Row("median", found.median, _known(limits.median) if quantiles else None),
        Row("p90", found.p90, _known(limits.p90) if quantiles else None),
        *(of_decoding if decoded else []),
        Row("p99", found.p99, _known(limits.p99) if quantiles else None),
        Row("max", found.maximum, limits.maximum),
    )


def _known(limit: float) -> float | None:
    """Infinite where nothing was shipped, and a calibration had too few positions: shown and not judged."""
    return limit if math.isfinite(limit) else None


def _both(own: Mapping[str, Figures], candidates_own: Mapping[str, Figures]) -> str:
    named = {"baseline": own, "candidate": candidates_own}
    return "; ".join(f"{name}: {_by(figures)}" for name, figures in named.items() if figures)


def _by(own: Mapping[str, Figures]) -> str:
    return ", ".join(f"mean {figures.mean:.2g} by {variation}" for variation, figures in own.items())
