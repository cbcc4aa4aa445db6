"""A calibration on the page: every figure with what it rests on, every bad word with its reason."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from harness.cli.calibration_page import HEADINGS, as_json, markdown, print_table
from harness.domain.build import Fork, Tool
from harness.domain.cell import Cell
from harness.domain.node import GIB, NodeFacts
from harness.domain.spread import Spread
from harness.domain.verdict import Estimate
from harness.domain.words import Throughput
from harness.judging.calibration import Alarms, Alike, binomial_bounds
from harness.running.calibration import Calibration, CellResult, Plant

NODE = NodeFacts("CPU 9000", 8, (), 64 * GIB, (), "6.1", 0, "unknown", None, 1, 0)
CELL = Cell(Fork.IK_LLAMA_CPP, Tool.EMBEDDED, "tiny-moe IQ4_XS", (("ngl", 0), ("t", 4)), "pp256")
ALARMS = tuple(Alarms(alpha, 9, 0, *binomial_bounds(0, 9), resampled=0.004) for alpha in (0.05, 0.01))
ALIKE = Alike(30, 0.0123, 0.0098, 0.0165, 0.001, 0.4, ALARMS, ((0.02, 0.7), (0.05, 1.0)), 0.03)
SLEPT = Plant(
    "5% of the speed slept away", 0.05, True, Throughput.REGRESSED, Estimate(0.948, 0.94, 0.96, 6, "ratio"), ""
)
THREADS = Plant("2 of 4 threads", None, False, Throughput.EQUIVALENT, Estimate(0.999, 0.98, 1.02, 6, "ratio"), "")
UNTRIED = Plant("a part of the speed slept away", None, True, None, None, "no loss is sure to be found")
FINE = CellResult(CELL, ALIKE, 2.0, 0.5, plants=(SLEPT, THREADS))
ILL = replace(FINE, cell=replace(CELL, workload="tg64"), faults=("its quad SD rose to 3.1%",))
LOST = CellResult(replace(CELL, workload="tg128"), trouble="only 2 quads fit")


def calibration(*cells: CellResult) -> Calibration:
    return Calibration(NODE, datetime(2026, 11, 30, 12, tzinfo=UTC), 600.0, cells)


def table(*cells: CellResult) -> str:
    stream = io.StringIO()
    print_table(Console(file=stream, width=200), calibration(*cells), Path("/state/spreads.json"))
    return stream.getvalue()


def test_a_line_holds_all_figures_of_its_cell() -> None:
    """Scatter with bounds, alarms of decisions, the smallest loss, both plants with what was measured."""
    (line,) = (line for line in table(FINE).splitlines() if line.startswith("pp256"))
    for figure in (
        "1.23% [0.98%, 1.65%]",
        " 30 ",
        "0 of 9",
        " 3 % ",
        "-5 %: regressed (-5.2%)",
        "2 of 4 threads: equivalent",
    ):
        assert figure in line
    assert line.rstrip().endswith("fine")


def test_below_stand_bounds_and_what_they_cannot_say() -> None:
    """Exact bounds of the pooled decisions, and no claim about a gate's error rate."""
    text = table(FINE, ILL)
    assert "False alarms at 0.05, all cells: 0 of 18 decisions on fresh quads (exact 95 % bounds 0.0% to 18.5%)" in text
    assert "nominal" in text
    assert "Kept in /state/spreads.json" in text


@pytest.mark.parametrize(
    ("cell", "word", "reason"),
    [
        (ILL, "quarantined", "quarantined: tg64 of tiny-moe IQ4_XS on ik_llama.cpp: its quad SD rose to 3.1%"),
        (LOST, "not calibrated", "not calibrated: tg128 of tiny-moe IQ4_XS on ik_llama.cpp: only 2 quads fit"),
        (
            replace(LOST, earlier=Spread("tg128", 0.021, 5.0, "calibration of 2026-11-29")),
            "as before",
            "only 2 quads fit; runs go on with a quad SD of 2.10%, calibration of 2026-11-29",
        ),
        (replace(FINE, plants=(UNTRIED,)), "unproven", "no loss is sure to be found"),
        (replace(FINE, plants=(UNTRIED,)), "unproven", "No minutes would do for what is unproven"),
        (replace(FINE, plants=(replace(SLEPT, throughput=Throughput.EQUIVALENT),)), "fine", "-5 %: equivalent"),
        (replace(FINE, plants=()), "fine", "none could be planted"),
    ],
)
def test_each_word_has_its_reason(cell: CellResult, word: str, reason: str) -> None:
    """In the table, in markdown and in the data. Faults are made of missed plants elsewhere."""
    text = table(cell)
    assert reason in text
    (line,) = (line for line in text.splitlines() if line.startswith((cell.cell.workload,)))
    assert line.rstrip().endswith(word)
    assert f"`{word}` |" in markdown(calibration(cell))
    (told,) = as_json(calibration(cell), Path("/x"))["cells"]
    assert told["verdict"] == word


def test_one_number_of_minutes_is_for_all_cells() -> None:
    """The largest, rounded up, and once."""
    lost, untried = replace(LOST, needed=3.2), replace(FINE, plants=(UNTRIED,), needed=7.4)
    text = table(lost, untried)
    assert text.count("--minutes") == 1
    assert "--minutes 8 would likely do for all cells." in text
    assert "No minutes would do" not in text
    assert as_json(calibration(lost, untried), Path("store"))["minutes_needed"] == 8
    assert "--minutes" not in table(FINE)


def test_nothing_is_said_to_be_kept_where_nothing_was_found() -> None:
    """A calibration that found nothing out leaves the file alone."""
    assert "Kept in" not in table(LOST)


def test_cells_that_would_read_alike_are_told_apart() -> None:
    """By those flags alone that differ."""
    other = replace(FINE, cell=replace(CELL, placement=(("ngl", 99), ("t", 4))))
    text = table(FINE, other)
    assert "ik_llama.cpp (ngl=0)" in text
    assert "ik_llama.cpp (ngl=99)" in text
    assert "t=4" not in text


def test_markdown_is_a_table() -> None:
    """Equal columns in every row."""
    rows = [line for line in markdown(calibration(FINE, ILL, LOST)).splitlines() if line.startswith("|")]
    assert len(rows) == 5
    assert {row.count("|") for row in rows} == {len(HEADINGS) + 1}


def test_the_data_are_json() -> None:
    """With the node's facts and the fingerprint it is known by."""
    told = json.loads(json.dumps(as_json(calibration(FINE, LOST), Path("/state/spreads.json")), allow_nan=False))
    assert told["node"]["fingerprint"] == NODE.fingerprint
    assert told["node"]["cpu_model"] == "CPU 9000"
    assert told["cells"][0]["cell"]["placement"] == {"ngl": 0, "t": 4}
    assert told["cells"][0]["plants"][0]["found"] is True
    assert told["alarms"][0]["decisions"] == 9
