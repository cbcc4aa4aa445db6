"""What others named and wrote stands in code on the pages in Markdown of commands that measure."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from markdown_it import MarkdownIt

sys.path.insert(0, str(Path(__file__).parents[1] / "running"))

from ab_support import board_of, events, planned

from harness.cli import ab_report, calibration_page, output_calibration_page
from harness.domain.build import Fork, Tool
from harness.domain.cell import Cell
from harness.domain.node import GIB, NodeFacts
from harness.domain.verdict import Verdict
from harness.domain.words import Status
from harness.running.ab_run import AbResult
from harness.running.calibration import Calibration, CellResult
from harness.running.output_calibration import ModelResult, OutputCalibration, PlantedFault

EVIL = "@team #12 <img src=x onerror=alert(1)> `tick` | cell **b** [a](https://evil.example) \x1b[31m\n# head"
WHEN = datetime(2026, 11, 30, 12, tzinfo=UTC)
NODE = NodeFacts(EVIL, 8, (), 64 * GIB, (), "6.1", 0, "unknown", None, 1, 0)
PARSER = MarkdownIt("commonmark").enable("table")


def page_of_ab() -> str:
    plan = planned()
    plan = replace(plan, arms=replace(plan.arms, names=(f"old {EVIL}", f"new {EVIL}")), notes=(EVIL,))
    board = board_of(plan)
    for event in events(plan, {"pp256": 0.98, "tg64": 1.0}, 3):
        board.take(event)
    verdict = Verdict(f"a/{EVIL}", Status.ERROR, EVIL)
    outputs = Verdict("b", Status.INCONCLUSIVE, EVIL, scope=f"compared; {EVIL}")
    verdicts = {"pp256": verdict, "tg64": verdict}
    return ab_report.markdown(AbResult(plan, board, verdicts, {}, outputs, False, Path("reports")))


def page_of_calibration() -> str:
    cell = Cell(Fork.IK_LLAMA_CPP, Tool.EMBEDDED, EVIL, (("ngl", 0),), "pp256")
    return calibration_page.markdown(Calibration(NODE, WHEN, 60.0, (CellResult(cell, trouble=EVIL),)))


def page_of_output_calibration() -> str:
    target = SimpleNamespace(model=SimpleNamespace(name=EVIL))  # what else there is of it, no page reads
    fault = PlantedFault("rope-base", EVIL, EVIL, EVIL, None, EVIL)
    model = ModelResult(cast("Any", target), faults=(fault,), troubles=(EVIL,))
    return output_calibration_page._markdown(OutputCalibration(NODE, WHEN, 60.0, (model,)))


PAGES = (page_of_ab, page_of_calibration, page_of_output_calibration)


def _alive(page: str) -> Iterator[str]:
    """What a page holds outside code, and what of it is markup that no page of ours has."""
    for token in PARSER.parse(page):
        if token.type in {"html_block", "heading_open"}:
            yield token.type
        for child in token.children or []:
            if child.type == "text":
                yield child.content
            elif child.type in {"html_inline", "link_open", "image"}:
                yield child.type


@pytest.mark.parametrize("make", PAGES)
def test_names_and_sentences_of_others_stand_in_code(make: Any) -> None:
    page = make()
    assert "team" in page
    alive = list(_alive(page))
    assert not {"html_block", "heading_open", "html_inline", "link_open", "image"} & set(alive)
    assert [text for text in alive if "team" in text or "tick" in text or "#12" in text] == []
    assert "\x1b" not in page


@pytest.mark.parametrize("make", PAGES)
def test_no_name_adds_a_column(make: Any) -> None:
    """Every table has in all of its rows the cells of its heading: a bar in a name ends none."""
    rows = [line.replace("\\|", "") for line in make().splitlines() if line.startswith("|")]
    widths = [row.count("|") for row in rows]
    starts = [at for at, row in enumerate(rows) if at + 1 < len(rows) and set(rows[at + 1]) <= set("|-: ")]
    assert starts
    for start, end in zip(starts, [*starts[1:], len(rows)], strict=True):
        assert len(set(widths[start:end])) == 1
