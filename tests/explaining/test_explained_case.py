"""One case taken apart, and what the command says of it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from explaining_support import DEPTHS, contrast_at, depth_record, written
from judging_support import arms_runs, contrast, record

from harness.cli.main import cli
from harness.domain.errors import BadInput
from harness.domain.failure import Failure, FailureKind
from harness.domain.load_facts import Buffer, LoadFacts
from harness.explaining.finding import the_case
from harness.explaining.one_case import explain_case
from harness.reporting.state import JournalState

H200 = Path(__file__).parents[1] / "data" / "h200_repack"
EVIL = "\x1b[31mred\x1b]0;title\x07 <b>@team</b> | `x`"


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> JournalState:
    """A candidate that loses with every token of depth."""
    found = depth_record((200.0, 50.0), (200.0, 90.0))
    return written(tmp_path_factory.mktemp("deep"), [contrast_at(depth) for depth in DEPTHS], found)


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["explain", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_screen_has_verdict_quads_and_what_moved(deep: JournalState) -> None:
    text = shown("tg100.d2000", str(deep.path))
    assert text.startswith("fail: ")
    assert "3 of 4 quads counted" in text
    assert "after the decision" in text
    assert "b moved" in text
    assert "≠ flag rtr" in text


def test_a_night_whose_errors_are_one_and_the_same_says_which_first(tmp_path: Path) -> None:
    """Its place too, and once: nothing passed that they could share something with."""
    failure = Failure(FailureKind.INPUT_MISSING, "builds.before: there is no llama-bench", "E-build-missing")
    none = replace(depth_record((200.0, 50.0), (200.0, 90.0), blocks=0), failure=failure)
    state = written(tmp_path, [contrast_at(depth) for depth in DEPTHS], none)
    told = shown(str(state.path)).partition("erred: ")[2].splitlines()
    assert told[0] == "all 3: E-build-missing"
    assert "builds.before: there is no llama-bench" in told[1]
    assert [line.strip() for line in told[2:5]] == [contrast_at(depth).id for depth in DEPTHS]


def test_every_quad_says_whether_it_counts(tmp_path: Path) -> None:
    runs = list(arms_runs([100, 101, 99, 100, 100, 100], [80, 81, 79, 80, 80, 80]))
    hot = [
        replace(run, conditions=replace(run.conditions, throttled=0.5)) if run.step.block == 1 else run for run in runs
    ]
    missing = [run for run in hot if (run.step.block, run.step.arm) != (5, 1)]
    state = written(tmp_path, [contrast()], record(missing))
    uses = [block.use for block in explain_case(state, contrast().id).blocks]
    assert uses == ["void: cores throttled", "counted", "not whole: a process is missing"]


def test_what_would_decide_an_open_case_is_told(tmp_path: Path) -> None:
    state = written(tmp_path, [contrast()], record(arms_runs([100, 101, 99, 104] * 2, [95, 99, 93, 99] * 2)))
    found = explain_case(state, contrast().id).undecided
    assert found is not None
    assert "more quads" in found.needed
    assert found.smallest is not None
    assert found.smallest_of_four_times is not None
    assert found.smallest_of_four_times <= found.smallest


def test_open_cases_of_a_night_without_reds_are_named(tmp_path: Path) -> None:
    state = written(tmp_path, [contrast()], record(arms_runs([100, 101, 99, 104] * 2, [95, 99, 93, 99] * 2)))
    told = shown(str(state.path)).splitlines()
    assert told[-2:] == ["1 inconclusive: explain CASE says what would decide it", f"  {contrast().id}"]
    assert "nothing is red" in told


def test_telemetry_placement_and_splits_stand_side_by_side(tmp_path: Path) -> None:
    load = LoadFacts(buffers=(Buffer("weights", "CUDA0", 900.0),), splits=2, offloaded=(7, 7))
    runs = [
        replace(
            run,
            load=replace(load, splits=2 + 60 * run.step.arm),
            conditions=replace(run.conditions, mhz=2000.0 + 900 * run.step.arm),
        )
        for run in arms_runs([100] * 4, [80] * 4)
    ]
    state = written(tmp_path, [contrast()], record(runs))
    found = explain_case(state, contrast().id)
    splits = next(row for row in found.loads if row.name == "graph splits")
    clock = next(row for row in found.states if "clock" in row.name)
    assert (splits.values, splits.differs) == (("2", "62"), True)
    assert (clock.values, clock.differs) == (("2000", "2900"), True)


def test_a_crash_shows_the_end_of_its_log(tmp_path: Path) -> None:
    failure = Failure(FailureKind.CRASH, "the engine crashed", "E-crash", "\n".join(f"line {n}" for n in range(40)))
    runs = [replace(run, failure=failure) if run.step.arm else run for run in arms_runs([100] * 4, [80] * 4)]
    state = written(tmp_path, [contrast()], record(runs))
    assert "line 39" in shown(contrast().id, str(state.path))
    assert "line 3\n" not in shown(contrast().id, str(state.path))
    assert "line 3\n" in shown(contrast().id, str(state.path), "--all")


def test_real_journals_of_an_h200_are_explained() -> None:
    text = shown("rtr", str(H200 / "two_quads.jsonl"))
    assert "GPU: power, W" in text
    stopped = shown(str(H200 / "one_quad.jsonl"))
    assert "errors" in stopped


def test_a_name_that_fits_none_or_several_is_told(deep: JournalState) -> None:
    with pytest.raises(BadInput, match=r"E-no-case.*did you mean 'tg100"):
        the_case(deep, "tg101")
    with pytest.raises(BadInput, match=r"is held against the whole id: '\*rtr\*d1000\*'"):
        the_case(deep, "rtr*d1000")
    with pytest.raises(BadInput, match=r"did you mean 'tg100"):
        the_case(deep, "tg100*d9999")
    with pytest.raises(BadInput, match="E-case-ambiguous"):
        the_case(deep, "tg100")
    assert the_case(deep, contrast_at(0).id) == contrast_at(0).id


def test_a_journal_alone_is_sorted_and_what_is_none_says_how_to_give_one(
    deep: JournalState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("results").mkdir()
    assert shown(str(deep.path.parent)) == shown(str(deep.path))
    for arguments, told in (
        ([], "moe-harness explain JOURNAL"),
        (["results"], "results/journal.jsonl"),
        ([str(deep.path), "tg100.d1000"], "CASE comes first: moe-harness explain CASE JOURNAL"),
    ):
        refused = CliRunner().invoke(cli, ["explain", *arguments])
        assert isinstance(refused.exception, BadInput)
        assert refused.exception.slug == "E-no-journal"
        assert told in str(refused.exception)


def test_lines_that_cannot_be_read_are_told_beside_the_answer(deep: JournalState, tmp_path: Path) -> None:
    """Planted: a broken line in the middle; the answer itself is as it was."""
    lines = deep.path.read_bytes().split(b"\n")
    broken = tmp_path / "journal.jsonl"
    broken.write_bytes(b"\n".join([*lines[:5], b"[1, 2", *lines[5:]]))
    asked = [CliRunner().invoke(cli, ["explain", "tg100.d1000", str(path)]) for path in (deep.path, broken)]
    assert asked[0].stderr == ""
    assert "line 6: " in asked[1].stderr
    assert asked[1].stdout == asked[0].stdout


def test_json_and_markdown_hold_the_same(deep: JournalState) -> None:
    data = json.loads(shown("tg100.d1000", str(deep.path), "--format", "json"))
    assert data["depth"]["depths"] == list(DEPTHS)
    assert [block["use"] for block in data["blocks"]] == ["counted"] * 4
    assert "| `baseline` |" in shown("tg100.d1000", str(deep.path), "--format", "markdown")
    night = json.loads(shown(str(deep.path), "--format", "json"))
    assert night["reds"]


def test_nothing_of_an_engine_is_alive(tmp_path: Path) -> None:
    """Whatever an engine calls itself, a terminal and a page show it as text."""
    runs = [
        replace(run, engine={EVIL: EVIL, "libraries": EVIL}, load=LoadFacts(settings=((EVIL, EVIL),)))
        for run in arms_runs([100] * 4, [80] * 4)
    ]
    failed = [replace(run, failure=Failure(FailureKind.CRASH, EVIL, "E-crash", EVIL)) for run in runs]
    for form in ("table", "markdown"):
        for index, found in enumerate((runs, failed)):
            state = written(tmp_path / f"{form}{index}", [contrast()], record(found))
            text = shown(contrast().id, str(state.path), "--format", form, "--all")
            assert "\x1b" not in text
            assert "red" in text
            if form == "markdown":
                plain = re.sub(
                    r"(`+)[^`\n].*?[^`\n]?\1(?!`)", "", re.sub(r"```text\n.*?\n```", "", text, flags=re.DOTALL)
                )
                assert "<b>" not in plain
                assert "@team" not in plain
