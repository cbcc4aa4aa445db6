"""The command ``compare``, on files, folders, standard input, one split file and journals."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

sys.path.insert(0, str(Path(__file__).parents[1] / "judging"))

from judging_support import BASELINE, CANDIDATE, NODE, PP, arms_runs, contrast

from harness.cli.compare import compare
from harness.domain.build import Fork, Tool
from harness.domain.cell import Cell
from harness.domain.errors import BadInput
from harness.domain.job import Design, Job
from harness.domain.node import Gpu, NodeClass, NodeFacts
from harness.reporting.journal import JournalWriter, PlannedCase, RunInfo
from harness.running.spread_file import Record, change_spreads

DATA = Path(__file__).parents[1] / "data"
TABLES, RECORDINGS = DATA / "discussion399", DATA / "recordings"
IK, MAINLINE = "ik_llama_cpp-8337e4cd", "llama_cpp-b11434"
CONTRACT = ["case", "workload", "baseline", "candidate", "ratio", "low", "high", "p", "n", "verdict", "reason"]


@pytest.fixture(autouse=True)
def spreads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No spreads of this user's own."""
    monkeypatch.setenv("MOE_SPREADS", str(tmp_path / "spreads.json"))
    return tmp_path / "spreads.json"


def run(*arguments: object, text: str = "") -> Result:
    return CliRunner().invoke(compare, [str(one) for one in arguments], input=text)


def told(*arguments: object, text: str = "") -> list[dict[str, Any]]:
    result = run(*arguments, "--format", "json", text=text)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def refused(*arguments: object, text: str = "") -> BadInput:
    error = run(*arguments, text=text).exception
    assert isinstance(error, BadInput), error
    return error


def folders(tmp_path: Path) -> tuple[Path, Path]:
    """The six alternating rounds, a folder a fork."""
    found = tmp_path / MAINLINE, tmp_path / IK
    for folder in found:
        folder.mkdir()
        for index in range(1, 7):
            shutil.copy(RECORDINGS / f"{folder.name}.full_{index}.json", folder / f"round_{index + 6}.json")
    return found


# ---- what it says ----------------------------------------------------------------------------------------------------


def test_data_have_the_contracts_fields() -> None:
    rows = told(TABLES / "mainline.md", TABLES / "ik_exps.md")
    assert [list(row) for row in rows] == [CONTRACT] * 8
    first = rows[0]
    assert (first["workload"], first["baseline"], first["candidate"], first["n"]) == ("pp512", 14.29, 15.72, 1)
    assert first["verdict"] == "inconclusive"
    assert "confounded: model file differs (IQ4_XS v IQ4_XS_R8)" in first["reason"]
    assert "real within its run" in first["reason"]


def test_a_table_a_reader_understands() -> None:
    result = run(TABLES / "mainline.md", "--split", "fa")
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert any(line.split()[:6] == ["pp512", "fa=0:1", "14.29", "11.80", "0.826", "[0.727,"] for line in lines)
    assert lines[-1] == "2 rows: 1 regressed, 1 inconclusive"
    assert sum("process spread of 3.5 % is assumed" in line for line in lines) == 1


def test_a_page() -> None:
    result = run(TABLES / "mainline.md", "--split", "flash_attn=1:0", "--format", "markdown")
    lines = result.output.splitlines()
    assert lines[0].startswith(f"- both sides: `{TABLES / 'mainline.md'}`: `4 rows; llama.cpp 15e03282 (5318)")
    assert "| workload | settings | baseline t/s | candidate t/s | ratio [99 %] | verdict |" in lines
    assert "| `pp512` | `fa=1:0` | 11.80 | 14.29 | 1.211 [1.066, 1.376] | improved |" in lines
    assert lines[-1] == "**2 rows: 1 improved, 1 inconclusive**"
    assert result.exit_code == 3


def test_exit_codes_say_the_worst(tmp_path: Path) -> None:
    alike = json.loads((RECORDINGS / f"{MAINLINE}.full_2.json").read_text())
    for name, row in (("a", alike[0]), ("b", {**alike[0], "test_time": "2026-11-30T23:00:00Z"})):
        (tmp_path / f"{name}.json").write_text(json.dumps([row]))
    fine = run(tmp_path / "a.json", tmp_path / "b.json", "--process-spread", "0.3%")
    assert (fine.exit_code, fine.output.splitlines()[-1]) == (0, "1 row: 1 equivalent")
    assert run(tmp_path / "a.json", tmp_path / "b.json").exit_code == 3
    assert run(RECORDINGS / f"{IK}.q4k_hybrid.json", RECORDINGS / f"{IK}.q4k_hyb_rtr.json").exit_code == 1
    assert refused(tmp_path / "a.json", tmp_path / "a.json").slug == "E-no-contrast"


# ---- what it takes ---------------------------------------------------------------------------------------------------


def test_folders_are_blocks_in_natural_order(tmp_path: Path) -> None:
    """``round_10`` after ``round_9``: only then do the rounds alternate."""
    rows = told(*folders(tmp_path))
    assert [(row["workload"], row["verdict"], row["n"]) for row in rows] == [
        ("pp512", "regressed", 6),
        ("tg64", "regressed", 6),
    ]
    assert all("6 pairs that alternate" in row["reason"] for row in rows)


def test_a_copy_of_a_file_is_no_process(tmp_path: Path) -> None:
    baseline, candidate = folders(tmp_path)
    shutil.copy(candidate / "round_12.json", candidate / "round_13.json")
    result = run(baseline, candidate)
    assert "E-same-file" in result.stderr
    assert "6 pairs" in result.output


def test_a_measurement_on_both_sides_is_refused(tmp_path: Path) -> None:
    """Five of six files alike would be judged equivalent, whatever the sixth says."""
    baseline, candidate = folders(tmp_path)
    shutil.rmtree(candidate)
    shutil.copytree(baseline, candidate)
    shutil.copy(RECORDINGS / f"{MAINLINE}.q4k_hybrid.json", candidate / "round_12.json")
    error = refused(baseline, candidate)
    assert error.slug == "E-no-contrast"
    assert "5 of 6 files" in error.message
    assert "round_7.json" in error.message


def test_what_lies_on_both_sides_beside_the_measurements_is_no_copy_of_one(tmp_path: Path) -> None:
    baseline, candidate = folders(tmp_path)
    for folder in (baseline, candidate):
        (folder / "machine.txt").write_text("one machine")
    assert [row["verdict"] for row in told(baseline, candidate)] == ["regressed", "regressed"]


def test_a_row_on_both_sides_is_refused_whatever_its_file_looks_like(tmp_path: Path) -> None:
    rows = json.loads((RECORDINGS / f"{MAINLINE}.full_1.json").read_text())
    more = json.loads((RECORDINGS / f"{MAINLINE}.full_2.json").read_text())
    (tmp_path / "before.json").write_text(json.dumps(rows))
    (tmp_path / "after.json").write_text(json.dumps([*rows, *more]))
    error = refused(tmp_path / "before.json", tmp_path / "after.json")
    assert error.slug == "E-no-contrast"
    assert "after.json, row 1" in error.message


def test_a_row_listed_twice_is_one_process(tmp_path: Path) -> None:
    """Else one run pasted four times would be four processes that do not scatter: anything is certain then."""
    for name, repeats in (("once", 1), ("again", 4)):
        for fork in (IK, MAINLINE):
            rows = json.loads((RECORDINGS / f"{fork}.full_1.json").read_text())
            (tmp_path / f"{name}.{fork}.json").write_text(json.dumps(rows * repeats))
    once, again = (run(*(tmp_path / f"{name}.{fork}.json" for fork in (IK, MAINLINE))) for name in ("once", "again"))
    figures = [[line for line in each.stdout.splitlines() if "[" in line] for each in (once, again)]
    assert figures[0]
    assert figures[0] == figures[1]
    assert "E-same-row" in again.stderr


def test_an_endless_file_is_refused() -> None:
    """A device says that it is empty."""
    if not Path("/dev/zero").exists():
        pytest.skip("needs /dev/zero")
    assert refused("/dev/zero", RECORDINGS / f"{IK}.full_1.json").slug == "E-too-large"


def test_what_lies_about_in_a_folder_is_named(tmp_path: Path) -> None:
    baseline, candidate = folders(tmp_path)
    (candidate / "notes.txt").write_text("nothing")
    (candidate / ".hidden.json").write_text("[")
    with (candidate / "model.gguf").open("wb") as file:
        file.truncate(2**30)
    result = run(baseline, candidate)
    told = [line.split(": ")[1:3] for line in result.stderr.splitlines()]
    assert told == [["note", "E-too-large"], ["note", "E-nothing-readable"]]
    assert "6 pairs" in result.output


def test_standard_input_is_a_side() -> None:
    text = (TABLES / "ik_exps.md").read_text()
    assert told(TABLES / "mainline.md", "-", text=text) == told(TABLES / "mainline.md", TABLES / "ik_exps.md")
    assert refused("-", "-").slug == "E-no-contrast"


def test_repeated_rows_of_a_file_are_blocks(tmp_path: Path) -> None:
    for name, producer in (("a", MAINLINE), ("b", IK)):
        rounds = [(RECORDINGS / f"{producer}.full_{index}.json").read_text() for index in range(1, 7)]
        (tmp_path / name).write_text("".join(rounds))
    assert [row["n"] for row in told(tmp_path / "a", tmp_path / "b")] == [6, 6]


def test_a_broken_file_is_named_and_the_rest_judged(tmp_path: Path) -> None:
    text = (RECORDINGS / f"{IK}.q4k_hyb_rtr.json").read_text()
    (tmp_path / "cut.json").write_text(text[: text.rindex("samples_ns")])
    result = run(RECORDINGS / f"{IK}.q4k_hybrid.json", tmp_path / "cut.json", "--format", "json")
    rows = json.loads(result.stdout)
    assert [row["verdict"] for row in rows] == ["regressed", "regressed", "not_comparable", "not_comparable"]
    assert rows[2]["reason"].startswith("the candidate has no tg64, it has pp512, pp2048")
    assert rows[3]["reason"].startswith("E-damaged-row")
    assert "E-incomplete-output" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        (["nowhere.json", TABLES / "mainline.md"], "E-no-input"),
        ([TABLES / "README.md", TABLES / "mainline.md"], "E-nothing-readable"),
        ([TABLES / "mainline.md", "--split", "fa=0:2"], "E-split-values"),
        ([TABLES / "mainline.md", "--split", "threads"], "E-unknown-column"),
        ([TABLES / "mainline.md", "--split", "ot"], "E-split-values"),
        ([TABLES / "mainline.md", "--split", "fa", "--factor", "biuld"], "E-unknown-factor"),
    ],
)
def test_bad_input_is_named(arguments: list[object], slug: str) -> None:
    assert refused(*arguments).slug == slug


def test_an_error_has_its_slug_once(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("nothing")
    assert f"{refused(tmp_path / 'bad.json', TABLES / 'mainline.md')}".count("E-nothing-readable") <= 1
    assert "E-nothing-readable" not in refused(tmp_path / "bad.json", TABLES / "mainline.md").message


def test_what_ends_nothing_is_told_as_a_note() -> None:
    told = run(TABLES / "cherrypicked.md", "--split", "fork").stderr
    assert told.startswith("moe-harness: note: E-no-build-line")


@pytest.mark.parametrize(("values", "words"), [("0:2", "no row says fa=2"), ("1:1", "needs two values")])
def test_values_that_no_split_has_are_named(values: str, words: str) -> None:
    error = refused(TABLES / "mainline.md", "--split", f"fa={values}")
    assert words in error.message
    assert error.hint == "say which: --split fa=0:1"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cherrypicked.md", "--split COLUMN; it holds two builds: --split fork"),
        ("mainline.md", "--split COLUMN; its rows differ in fa: --split fa"),
        ("there_is_none.md", "--split COLUMN"),
    ],
)
def test_a_file_that_holds_both_sides_says_by_which_column(name: str, said: str) -> None:
    """Whoever gave one file wants to know what to write."""
    result = run(TABLES / name)
    assert result.exit_code == 2
    assert result.stderr.rstrip().endswith(said)


def test_a_table_names_some_of_many_settings_and_data_name_all(tmp_path: Path) -> None:
    baseline, candidate = folders(tmp_path)
    assert "fmoe and 19 more, see --format json" in run(baseline, candidate).stdout
    (reason, _) = (row["reason"] for row in told(baseline, candidate))
    assert "more" not in reason.partition("said by one side only")[2]
    assert len(reason.partition("so not compared: ")[2].split(", ")) == 27


def test_a_factor_can_be_said_by_its_fields_name() -> None:
    rows = told(TABLES / "mainline.md", TABLES / "ik_exps.md", "--factor", "file")
    assert "contrast: model file differs (IQ4_XS v IQ4_XS_R8)" in rows[0]["reason"]
    assert "confounded: build differs" in rows[0]["reason"]


def test_an_unknown_column_gets_its_neighbour() -> None:
    assert refused(TABLES / "mainline.md", "--split", "flash_atn").hint == "did you mean 'flash_attn'?"


@pytest.mark.parametrize("arguments", [[TABLES / "mainline.md"], [TABLES / "mainline.md", "x", "--split", "fa"]])
def test_one_side_needs_a_split_and_two_need_none(arguments: list[object]) -> None:
    assert run(*arguments).exit_code == 2


@pytest.mark.parametrize("share", ["0", "nan", "100%", "much", "-1%"])
def test_a_share_is_between_nothing_and_all(share: str) -> None:
    assert run(TABLES / "mainline.md", "--split", "fa", "--process-spread", share).exit_code == 2


@pytest.mark.parametrize("column", ["fork", "framework"])
def test_the_handmade_table_is_split_by_fork(column: str) -> None:
    """The author's column says the fork, and no more: it confounds nothing."""
    rows = told(TABLES / "cherrypicked.md", "--split", f"{column}=llama.cpp:ik_llama.cpp")
    assert [(row["workload"], row["verdict"]) for row in rows] == [("pp512", "inconclusive"), ("tg128", "inconclusive")]
    assert "contrast: build differs" in rows[0]["reason"]
    assert "confounded: model file differs (IQ4_XS v IQ4_XS_R8); said" in rows[0]["reason"]
    assert "framework" not in rows[0]["reason"]


def test_a_factor_can_be_a_column_that_says_the_fork() -> None:
    rows = told(TABLES / "cherrypicked.md", "--split", "fork=llama.cpp:ik_llama.cpp", "--factor", "framework")
    assert "contrast: build differs" in rows[0]["reason"]


# ---- what is known of the machine ------------------------------------------------------------------------------------


def test_a_calibration_of_the_files_machine_takes_the_place_of_the_default(spreads: Path) -> None:
    gpu = Gpu("NVIDIA H200", 150754820096, "580.159.04", "GPU-1")
    node = NodeFacts("Intel(R) Xeon(R)  Processor", 16, (), 2**37, (gpu,), "6.1", 0, "unknown", None, 1, 0)
    cell = Cell(Fork.IK_LLAMA_CPP, Tool.LLAMA_BENCH, "m.gguf", (), "tg128")
    record = Record(
        when=datetime(2026, 11, 30, tzinfo=UTC),
        quads=9,
        quad_sd=0.004,
        process_s=1,
        start_s=1,
        load_s=None,
        repetition_s=1,
    )
    change_spreads(spreads, lambda file: file.with_record(node, cell, record))
    pair = RECORDINGS / f"{IK}.q4k_hybrid.json", RECORDINGS / f"{IK}.q4k_hyb_rtr.json"
    rows = {row["workload"]: row for row in told(*pair)}
    assert "a process spread of 0.4 % is assumed (calibration of 2026-11-30, tg128 of m.gguf" in rows["tg64"]["reason"]
    assert "3.5 % is assumed" in rows["pp512"]["reason"]
    assert "3 % is assumed (--process-spread)" in told(*pair, "--process-spread", "3%")[2]["reason"]
    other = replace(node, gpus=())
    change_spreads(spreads, lambda _: type(_)().with_record(other, cell, record))
    assert all("3.5 % is assumed" in row["reason"] for row in told(*pair))


# ---- journals --------------------------------------------------------------------------------------------------------


JOB = Job((BASELINE, CANDIDATE), (PP,), None, NodeClass("any"), Design(), ())


def journal_head(writer: JournalWriter, node: NodeFacts) -> None:
    writer.run_started(RunInfo("small", "local", cases=1))
    writer.planned(PlannedCase(contrast(), JOB.id))
    writer.job_submitted(JOB, 1)
    writer.job_started(JOB.id, 1, node, "box")


def journal(
    folder: Path,
    ours: list[float],
    theirs: list[float],
    node: NodeFacts = NODE,
    *,
    finished: bool = True,
    content: str = "",
) -> Path:
    with JournalWriter(folder) as writer:
        journal_head(writer, node)
        for each in arms_runs(ours, theirs):
            writer.process(JOB.id, 1, replace(each, content_key=content or each.content_key))
        if finished:
            writer.job_finished(JOB.id, 1, None)
    return folder


def test_candidate_arms_of_two_journals_are_compared_through_time(tmp_path: Path) -> None:
    before = journal(tmp_path / "before", [100, 101, 99, 100], [90, 91, 90, 89])
    after = journal(tmp_path / "after", [99, 100, 98, 99], [70, 71, 70, 69])
    (row,) = told(before, after)
    assert row["verdict"] == "regressed"
    assert row["n"] == 4
    assert row["case"].endswith("@any")
    assert row["ratio"] == pytest.approx((70 / 99) / (90 / 100), rel=0.01)
    assert "relative to the baseline arm beside it, the same bytes both times, moved -1.0 %" in row["reason"]


def test_a_ratio_that_is_relative_is_marked(tmp_path: Path) -> None:
    before = journal(tmp_path / "before", [100, 101, 99, 100], [90, 91, 90, 89])
    after = journal(tmp_path / "after", [50, 50.5, 49.5, 50.1], [35, 35.5, 35.2, 34.5])
    printed = run(before, after).stdout
    assert "* [" in printed
    assert "* not candidate over baseline of this line" in printed
    assert "* [" not in run(TABLES / "mainline.md", "--split", "fa").stdout


def test_a_journal_that_goes_on_is_not_compared_with_its_beginning(tmp_path: Path) -> None:
    before = journal(tmp_path / "before", [100, 101], [90, 91])
    after = journal(tmp_path / "after", [100, 101, 99, 98], [90, 91, 90, 89])
    assert refused(before, after).slug == "E-no-contrast"


def test_a_process_whose_baseline_was_interrupted_is_left_out(tmp_path: Path) -> None:
    """One baseline too few: the others are still there to be relative to."""
    before = journal(tmp_path / "before", [100, 101, 99, 100], [90, 91, 90, 89])
    after = tmp_path / "after"
    with JournalWriter(after) as writer:
        journal_head(writer, NODE)
        for each in arms_runs([50, 50.5, 49.5, 50.1], [35, 35.5, 35.2, 34.5]):
            if (each.step.block, each.step.arm) == (3, 0):
                continue
            writer.process(JOB.id, 1, each)
        writer.job_finished(JOB.id, 1, None)
    (row,) = told(before, after)
    assert row["ratio"] == pytest.approx((35 / 50) / (90 / 100), rel=0.02)
    assert "no baseline arm of the same bytes" not in row["reason"]
    assert "1 process left out: no baseline was measured beside it in its block" in row["reason"]


def test_a_machine_that_became_slower_is_no_regression(tmp_path: Path) -> None:
    """Both arms lost a quarter, the baseline of the same bytes too."""
    before = journal(tmp_path / "before", [100, 101, 99, 100], [90, 91, 90, 89])
    after = journal(tmp_path / "after", [75, 76, 74, 75], [68, 68.1, 67.5, 67])
    (row,) = told(before, after)
    assert row["verdict"] == "equivalent"
    assert "moved -25.0 %" in row["reason"]


def test_without_an_unchanged_baseline_the_caveat_is_told(tmp_path: Path) -> None:
    before = journal(tmp_path / "before", [100, 101, 99, 100], [90, 91, 90, 89])
    after = journal(tmp_path / "after", [100, 101, 99, 100], [70, 71, 70, 69], content="other")
    (row,) = told(before, after)
    assert row["verdict"] == "regressed"
    assert row["ratio"] == pytest.approx(70 / 90, rel=0.01)
    assert "what changed on the machine between them is a part of the ratio" in row["reason"]
    assert "contrast: what ran differs" in row["reason"]


def test_journals_of_unlike_nodes_have_no_comparable_baseline(tmp_path: Path) -> None:
    before = journal(tmp_path / "before", [100, 101, 99], [90, 91, 90])
    after = journal(tmp_path / "after", [100, 101, 99], [70, 71, 70], replace(NODE, kernel="7.7", cores=99))
    (row,) = told(before, after)
    assert row["verdict"] == "not_comparable"
    assert row["reason"].startswith("no comparable baseline: another machine, cores differs")
    assert "kernel differs" in row["reason"]
    (row,) = told(before, after, "--factor", "machine")
    assert row["verdict"] == "regressed"


def test_void_quads_are_left_out_of_both_arms(tmp_path: Path) -> None:
    """The first quad's candidate was throttled: none of that quad counts, as in the run's own verdict."""
    before = journal(tmp_path / "before", [100, 101, 99, 100], [90, 91, 90, 89])
    after = tmp_path / "after"
    with JournalWriter(after) as writer:
        journal_head(writer, NODE)
        for each in arms_runs([100] * 6, [10, 10, 90, 91, 89, 90]):
            hurt = each.step.block == 0 and each.step.arm == 1
            state = replace(each.conditions, throttled=0.5) if hurt else each.conditions
            writer.process(JOB.id, 1, replace(each, conditions=state))
        writer.job_finished(JOB.id, 1, None)
    (row,) = told(before, after)
    assert row["n"] == 4
    assert row["verdict"] == "equivalent"


def test_a_job_that_never_finished_is_not_compared(tmp_path: Path) -> None:
    before = journal(tmp_path / "before", [100, 101, 99], [90, 91, 90])
    after = journal(tmp_path / "after", [100, 101], [70, 71], finished=False)
    assert refused(before, after).slug == "E-nothing-readable"
