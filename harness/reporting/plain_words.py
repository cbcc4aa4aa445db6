"""Ratios of speeds in plain words: ``18.9 % slower``, never a bare ratio whose direction has to be guessed."""

from __future__ import annotations

_TIMES_FROM = 2.0


def change(ratio: float) -> str:
    """A change of speed: ``18.9 % slower``, ``3.2 % faster``, ``2.41 times as fast``."""
    return f"{_amount(ratio)} {_direction(ratio)}"


def signed(ratio: float) -> str:
    """The same for a column: ``-18.9 %``, ``+3.2 %``, ``x2.41``."""
    if ratio >= _TIMES_FROM:
        return f"x{ratio:.2f}"
    sign = {"faster": "+", "slower": "-"}[_direction(ratio)]
    return f"{sign}{_amount(ratio)}"


def signed_between(low: float, high: float) -> str:
    """An interval for a column, both ends in the same words: ``-3.0 % .. +2.4 %``, ``x1.37 .. x2.04``."""
    if high >= _TIMES_FROM > low:
        return f"x{low:.2f} .. x{high:.2f}"
    return f"{signed(low)} .. {signed(high)}"


def between(low: float, high: float) -> str:
    """An interval of changes, the smaller change first: ``17.9 to 20.1 % slower``, ``1.2 % slower to 0.4 % faster``."""
    if _direction(low) != _direction(high) or low < _TIMES_FROM <= high:
        return f"{change(low)} to {change(high)}"
    small, large = (low, high) if low >= 1 else (high, low)
    return f"{_amount(small).removesuffix(' %').removesuffix(' times')} to {change(large)}"


def _amount(ratio: float) -> str:
    return f"{ratio:.2f} times" if ratio >= _TIMES_FROM else f"{100 * abs(ratio - 1):.1f} %"


def _direction(ratio: float) -> str:
    if ratio >= _TIMES_FROM:
        return "as fast"
    return "faster" if ratio >= 1 else "slower"


def clock_text(seconds: float) -> str:
    """A time as a clock shows it: ``1:32``, ``1:02:03``."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def count(number: int, word: str) -> str:
    """A number with its word in the right form: ``1 quad``, ``3 processes``."""
    plural = "es" if word.endswith(("s", "x")) else "s"
    return f"{number} {word}" + ("" if number == 1 else plural)
