"""A ratio and its interval as one line of a forest plot: the margin as a band, no change in the middle.

An interval is dashed where it holds only if quads scatter as far as is assumed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from harness.domain.verdict import Estimate

_REACHES = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0, 9.0, 99.0)
"""Gains that an axis may end at; its other end is the loss that undoes it."""
_ROOM = 1.25
_ROUNDING = 1e-9
"""What an axis may be short of: a ratio and its reciprocal are rounded differently and have the same axis."""
_WIDE = 4.0
"""Intervals of more than so many margins do not stretch the axis: they are cut off at its ends."""


@dataclass(frozen=True, slots=True)
class Glyphs:
    """What the plot is drawn with."""

    ground: str
    band: str
    middle: str
    line: str
    dashed: str
    point: str
    cut_left: str
    cut_right: str


UNICODE = Glyphs(ground=" ", band="░", middle="│", line="━", dashed="╍", point="●", cut_left="◂", cut_right="▸")
ASCII = Glyphs(ground=" ", band=".", middle="|", line="-", dashed="~", point="o", cut_left="<", cut_right=">")


@dataclass(frozen=True, slots=True)
class Axis:
    """A logarithmic axis around no change, the same for all rows of a table.

    Attributes:
        gain: Gain at its right end, e.g. 0.25.
        width: Characters, odd: the middle one is no change.
    """

    gain: float
    width: int

    @classmethod
    def around(cls, ratios: Iterable[Estimate], margin: float, width: int) -> Axis:
        """The smallest axis on which all ratios, most of their intervals and twice the margin have room."""
        farthest = max([2 * math.log1p(margin), *(_reach(ratio, margin) for ratio in ratios)])
        gain = next((gain for gain in _REACHES if math.log1p(gain) >= farthest - _ROUNDING), _REACHES[-1])
        return cls(gain, width - 1 + width % 2)

    def position(self, ratio: float) -> int:
        """The character of a ratio; outside of the axis below 0 or from its width on."""
        share = math.log(ratio) / math.log1p(self.gain) if ratio > 0 else -math.inf
        return round((max(-9.0, min(9.0, share)) + 1) / 2 * (self.width - 1))

    def scale(self) -> str:
        """The line that names the ends and the middle."""
        left, right = f"{1 / (1 + self.gain):.2f}", f"{1 + self.gain:.2f}"
        half = self.width // 2
        return left.ljust(half - 1) + "1.00" + right.rjust(self.width - half - 3)


def plot(axis: Axis, ratio: Estimate | None, margin: float, glyphs: Glyphs = UNICODE) -> list[tuple[str, bool]]:
    """The characters of one row, each with whether it belongs to the interval.

    Args:
        axis: The table's axis.
        ratio: ``None`` draws the ground alone.
        margin: The band: relative change of this row that is still equivalent.
        glyphs: What to draw with.
    """
    inside = range(axis.position(1 / (1 + margin)), axis.position(1 + margin) + 1)
    row = [(glyphs.band if column in inside else glyphs.ground, False) for column in range(axis.width)]
    row[axis.width // 2] = (glyphs.middle, False)
    if ratio is None:
        return row
    line = glyphs.line if ratio.assumed is None else glyphs.dashed
    low, high = axis.position(ratio.low), axis.position(ratio.high)
    for column in range(max(0, low), min(axis.width - 1, high) + 1):
        row[column] = (line, True)
    if low < 0:
        row[0] = (glyphs.cut_left, True)
    if high >= axis.width:
        row[-1] = (glyphs.cut_right, True)
    at = axis.position(ratio.value)
    if 0 <= at < axis.width:
        row[at] = (glyphs.point, True)
    return row


def _reach(ratio: Estimate, margin: float) -> float:
    """How far from no change an axis has to go for a ratio."""
    value = abs(math.log(ratio.value)) if ratio.value > 0 else 0.0
    ends = [abs(math.log(end)) for end in (ratio.low, ratio.high) if end > 0]
    far = max([value, *ends])
    return far if far - value <= _WIDE * margin else _ROOM * value
