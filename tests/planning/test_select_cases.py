"""Choosing cases by patterns on their ids."""

from __future__ import annotations

import pytest
from planning_support import matrix

from harness.domain.errors import BadInput
from harness.planning.expand import expand
from harness.planning.select import select

CASES = expand(matrix(flags={"fa": [0, 1]}))
ALL = [case.id for case in CASES]


@pytest.mark.parametrize(
    ("patterns", "wanted"),
    [
        ([], ALL),
        (["fa=1"], [name for name in ALL if "fa=1" in name]),
        (["IK+FA=1"], [name for name in ALL if "ik+fa=1" in name]),
        (["*/pp64@*"], [name for name in ALL if "/pp64@" in name]),
        (["!ik"], [name for name in ALL if "ik" not in name]),
        (["tg8", "!*ik*"], [name for name in ALL if "tg8" in name and "ik" not in name]),
        (["mainline+fa=0/tg", "ik+fa=1/pp"], [ALL[1], ALL[6]]),
        (["ik+fa=1/pp", "mainline+fa=0/tg"], [ALL[1], ALL[6]]),
        (["*tg?@any", "*tg[0-9]@any"], [name for name in ALL if "tg8" in name]),
        (["", "!"], ALL),
    ],
)
def test_patterns(patterns: list[str], wanted: list[str]) -> None:
    """Globs are over the whole id, other texts are a part of it, ``!`` removes; the order stays the matrix's."""
    assert [case.id for case in select(CASES, patterns)] == wanted


def test_a_glob_is_over_the_whole_id() -> None:
    """``*pp64`` finds nothing, because ids end in their class."""
    with pytest.raises(BadInput, match="E-nothing-selected"):
        select(CASES, ["*pp64"])


def test_a_pattern_that_finds_nothing_is_an_error() -> None:
    """A typing error does not end as an empty green run."""
    with pytest.raises(BadInput) as caught:
        select(CASES, ["mainlin+"])
    assert caught.value.slug == "E-nothing-selected"
    assert caught.value.hint == "did you mean 'mainline'?"


def test_all_may_be_taken_away() -> None:
    """Exclusions may leave nothing: that was said."""
    assert select(CASES, ["!*"]) == ()
