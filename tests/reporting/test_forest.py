"""A ratio's line in a forest plot: in its place, as wide as asked for, the mirror image where the arms are swapped."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from harness.domain.verdict import Estimate
from harness.reporting.forest import ASCII, UNICODE, Axis, plot

MARGIN = 0.05


def ratio(value: float, low: float, high: float) -> Estimate:
    return Estimate(value, low, high, 3, "ratio", 0.5)


def drawn(axis: Axis, found: Estimate | None) -> str:
    return "".join(char for char, _ in plot(axis, found, MARGIN, ASCII))


def test_the_interval_lies_where_its_ratios_are() -> None:
    axis = Axis(gain=1.0, width=41)
    assert drawn(axis, None) == "                   .|.                   "
    assert drawn(axis, ratio(1.0, 0.5, 2.0)) == "--------------------o--------------------"
    assert drawn(axis, ratio(2**0.5, 2**0.25, 2**0.75)) == "                   .|.   -----o-----     "


def test_what_is_off_the_axis_is_cut_with_an_arrow() -> None:
    axis = Axis(gain=0.1, width=11)
    assert drawn(axis, ratio(0.5, 0.4, 0.6)) == "< ...|...  "
    assert drawn(axis, ratio(1.0, 0.1, 10.0)) == "<----o---->"


def test_the_axis_names_its_ends_and_its_middle() -> None:
    scale = Axis(gain=0.25, width=31).scale()
    assert scale == "0.80          1.00         1.25"
    assert scale.index(".00") == 31 // 2


ratios = st.floats(0.01, 100).flatmap(
    lambda value: st.tuples(st.floats(1, 3), st.floats(1, 3)).map(
        lambda ends: ratio(value, value / ends[0], value * ends[1])
    )
)


@given(st.lists(ratios, max_size=5), st.integers(7, 60), st.floats(0.001, 0.5))
def test_every_point_of_the_table_is_on_its_axis(found: list[Estimate], width: int, margin: float) -> None:
    axis = Axis.around(found, margin, width)
    assert axis.width % 2 == 1
    assert len(axis.scale()) <= max(axis.width, 16)
    for each in found:
        pieces = plot(axis, each, margin, UNICODE)
        assert len(pieces) == axis.width
        assert (UNICODE.point, True) in pieces


@given(ratios, st.integers(7, 60))
@example(ratio(1.5, 1.5, 1.5), 7)
def test_swapping_the_arms_mirrors_the_line(found: Estimate, width: int) -> None:
    swapped = ratio(1 / found.value, 1 / found.high, 1 / found.low)
    axis = Axis.around([found], MARGIN, width)
    assert axis == Axis.around([swapped], MARGIN, width)
    mirror = str.maketrans("<>", "><")
    ours, theirs = drawn(axis, found), drawn(axis, swapped)[::-1].translate(mirror)
    assert abs(ours.index("o") - theirs.index("o")) <= 1  # a half rounds to the even column


def test_an_interval_that_is_assumed_is_dashed() -> None:
    assumed = Estimate(1.0, 0.5, 2.0, 2, "ratio", 0.5, 0.1)
    assert drawn(Axis(gain=1.0, width=11), assumed) == "~~~~~o~~~~~"
