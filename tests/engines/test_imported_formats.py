"""Every format of both forks' ``llama-bench``, whole, edited and broken."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.build import Fork
from harness.domain.imported import Imported, ImportedRow
from harness.engines.imported.reading import decoded, read_output

DATA = Path(__file__).parents[1] / "data"
RECORDINGS = DATA / "recordings"
IK, MAINLINE = "ik_llama_cpp-8337e4cd", "llama_cpp-b11434"
SAMPLES = {
    "json": (RECORDINGS / f"{IK}.q4k_hybrid.json").read_text(),
    "jsonl": (RECORDINGS / "llama_cpp-0c1e570.depths.jsonl").read_text(),
    "ik csv": (RECORDINGS / f"{IK}.short.csv").read_text(),
    "csv": (RECORDINGS / f"{MAINLINE}.short.csv").read_text(),
    "sql": (RECORDINGS / f"{MAINLINE}.short.sql").read_text(),
    "md": (RECORDINGS / f"{IK}.tables.md").read_text(),
    "mainline md": (DATA / "discussion399" / "mainline.md").read_text(),
}


def read(text: str) -> Imported:
    return read_output(text, "file")


def recorded(name: str) -> Imported:
    return read((RECORDINGS / name).read_text())


def slugs(found: Imported) -> list[str]:
    return [problem.slug for problem in found.problems]


def settings(row: ImportedRow) -> dict[str, str]:
    return dict(row.settings)


def ik_row(**changed: Any) -> dict[str, Any]:
    """The first row of a recording, with fields changed; ``None`` takes a field away."""
    row = {**json.loads(SAMPLES["json"])[0], **changed}
    return {name: value for name, value in row.items() if value is not None}


def as_ik_sql(row: dict[str, Any]) -> str:
    values = ", ".join("'" + str(value).replace("'", "''") + "'" for value in row.values())
    return (
        f"CREATE TABLE IF NOT EXISTS test (\n  a TEXT\n);\n\nINSERT INTO test ({', '.join(row)}) VALUES ({values});\n"
    )


# ---- what is there ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "form", "loads"),
    [
        (f"{IK}.q4k_hybrid.json", "json", ["pp512", "pp2048", "tg64"]),
        (f"{MAINLINE}.q4k_full.jsonl", "json", ["pp512", "tg128"]),
        (f"{IK}.depths.json", "json", ["pp32", "tg8", "pp16+tg8", "tg8.d64"]),
        (f"{IK}.short.csv", "csv", ["pp64", "tg8"]),
        (f"{MAINLINE}.short.csv", "csv", ["pp64", "tg8"]),
        (f"{MAINLINE}.short.sql", "sql", ["pp64", "tg8"]),
        (f"{IK}.tables.md", "markdown", ["pp64", "tg8"] * 4),
    ],
)
def test_recordings_are_read_whole(name: str, form: str, loads: list[str]) -> None:
    found = recorded(name)
    assert found.form == form
    assert [row.workload for row in found.rows] == loads
    assert found.problems == ()


def test_one_command_reads_alike_from_csv_and_sql() -> None:
    """Two formats of one build say the same settings, build, model and machine."""
    first, second = recorded(f"{MAINLINE}.short.csv").rows, recorded(f"{MAINLINE}.short.sql").rows
    for one, other in zip(first, second, strict=True):
        assert (one.settings, one.build, one.model, one.machine) == (
            other.settings,
            other.build,
            other.model,
            other.machine,
        )


def test_forks_spell_the_same_settings_alike() -> None:
    """Flags have one name and one spelling in both forks, but not fields of one name that mean two things."""
    ours, theirs = (recorded(f"{producer}.q4k_hybrid.json").rows for producer in (IK, MAINLINE))
    assert settings(ours[0])["ot"] == settings(theirs[0])["ot"] == "exps=CPU"
    assert settings(ours[0])["ts"] == settings(theirs[0])["ts"] == "none"
    assert settings(ours[0])["ngl"] == settings(theirs[0])["ngl"] == "99"
    assert settings(ours[0])["rtr"] == "0"
    assert settings(theirs[0])["repack"] == "1"
    assert "repack" not in settings(ours[0])
    assert {row.build.fork for row in (*ours, *theirs)} == {Fork.IK_LLAMA_CPP, Fork.LLAMA_CPP}
    assert ours[0].machine == theirs[0].machine
    assert ours[0].model == theirs[0].model


def test_a_table_says_little_and_that_is_read() -> None:
    row = read((DATA / "discussion399" / "mainline.md").read_text()).rows[2]
    assert settings(row) == {"t": "6", "fa": "1", "ot": "exps=CPU"}
    assert (row.build.commit, row.build.number, row.build.backends) == ("15e03282", 5318, "CUDA,BLAS")
    assert row.build.fork is Fork.LLAMA_CPP
    assert (row.model.architecture, row.model.quant) == ("qwen3moe", "IQ4_XS")
    assert row.summary is not None
    assert (row.summary.mean_tps, row.summary.sd_tps, row.summary.repetitions) == (11.80, 0.04, 5)


def test_rows_of_two_forks_in_one_table_keep_their_forks() -> None:
    """The public comparison's own table, edited by hand: an added column, N/A in cells."""
    found = read((DATA / "discussion399" / "cherrypicked.md").read_text())
    assert [row.build.fork for row in found.rows] == [Fork.IK_LLAMA_CPP] * 2 + [Fork.LLAMA_CPP] * 2
    assert "amb" not in settings(found.rows[2])
    assert settings(found.rows[0])["framework"] == "ik_llama.cpp"
    assert slugs(found) == ["E-no-build-line"]


# ---- fields that mean other things -----------------------------------------------------------------------------------


def test_values_that_ik_printed_under_other_names_are_put_right() -> None:
    """Between cfb840379 and e61cd0303 seven values stood one name too far; rcache moved four of them again."""
    gone = dict.fromkeys(("no_fused_up_gate", "no_ooae", "muge", "rcache", "cuda_params", "override_tensor"))
    order = ("fmoe", "ger", "no_fug", "thp", "no_ooae", "mqkv")
    printed = ("mqkv", "fused_moe", "grouped_er", "fused_up_gate", "use_thp", "ooae")
    for index, flag in enumerate(order):
        row = ik_row(**gone | {name: name == printed[index] for name in printed})
        said = settings(read(json.dumps(row)).rows[0])
        assert {name for name in order if said[name] == "1"} == {flag}
    order = ("fmoe", "ger", "rcache", "no_fug", "thp", "no_ooae", "mqkv")
    printed = (*printed, "rcache")
    for index, flag in enumerate(order):
        row = ik_row(**gone | {name: name == printed[index] for name in printed})
        said = settings(read(json.dumps(row)).rows[0])
        assert {name for name in order if said[name] == "1"} == {flag}


def test_a_table_of_a_shifted_build_is_put_right_by_its_number() -> None:
    text = SAMPLES["md"].replace("|   amb |", "|  fmoe |").replace("unknown (0)", "abcdef12 (3950)")
    assert settings(read(text).rows[0])["ger"] == "128"
    assert "fmoe" in settings(read(text.replace("(3950)", "(3941)")).rows[0])


def test_older_rows_of_ik_print_what_is_switched_off() -> None:
    row = ik_row(no_fused_up_gate=None, no_ooae=None, mqkv=None, muge=None, rcache=None, fused_up_gate=True, ooae=False)
    said = settings(read(json.dumps(row)).rows[0])
    assert (said["no_fug"], said["no_ooae"]) == ("1", "0")


# ---- what people and machines do to files ----------------------------------------------------------------------------


def test_noise_around_the_rows_does_no_harm() -> None:
    noise = 'ggml_cuda_init: found 1 CUDA devices:\n{"level": "info"}\n'
    for name, text in SAMPLES.items():
        assert [row.settings for row in read(noise + text + noise).rows] == [row.settings for row in read(text).rows], (
            name
        )


def test_an_open_array_keeps_its_whole_rows_and_names_the_rest() -> None:
    text = SAMPLES["json"]
    found = read(text[: text.rindex("samples_ns")])
    assert [row.workload for row in found.rows] == ["pp512", "pp2048"]
    assert slugs(found) == ["E-damaged-row", "E-incomplete-output"]
    assert [problem.row_lost for problem in found.problems] == [True, False]
    assert re.fullmatch(r"file, line \d+", found.problems[0].where)


@pytest.mark.parametrize(
    ("samples", "slug"),
    [
        ("[ -nan, 5 ]", "E-implausible"),
        ("[ inf ]", "E-implausible"),
        ("[ 0 ]", "E-implausible"),
        ("[ 239.7, 240.1 ]", "E-implausible"),
        ("[ 1e30 ]", "E-implausible"),
        ("[]", "E-incomplete-row"),
        ('"many"', "E-incomplete-row"),
        ("[ true ]", "E-implausible"),
    ],
)
def test_samples_that_are_no_times_are_refused_by_name(samples: str, slug: str) -> None:
    """The fourth are milliseconds."""
    text = SAMPLES["json"].replace("[ 304159388, 222091051, 224251942, 224768256, 223446475 ]", samples)
    text = re.sub(r",\s*\"samples_ts\": \[ 1683[^]]*\]", "", text)
    found = read(text)
    assert [row.workload for row in found.rows] == ["pp2048", "tg64"]
    assert slugs(found) == [slug]
    assert found.problems[0].row_lost


def test_times_and_rates_that_disagree_are_refused() -> None:
    """A row with its times in microseconds."""
    row = ik_row(samples_ns=[value // 1000 for value in ik_row()["samples_ns"]])
    assert slugs(read(json.dumps(row))) == ["E-inconsistent-row"]


def test_printed_deviations_are_never_read() -> None:
    """The integers of the known fault: true deviation 148894758, printed 3722529745."""
    samples = [12140144300, 12308847400, 12225136900, 12154929400, 11909783400]
    row = ik_row(samples_ns=samples, stddev_ns=3722529745, stddev_ts="nan", samples_ts=None)
    assert read(json.dumps(row)).rows[0].samples_ns == tuple(samples)
    text = SAMPLES["csv"].replace('"15416344"', '"18446744073709551615"').replace('"1204.833410"', '"-nan"')
    first = read(text).rows[0].summary
    assert first is not None
    assert (first.mean_tps, first.sd_tps) == (2393.241247, None)


@pytest.mark.parametrize(
    ("mean", "slug"), [("-nan", "E-implausible"), ("inf", "E-implausible"), ("0.00", "E-implausible")]
)
def test_means_that_are_no_speeds_are_refused(mean: str, slug: str) -> None:
    for text in (SAMPLES["csv"].replace("2393.241247", mean), SAMPLES["md"].replace("210.20", mean)):
        found = read(text)
        assert slugs(found) == [slug]
        assert found.problems[0].workload == "pp64"


@pytest.mark.parametrize("mean", ["22_9.056631", "229.05\x1d", "\u0662\u0662\u0669.05", " .16", "1."])
def test_what_only_python_takes_for_a_number_is_none(mean: str) -> None:
    """Damage found by a million mutants: neither tool prints such a number, so it is the rest of another."""
    assert "229.056631" in SAMPLES["ik csv"]
    damaged = read(SAMPLES["ik csv"].replace("229.056631", mean))
    assert [problem.slug for problem in damaged.problems] == ["E-incomplete-row"]
    assert all(row.workload != "tg8" for row in damaged.rows)


@pytest.mark.parametrize("cell", [".16", ".92 ± 0.23", "45. ± 0.23", "\u0664\u0665.92 ± 0.23"])
def test_the_rest_of_a_speed_in_a_table_is_no_speed(cell: str) -> None:
    """The same damage in a table."""
    assert "45.92 ± 0.23" in SAMPLES["md"]
    damaged = read(SAMPLES["md"].replace("45.92 ± 0.23", cell))
    assert "E-unknown-unit" in [problem.slug for problem in damaged.problems]
    assert len(damaged.rows) == len(read(SAMPLES["md"]).rows) - 1


def test_a_csv_whose_two_means_disagree_is_refused() -> None:
    assert slugs(read(SAMPLES["csv"].replace('"30622513"', '"30622"'))) == ["E-inconsistent-row"]


def test_a_table_in_another_unit_is_refused() -> None:
    assert slugs(read(SAMPLES["md"].replace("t/s", "ms/token")))[0] == "E-unknown-unit"
    found = read(SAMPLES["md"].replace("210.20 ± 11.37", "4.76 ms"))
    assert (slugs(found), len(found.rows)) == (["E-unknown-unit"], 7)
    assert "4.76 ms" in found.problems[0].lost


def test_edited_tables_are_read() -> None:
    """Emphasis, mojibake, a plus-minus in ASCII, a mean alone, tok/s."""
    text = SAMPLES["md"].replace("210.20 ± 11.37", "**210.20 +/- 11.37**").replace("44.60 ± 0.59", "44.60 Â± 0.59")
    text = text.replace("249.14 ± 26.45", "249.14").replace("t/s", "tok/s")
    found = [row.summary for row in read(text).rows[:3]]
    assert [(one.mean_tps, one.sd_tps) for one in found if one] == [(210.2, 11.37), (44.6, 0.59), (249.14, None)]


@pytest.mark.parametrize("quote", ["> ", ">", ">> ", "> > "])
def test_a_table_quoted_in_a_mail_is_read(quote: str) -> None:
    """Every line of it, the build's below too."""
    plain = (DATA / "discussion399" / "mainline.md").read_text()
    quoted = "".join(f"{quote}{line}\n" for line in plain.splitlines())
    assert read(quoted) == read(plain)
    assert read(quoted).rows[0].build.number == 5318


def test_a_row_quoted_deeper_than_its_heading_is_of_another_table() -> None:
    """In an answer both stand below each other: whose columns are whose is not guessed."""
    heading, rule, *rows = SAMPLES["md"].splitlines()
    found = read("\n".join([heading, rule, f"> {rows[0]}", rows[1]]))
    assert [row.place for row in found.rows] == ["line 4"]
    assert slugs(found)[0] == "E-no-heading"


def test_patterns_with_bars_do_not_shift_cells() -> None:
    """``llama-bench`` prints ``-ot`` as it is, bars included."""
    text = (DATA / "discussion399" / "mainline.md").read_text().replace("exps=CPU ", r"blk\.(1|2|3)\.ffn=CPU ", 1)
    row = read(text).rows[0]
    assert settings(row)["ot"] == r"blk\.(1|2|3)\.ffn=CPU"
    assert row.workload == "pp512"


def test_a_row_without_heading_is_named() -> None:
    line = SAMPLES["md"].split("\n")[2]
    assert slugs(read(line)) == ["E-no-heading"]


def test_a_build_line_is_of_the_table_above_it() -> None:
    first = (DATA / "discussion399" / "cherrypicked.md").read_text()
    found = read(first + "\n" + (DATA / "discussion399" / "ik_exps.md").read_text())
    assert [row.build.commit for row in found.rows] == [""] * 4 + ["4084ca73"] * 8


def test_quotation_marks_in_sql_are_read_as_each_fork_prints_them() -> None:
    mainline = SAMPLES["sql"].replace("models/q3-48l-q4k.gguf", "models/bob's.gguf", 1)
    assert read(mainline).rows[0].model.file == "bob's.gguf"
    row = ik_row(model_filename="bob's.gguf", samples_ns=None, samples_ts=None)
    assert read(as_ik_sql(row)).rows[0].model.file == "bob's.gguf"


def test_a_dump_of_a_database_is_read() -> None:
    """Columns from the table's definition, bare numbers."""
    text = re.sub(r"INSERT INTO llama_bench \([^)]*\)", "INSERT INTO llama_bench", SAMPLES["sql"])
    text = re.sub(r"'(\d+(?:\.\d+)?)'", r"\1", text)
    assert [row.settings for row in read(text).rows] == [row.settings for row in read(SAMPLES["sql"]).rows]


def test_sql_is_never_run(tmp_path: Path) -> None:
    target = tmp_path / "made"
    text = f"ATTACH DATABASE '{target}' AS x; CREATE TABLE x.t (a);\n{SAMPLES['sql']}"
    assert len(read(text).rows) == 2
    assert not target.exists()


def test_a_spreadsheet_s_csv_is_read() -> None:
    """Saved again without quotation marks."""
    out = io.StringIO()
    csv.writer(out).writerows(csv.reader(SAMPLES["ik csv"].splitlines()))
    text = out.getvalue().replace("\r\n", "\n")
    assert [row.settings for row in read(text).rows] == [row.settings for row in read(SAMPLES["ik csv"]).rows]


def test_two_formats_of_one_run_are_counted_once() -> None:
    found = read(SAMPLES["md"] + SAMPLES["json"])
    assert (found.form, len(found.rows), slugs(found)) == ("json", 3, ["E-two-formats"])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings_of_windows_are_understood(encoding: str) -> None:
    content = SAMPLES["md"].replace("\n", "\r\n").encode(encoding)
    assert read(decoded(content)).rows == read(SAMPLES["md"]).rows


def test_what_is_no_benchmark_is_named() -> None:
    usage = f"{MAINLINE}.badflag.txt"
    for name in (f"{IK}.bad.json", usage, f"{MAINLINE}.oom.stderr.txt", "README.md"):
        found = recorded(name)
        assert found.rows == ()
        assert slugs(found) == ["E-usage-text" if name == usage else "E-nothing-readable"]


OTHERS = {"llama-perplexity": "[1]182376.1,[2]8.2,\nFinal estimate: PPL = 182376.1 +/- nan\n"}


@pytest.mark.parametrize("program", OTHERS)
def test_what_other_programs_print_is_no_row(program: str) -> None:
    """It is refused, and no number is taken for one of llama-bench's."""
    assert slugs(read(OTHERS[program])) == ["E-nothing-readable"]
    beside = read(SAMPLES["json"] + "\n" + OTHERS[program])
    assert len(beside.rows) == 3


# ---- properties ------------------------------------------------------------------------------------------------------


@given(name=st.sampled_from(sorted(SAMPLES)), share=st.floats(0, 1))
def test_a_file_cut_anywhere_gives_whole_rows_only(name: str, share: float) -> None:
    """The rows of a beginning are a beginning of the rows, but for the build line that a cut table lacks."""
    text = SAMPLES[name]
    whole = [(row.workload, row.settings, row.samples_ns, row.summary) for row in read(text).rows]
    cut = [
        (row.workload, row.settings, row.samples_ns, row.summary) for row in read(text[: int(share * len(text))]).rows
    ]
    assert cut == whole[: len(cut)]


@given(
    name=st.sampled_from(sorted(SAMPLES)),
    edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), st.text(max_size=12)), min_size=1, max_size=6),
)
def test_garbage_raises_nothing_and_makes_no_row(name: str, edits: list[tuple[float, int, str]]) -> None:
    """Pieces taken out and put in anywhere: no more rows than there were, and every one a speed."""
    text = SAMPLES[name]
    for share, length, piece in edits:
        at = int(share * len(text))
        text = text[:at] + piece + text[at + length :]
    found = read(text)
    assert len(found.rows) <= len(read(SAMPLES[name]).rows)
    for row in found.rows:
        speeds = [row.tokens / value for value in row.samples_ns] or [row.summary.mean_tps if row.summary else 0]
        assert all(math.isfinite(speed) and speed > 0 for speed in speeds)


@given(st.text())
def test_any_text_is_survived(text: str) -> None:
    assert read(text).rows == ()
