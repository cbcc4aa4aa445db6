"""What the three common report actions show of our JUnit tells what was measured, where, and how certain it is."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from github_support import EVIL, failed, journal
from report_actions import Shown, dorny, enricomi, mikepenz

from harness.domain.verdict import Verdict
from harness.domain.words import Status
from harness.reporting.junit import hardware_class, make_junit, write_junit
from harness.reporting.projections import write_projections
from harness.reporting.replay import read_journal

READERS = [dorny, mikepenz, enricomi]
FIGURES = re.compile(r"100\.\d -> 80\.\d+ t/s, ratio 0\.80\d \[0\.\d+, 0\.\d+\]")


@pytest.fixture(scope="module")
def junit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("junit")
    write_projections(read_journal(journal(folder, 80)), folder)
    return folder / "junit.xml"


@pytest.mark.parametrize("reader", READERS)
def test_the_first_line_tells_speed_ratio_interval_and_node(reader: Callable[[Path], list[Shown]], junit: Path) -> None:
    (shown,) = reader(junit)
    assert shown.outcome in {"failed", "failure"}
    assert FIGURES.search(shown.first), shown.first
    assert "Test CPU 9000 (8 cores)" in shown.first
    assert shown.seconds >= 0


@pytest.mark.parametrize("reader", READERS)
def test_the_title_tells_on_which_hardware(reader: Callable[[Path], list[Shown]], junit: Path) -> None:
    """Of the class name one action shows the last level alone."""
    (shown,) = reader(junit)
    assert hardware_class("Test CPU 9000 (8 cores)").replace(".", "_") in shown.title
    assert "pp512@any" in shown.title


@pytest.mark.parametrize("reader", READERS)
def test_every_outcome_is_what_it_is(reader: Callable[[Path], list[Shown]], tmp_path: Path) -> None:
    """An error is never shown as a pass; two of the three make no difference between it and a failure."""
    lost = Verdict("throughput/m/a/pp1@any", Status.ERROR, "node lost", slug="E-node-lost", node="GPU X")
    skipped = Verdict("throughput/m/a/pp2@any", Status.INCONCLUSIVE, "inconclusive: 2 quads", node="GPU X")
    fine = Verdict("throughput/m/a/pp3@any", Status.PASS, "fine", node="GPU X")
    write_junit(make_junit("m", [lost, failed(), skipped, fine]), tmp_path / "junit.xml")
    outcomes = [each.outcome for each in reader(tmp_path / "junit.xml")]
    assert outcomes[0] in {"failed", "failure", "error"}
    assert outcomes[1] in {"failed", "failure"}
    assert outcomes[2:] == ["skipped", "success"]
    assert reader(tmp_path / "junit.xml")[0].first.removeprefix("E-node-lost: ").startswith("node lost")


@pytest.mark.parametrize("reader", READERS)
def test_nothing_that_an_action_needs_is_ever_missing(reader: Callable[[Path], list[Shown]], tmp_path: Path) -> None:
    """One of them dies where a suite has no name or a failure no message."""
    odd = [failed(f"{index}{text}", reason=text) for index, text in enumerate(("", " ", EVIL, "\x1b[31m"))]
    write_junit(make_junit("", odd), tmp_path / "junit.xml")
    shown = reader(tmp_path / "junit.xml")
    assert len(shown) == 4
    assert all("\x1b" not in f"{each}" for each in shown)
