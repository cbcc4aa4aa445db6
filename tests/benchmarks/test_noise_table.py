"""The benchmark of the measures against noise: its spread, its table, its page. Measuring itself is no test."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path

import noise
import pytest

from harness.domain.measurement import NS, Conditions, ProcessRun, Samples, Step
from harness.judging import voids

PAGE = Path(__file__).parents[2] / "docs/explanation/noise.md"
STATE = Conditions(0, (1,), 1, 0.0, model_cached=1.0, foreign_load=0.25)


def process(arm: int, block: int, tps: float, niceness: int = 0) -> ProcessRun:
    samples = (Samples("pp256", 256, (round(256 * NS / tps),), 0),)
    return ProcessRun(Step(arm, block), "", samples, (), 1.0, None, 0, replace(STATE, niceness=niceness), {})


def test_the_spread_is_about_the_true_value() -> None:
    """Nothing is subtracted: a constant error of 2 % is a spread of 2 %."""
    sd, low, high = noise.spread_about_zero([0.02] * 8)
    assert sd == pytest.approx(0.02)
    assert low < sd < high


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    draws = random.Random(3)  # noqa: S311 - noise
    held = 0
    for _ in range(2000):
        _, low, high = noise.spread_about_zero([draws.gauss(0, 0.01) for _ in range(6)])
        held += low <= 0.01 <= high
    assert held / 2000 == pytest.approx(noise.LEVEL, abs=0.02)


def test_a_cell_takes_whole_quads_and_leaves_void_ones_out() -> None:
    runs = [process(arm, block, 100 + arm) for block in (0, 1) for arm in (0, 1)]
    runs += [process(arm, block, 100, niceness=arm) for block in (2, 3) for arm in (0, 1)]
    cell = noise.Cell()
    cell.add(runs, "pp256")
    assert cell.log_ratios == [pytest.approx(math.log(1.01))]
    assert cell.void == 2
    assert cell.foreign == [0.25] * 4
    (row,) = noise.table({("ik", "pp256", "pinned"): cell})[2:]
    assert row.startswith("| ik | pp256 | pinned | 100.")
    assert "| 1 (2 blocks void) | 1.00% [0.51%, 15.87%] | 25.0% | 100.0% |" in row


def test_a_cell_in_which_all_failed_is_shown() -> None:
    cell = noise.Cell(failures=["timeout"])
    (row,) = noise.table({("ik", "pp256", "nothing"): cell})[2:]
    assert row == "| ik | pp256 | nothing | none | 0 (failed: timeout) | none | not known | not known |"


def test_the_table_goes_between_the_markers_of_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    once = noise.put_between_markers(page, ["| new |"])
    assert noise.put_between_markers(once, ["| new |"]) == once
    assert once.split(noise.BEGIN)[0] == page.split(noise.BEGIN)[0]
    assert once.split(noise.END)[1] == page.split(noise.END)[1]
    with pytest.raises(ValueError, match="noise: end"):
        noise.put_between_markers("no markers", [])


def test_every_fact_of_a_process_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in Conditions.__dataclass_fields__ if f"`{name}`" not in page] == []


def test_every_reason_to_void_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [word for word in voids.SLOWDOWNS if f"`{word}`" not in page] == []
    assert f"{voids.MAX_THROTTLED:.0%}".replace("%", " %") in page
