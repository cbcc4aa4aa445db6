"""Two machines' results beside each other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from explaining_support import written
from judging_support import NODE, arms_runs, contrast, floor, record

from harness.cli.main import cli
from harness.domain.errors import BadInput
from harness.reporting.replay import read_journal
from harness.reporting.state import JournalState
from harness.sharing.beside import Agreement, side_by_side
from harness.sharing.bundle import pack

SLOWER = ([100, 101, 99, 100] * 2, [80, 80.8, 79.2, 80] * 2)
FASTER = ([50, 50.5, 49.5, 50] * 2, [60, 60.5, 59.5, 60] * 2)
TWICE_AS_FAST = ([200, 202, 198, 200] * 2, [160, 161.6, 158.4, 160] * 2)


def state(folder: Path, speeds: tuple[list[float], list[float]], key: str = "") -> JournalState:
    cases = [contrast(), floor(1)]
    runs = [replace(run, content_key=key or run.content_key) for run in arms_runs(*speeds)]
    found = record(runs)
    return written(folder, cases, replace(found, job=replace(found.job, cases=tuple(case.id for case in cases))))


def test_the_same_slowdown_on_a_machine_twice_as_fast_is_the_same_finding(tmp_path: Path) -> None:
    found = side_by_side(state(tmp_path / "a", SLOWER), state(tmp_path / "b", TWICE_AS_FAST))
    by_case = {row.case: row for row in found.rows}
    pair = by_case[contrast().id]
    assert (pair.agreement, pair.overlap, pair.work) == (Agreement.SAME, True, "pp")
    assert by_case[floor(1).id].agreement is Agreement.SHOWN


def test_a_gain_where_there_was_a_loss_is_another_finding(tmp_path: Path) -> None:
    found = side_by_side(state(tmp_path / "a", SLOWER), state(tmp_path / "b", FASTER))
    pair = next(row for row in found.rows if row.case == contrast().id)
    assert (pair.agreement, pair.overlap) == (Agreement.OTHER, False)


def test_other_bytes_are_told(tmp_path: Path) -> None:
    found = side_by_side(state(tmp_path / "a", SLOWER, "k1"), state(tmp_path / "b", SLOWER, "k2"))
    assert "other bytes" in found.rows[0].content
    same = side_by_side(state(tmp_path / "c", SLOWER, "k1"), state(tmp_path / "d", SLOWER, "k1"))
    assert same.rows[0].content == "the same bytes"


def test_nothing_in_common_is_told(tmp_path: Path) -> None:
    h200 = read_journal(Path(__file__).parents[1] / "data" / "h200_repack" / "two_quads.jsonl")
    with pytest.raises(BadInput, match="E-nothing-in-common"):
        side_by_side(h200, state(tmp_path, SLOWER))


@pytest.mark.parametrize(("speeds", "code"), [(TWICE_AS_FAST, 0), (FASTER, 1), (([100] * 2, [95] * 2), 3)])
def test_compare_sets_a_bundle_beside_a_journal(
    tmp_path: Path, speeds: tuple[list[float], list[float]], code: int
) -> None:
    """Exit 0 where the same is found, 1 where another thing is, 3 where one decides nothing."""
    theirs = state(tmp_path / "a", SLOWER)
    bundle = pack(theirs, [contrast().id], tmp_path / "b.tar.gz").path
    state(tmp_path / "mine", speeds)
    result = CliRunner().invoke(cli, ["compare", str(bundle), str(tmp_path / "mine"), "--format", "json"])
    row = next(row for row in json.loads(result.output)["rows"] if row["case"] == contrast().id)
    assert row["original"]["throughput"] == "regressed"
    # The single arm is in one of them only.
    assert result.exit_code == (code or 3)


def test_absolute_speeds_have_no_verdict_and_the_page_says_why(tmp_path: Path) -> None:
    state(tmp_path / "a", SLOWER)
    state(tmp_path / "b", TWICE_AS_FAST)
    for form in ("table", "markdown"):
        arguments = ["compare", "--beside", str(tmp_path / "a"), str(tmp_path / "b"), "--format", form]
        result = CliRunner().invoke(cli, arguments)
        assert result.exit_code == 0, result.output
        assert "shown and not judged" in result.output
        assert "only shown" in result.output
    assert NODE.cpu_model in result.output
