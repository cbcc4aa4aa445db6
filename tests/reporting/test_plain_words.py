"""Changes of speed in words whose direction nobody has to guess."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.reporting.plain_words import between, change, clock_text, count, signed, signed_between


@pytest.mark.parametrize(
    ("ratio", "words", "column"),
    [
        (0.811, "18.9 % slower", "-18.9 %"),
        (1.032, "3.2 % faster", "+3.2 %"),
        (2.41, "2.41 times as fast", "x2.41"),
        (0.09, "91.0 % slower", "-91.0 %"),
        (1.0, "0.0 % faster", "+0.0 %"),
    ],
)
def test_a_change(ratio: float, words: str, column: str) -> None:
    assert (change(ratio), signed(ratio)) == (words, column)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.799, 0.821, "17.9 to 20.1 % slower"),
        (1.01, 1.05, "1.0 to 5.0 % faster"),
        (0.988, 1.004, "1.2 % slower to 0.4 % faster"),
        (2.1, 2.5, "2.10 to 2.50 times as fast"),
        (1.8, 2.5, "80.0 % faster to 2.50 times as fast"),
        (0.5, 3.0, "50.0 % slower to 3.00 times as fast"),
    ],
)
def test_an_interval_begins_with_the_smaller_change(low: float, high: float, words: str) -> None:
    assert between(low, high) == words


@pytest.mark.parametrize(
    ("low", "high", "column"),
    [(0.97, 1.024, "-3.0 % .. +2.4 %"), (1.371, 2.04, "x1.37 .. x2.04"), (2.1, 2.5, "x2.10 .. x2.50")],
)
def test_both_ends_of_an_interval_in_a_column_are_of_one_kind(low: float, high: float, column: str) -> None:
    assert signed_between(low, high) == column


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_an_interval_says_the_direction_of_both_ends(one: float, other: float) -> None:
    told = between(min(one, other), max(one, other))
    for end in (one, other):
        assert change(end).split(" ")[-1] in told


def test_times_are_told_as_a_clock_shows_them() -> None:
    assert [clock_text(seconds) for seconds in (0, 59.6, 92, 3723, -5)] == ["0:00", "1:00", "1:32", "1:02:03", "0:00"]


def test_one_thing_is_told_in_the_singular() -> None:
    told = [count(1, "quad"), count(3, "quad"), count(2, "process"), count(0, "minute")]
    assert told == ["1 quad", "3 quads", "2 processes", "0 minutes"]
