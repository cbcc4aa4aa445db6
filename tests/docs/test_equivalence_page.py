"""The page on equivalence names the limits that the judge has."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.domain.tolerance import ContrastClass
from harness.domain.words import Equivalence
from harness.judging.quants import COARSE, FINE
from harness.judging.tolerances import (
    _KV_BUDGETS,
    FULL_DECODED,
    FULL_POSITIONS,
    OWN_FACTOR,
    QUANTILE_DECODED,
    QUANTILE_POSITIONS,
    SURPLUS,
)

DOCS = Path(__file__).parents[2] / "docs"
PAGE = " ".join((DOCS / "explanation" / "equivalence.md").read_text(encoding="utf-8").split())
GLOSSARY = (DOCS / "glossary.md").read_text(encoding="utf-8")
TIMES = {2.0: "twice", 3.0: "three times"}


@pytest.mark.parametrize(
    "said",
    [
        f"at most {FINE.tie:g} nat apart (4-bit weights: {COARSE.tie:g})",
        f"led by far ({FINE.flip:g} nat; 4-bit weights: {COARSE.flip:g})",
        f"fewer than {QUANTILE_POSITIONS} positions ({QUANTILE_DECODED} decoded ones)",
        f"(below {FULL_POSITIONS:,}, and {FULL_DECODED} decoded ones)",
        f"**{TIMES[OWN_FACTOR]} what an arm does to itself**",
        f"(mean of at most {_KV_BUDGETS[0][1]:g} nat), one of fewer bits too ({_KV_BUDGETS[1][1]:g})",
    ],
)
def test_the_limits_are_those_of_the_judge(said: str) -> None:
    assert said in PAGE


def test_the_glossary_has_the_same() -> None:
    assert f"more than {FINE.flip:g} nat (4-bit weights: {COARSE.flip:g})" in GLOSSARY
    assert f"a measured floor, or {TIMES[OWN_FACTOR]} what an arm does to itself" in GLOSSARY


def test_the_surpluses_are_those_of_the_floors() -> None:
    assert SURPLUS.mean == SURPLUS.median
    assert SURPLUS.decode_mean == SURPLUS.p90 == SURPLUS.p99
    assert SURPLUS.decode_p90 == SURPLUS.maximum
    said = f"{SURPLUS.mean:g} for mean and median, {SURPLUS.p90:g} for the mean of decoded positions, p90 and p99, "
    newer = f"{SURPLUS.p25:g} for p25 and {SURPLUS.decode_median:g} for the median of decoded positions"
    assert f"{said}{SURPLUS.maximum:g} for the 90th percentile of decoded positions and the maximum, {newer}" in PAGE


@pytest.mark.parametrize("word", [*Equivalence, *ContrastClass])
def test_every_word_is_explained(word: str) -> None:
    assert f"`{word}` |" in PAGE
