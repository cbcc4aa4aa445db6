"""What ``llama-sweep-bench`` and ``llama-batched-bench`` print: recorded, cut, damaged, and beside other rows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.build import Fork
from harness.domain.imported import Imported, ImportedRow
from harness.engines.imported.reading import read_output
from harness.judging.comparing import Settings, Side, compare_sides

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
IK, MAINLINE = "ik_llama_cpp-8337e4cd", "llama_cpp-0c1e570"
NAMES = {
    "sweep": f"{IK}.sweep.stderr.txt",
    "sweep jsonl": f"{IK}.sweep.jsonl",
    "memory": f"{IK}.sweep_memory.stderr.txt",
    "failed sweep": f"{IK}.sweep_failed.stderr.txt",
    "ik batched": f"{IK}.batched.txt",
    "batched": f"{MAINLINE}.batched.txt",
    "shared jsonl": f"{MAINLINE}.batched_shared.jsonl",
    "failed batched": f"{MAINLINE}.batched_failed.txt",
    "no tg": f"{MAINLINE}.batched_no_tg.txt",
}
SAMPLES = {name: (RECORDINGS / file).read_text() for name, file in NAMES.items()}
BENCH = (RECORDINGS / f"{IK}.q4k_hybrid.json").read_text()
TABLE = """main: n_kv_max = 8192, n_batch = 2048, n_ubatch = 512, flash_attn = 1, n_gpu_layers = 99, n_threads = 8

|    PP |     TG |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |
|-------|--------|--------|----------|----------|----------|----------|
|   512 |    128 |      0 |    0.300 |  1706.67 |    1.300 |    98.46 |
"""


def read(text: str) -> Imported:
    return read_output(text, "file")


def slugs(found: Imported) -> list[str]:
    return [problem.slug for problem in found.problems]


def ms(row: ImportedRow) -> list[float]:
    return [round(value / 1e6, 1) for value in row.samples_ns]


def test_a_sweep_is_a_prompt_and_a_generation_at_each_depth() -> None:
    """With batches and threads of the line above it, and the model of the log of loading."""
    found = read(SAMPLES["sweep"])
    assert (found.form, found.problems) == ("sweep", ())
    loads = [
        f"sweep.{kind}" + (f".d{depth}" if depth else "") for depth in range(0, 1024, 128) for kind in ("pp128", "tg16")
    ]
    assert [row.workload for row in found.rows] == loads
    first, second = found.rows[:2]
    assert (first.tokens, ms(first), second.tokens, ms(second)) == (128, [473.9], 16, [2375.0])
    settings = {"b": "256", "ub": "128", "fa": "0", "ngl": "-1", "t": "2", "n_threads_batch": "2", "n_kv_max": "1024"}
    assert dict(first.settings) == settings
    assert (first.model.architecture, first.model.quant, first.model.n_params) == ("qwen3moe", "IQ4_XS", 40423000.0)
    assert first.program == "llama-sweep-bench"
    assert first.build.fork is None, "people print such tables with a branch of llama.cpp, too"


def test_lines_of_json_say_the_same_and_every_second_row_is_no_gap() -> None:
    """``--sweep-stride 2``."""
    found = read(SAMPLES["sweep jsonl"])
    assert (found.form, found.problems) == ("sweep", ())
    assert [row.workload for row in found.rows[2:4]] == ["sweep.pp128.d256", "sweep.tg16.d256"]
    assert ms(found.rows[2]) == [1595.1]
    assert dict(found.rows[0].settings) == dict(read(SAMPLES["sweep"]).rows[0].settings)


def test_columns_of_memory_are_ik_s_and_no_speeds() -> None:
    found = read(SAMPLES["memory"])
    assert (len(found.rows), found.problems) == (8, ())
    assert {row.build.fork for row in found.rows} == {Fork.IK_LLAMA_CPP}
    assert not any("rss" in name or "vram" in name for row in found.rows for name, _ in row.settings)
    measured = SAMPLES["memory"].replace("n/a", "1234.5").replace("66.7", "n/a")
    assert [row.samples_ns for row in read(measured).rows] == [row.samples_ns for row in found.rows]


def test_sequences_side_by_side_are_workloads_of_their_own() -> None:
    """Of one prompt for all only its own tokens count; what is timed twice in a process are its repetitions."""
    found = read(SAMPLES["batched"])
    assert (found.form, found.problems) == ("batched", ())
    rows = {row.workload: row for row in found.rows}
    assert list(rows)[:6] == [
        *("batched.pp128", "batched.tg16.d128", "batched.pp128.x2", "batched.tg16.d128.x2"),
        *("batched.pp128.x4", "batched.tg16.d128.x4"),
    ]
    assert (rows["batched.pp128.x4"].tokens, ms(rows["batched.pp128.x4"])) == (512, [37.6, 38.7])
    assert rows["batched.tg32.d256.x4"].tokens == 128
    assert {row.build.fork for row in found.rows} == {Fork.LLAMA_CPP}
    shared = {row.workload: row.tokens for row in read(SAMPLES["shared jsonl"]).rows}
    assert (shared["batched.pp128.shared.x4"], shared["batched.tg16.d128.shared.x4"]) == (128, 64)


def test_whose_prompt_it_is_shows_where_no_line_says_it() -> None:
    """People publish the table alone: the rate counts the tokens."""
    for name in ("batched", "failed batched"):
        whole, alone = read(SAMPLES[name]), read(SAMPLES[name][SAMPLES[name].index("|") :])
        assert [(row.workload, row.tokens, row.samples_ns) for row in alone.rows] == [
            (row.workload, row.tokens, row.samples_ns) for row in whole.rows
        ]


def test_what_was_not_generated_is_no_row() -> None:
    """``-ntg 0`` prints a speed of -nan."""
    found = read(SAMPLES["no tg"])
    assert ([row.workload for row in found.rows], found.problems) == (["batched.pp128"], ())


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("failed sweep", ["the sweep ends behind n_kv = 384 of a context of 1024", "the program ended early"]),
        ("failed batched", ["the program ended early"]),
    ],
)
def test_a_program_that_ended_early_is_told(name: str, told: list[str]) -> None:
    found = read(SAMPLES[name])
    assert len(found.rows) == 4
    assert slugs(found) == ["E-incomplete-output"] * len(told)
    assert all(words in problem.lost for words, problem in zip(told, found.problems, strict=True))


def test_what_does_not_fit_the_context_was_not_run_and_is_not_lost() -> None:
    """ik_llama.cpp says it of each, llama.cpp leaves it out without a word."""
    found = read(SAMPLES["ik batched"])
    assert (slugs(found), len(found.rows)) == (["E-not-run"] * 2, 12)
    assert "does not fit a context of 1024: PP 64 TG 8 B 16" in found.problems[0].lost
    silent = re.sub(r"n_kv_max = 2048", "n_kv_max = 300", SAMPLES["batched"])
    silent = "\n".join(line for line in silent.split("\n") if not re.match(r"\|   256 \|     32 \|    [24] ", line))
    assert slugs(read(silent)) == ["E-not-run"]
    assert slugs(read(silent.replace("n_kv_max = 300", "n_kv_max = 2048"))) == ["E-incomplete-output"]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (slice(2, 3), "the sweep lacks n_kv = 256"),
        (slice(0, 1), "the sweep lacks n_kv = 0"),
        (slice(7, 8), "the sweep ends behind n_kv = 768 of a context of 1024"),
    ],
)
def test_rows_that_are_not_there_are_named(lines: slice, told: str) -> None:
    """In the middle, before, and behind."""
    rows = [line for line in SAMPLES["sweep"].split("\n") if line.startswith("|   128")]
    text = SAMPLES["sweep"]
    for line in rows[lines]:
        text = text.replace(f"{line}\n", "")
    found = read(text)
    assert (len(found.rows), slugs(found)) == (14, ["E-incomplete-output"])
    assert found.problems[0].lost.startswith(told)


@pytest.mark.parametrize(
    ("old", "new", "slug"),
    [
        ("1706.67", "nan", "E-implausible"),
        ("1706.67", "inf", "E-implausible"),
        ("0.300 |  1706.67", "0.000 |     0.00", "E-implausible"),
        ("0.300 |  1706.67", "0.000 | 1e300", "E-implausible"),
        ("1706.67", "1760.67", "E-inconsistent-row"),
        ("0.300", "300.0", "E-inconsistent-row"),
        ("1706.67", " .67", "E-incomplete-row"),
        ("1706.67", "17_06.67", "E-incomplete-row"),
        ("   512 |    128", "   51x |    128", "E-unreadable-workload"),
        ("|      0 |", "|     -1 |", "E-unreadable-workload"),
        ("98.46 |\n", "98.46\n", "E-damaged-row"),
        ("|      0 |", "|", "E-damaged-row"),
    ],
)
def test_a_row_that_is_no_measurement_is_refused_by_name(old: str, new: str, slug: str) -> None:
    assert old in TABLE
    found = read(TABLE.replace(old, new))
    assert slugs(found)[0] == slug
    assert not any(row.workload == "sweep.pp512" for row in found.rows)


def test_each_half_of_a_row_stands_for_itself() -> None:
    """A generation that is none leaves the prompt."""
    found = read(TABLE.replace("98.46", "-nan"))
    assert [row.workload for row in found.rows] == ["sweep.pp512"]
    assert (found.problems[0].slug, found.problems[0].workload) == ("E-implausible", "sweep.tg128")


def test_a_batched_row_must_add_up() -> None:
    """Seconds, tokens in the cache, and the rate of both."""
    line = "|   128 |     16 |    4 |    576 |    0.038 | 13620.64 |    0.025 |  2549.50 |    0.063 |  9187.63 |"
    for old, new in (("   576 ", "   577 "), ("0.063", "0.163"), (" 9187.63", "91876.30")):
        assert "E-inconsistent-row" in slugs(read(SAMPLES["batched"].replace(line, line.replace(old, new))))


def test_a_broken_line_of_json_is_named_and_the_rest_stands() -> None:
    lines = SAMPLES["sweep jsonl"].split("\n")
    for broken in (lines[1][:120], lines[1].replace('"t_tg"', '"t_xx"')):
        found = read("\n".join([lines[0], broken, *lines[2:]]))
        assert (slugs(found), len(found.rows)) == (["E-damaged-row", "E-incomplete-output"], 6)
    noisy = "\n".join(f"ggml_log: x{line}" if index == 1 else f"{line}\nlog" for index, line in enumerate(lines))
    assert len(read(noisy).rows) == 8


@pytest.mark.parametrize("value", ["[1]", '{"a": 1}', "null", "true", '"x"', "1e999"])
def test_settings_of_any_kind_are_survived(value: str) -> None:
    """JSON holds anything; the speeds stand."""
    for old in ('"n_batch": 256', '"n_kv_max": 1024', '"flash_attn": 0'):
        found = read(SAMPLES["sweep jsonl"].replace(old, f"{old.partition(':')[0]}: {value}"))
        assert len(found.rows) == 8


def test_a_sweep_that_begins_again_is_another_process() -> None:
    """Two processes in one file, and not one that was measured twice; that nothing tells them apart is said."""
    rows = "".join(f"{line}\n" for line in SAMPLES["sweep"].split("\n") if line.startswith("|   128"))
    again = [(name, SAMPLES[name]) for name in ("sweep", "sweep jsonl", "memory")]
    for name, more in [*again, ("sweep", rows)]:
        twice = read(SAMPLES[name] + more)
        assert slugs(twice) == ["E-alike-tables"]
        assert "2 runs of llama-sweep-bench say the same" in twice.problems[0].lost
        assert len(twice.rows) == 2 * len(read(SAMPLES[name]).rows)
        assert all(len(row.samples_ns) == 1 for row in twice.rows)


def test_rows_of_llama_bench_beside_them_are_other_rows() -> None:
    """Whichever stands first, and where the table of llama-bench lacks its last line."""
    sweep = SAMPLES["sweep"]
    for text in (BENCH + sweep, sweep + BENCH):
        found = read(text)
        assert (found.form, len(found.rows), found.problems) == ("json,sweep", 3 + 16, ())
    table = (RECORDINGS / f"{IK}.tables.md").read_text()
    table = table[: table.index("\nbuild:")]
    found = read(table + "\n" + sweep)
    assert len(found.rows) == len(read(table).rows) + 16
    assert slugs(found) == slugs(read(table)) == ["E-no-build-line"]


def test_rows_whose_heading_is_gone_are_named() -> None:
    rows = "\n".join(TABLE.split("\n")[4:])
    assert slugs(read(rows)) == ["E-no-heading"]
    assert read(rows).rows == ()


def test_the_build_is_read_where_a_log_says_it() -> None:
    said = "build: 6123 (79c1160b) with cc (Debian 12.2.0-14) 12.2.0 for x86_64-linux-gnu\n"
    row = read(said + TABLE).rows[0]
    assert (row.build.number, row.build.commit) == (6123, "79c1160b")


def test_gaps_of_a_damaged_file_are_counted_and_not_gone_through() -> None:
    """A step of one token up to two billion, and lists of a thousand sizes each."""
    row = "|   512 |    128 | {0:6d} |    0.300 |  1706.67 |    1.300 |    98.46 |\n"
    found = read(TABLE + row.format(1) + row.format(2**31))
    assert found.problems[0].lost == "the sweep lacks n_kv = 2, 3, 4, 5, 6 and 2147483641 more"
    lines = [
        json.dumps(
            {
                "n_kv_max": 10**6,
                "pp": size,
                "tg": size,
                "pl": size,
                "n_kv": 2 * size * size,
                "t_pp": 1.0,
                "speed_pp": size * size * 1.0,
                "t_tg": 1.0,
                "speed_tg": size * size * 1.0,
                "t": 2.0,
                "speed": size * size * 1.0,
            }
        )
        for size in range(1, 101)
    ]
    assert read("\n".join(lines)).problems[-1].lost == "999900 of 1000000 combinations are missing"


# ---- compared --------------------------------------------------------------------------------------------------------


def compared(ours: str, theirs: str) -> dict[str, tuple[str, str]]:
    sides = (Side(read(text).rows, read(text).problems) for text in (ours, theirs))
    return {one.workload: (str(one.verdict), one.reason) for one in compare_sides(*sides, Settings())}


def test_two_sweeps_are_compared_depth_by_depth() -> None:
    """A change that is larger than processes scatter is found; the assumption is told."""
    faster = SAMPLES["sweep"].replace(
        "|   128 |     16 |    640 |    1.051 |   121.77 ", "|   128 |     16 |    640 |    0.210 |   608.85 "
    )
    found = compared(SAMPLES["sweep"], faster)
    assert len(found) == 16
    assert found["sweep.pp128.d640"][0] == "improved"
    assert "a process spread of 3.5 % is assumed" in found["sweep.pp128.d640"][1]
    assert found["sweep.pp128.d512"][0] in ("equivalent", "inconclusive")


def test_what_other_programs_timed_is_no_contrast() -> None:
    """Not even where both say pp512."""
    found = compared(TABLE, BENCH)
    assert {verdict for verdict, _ in found.values()} == {"not_comparable"}
    assert found["sweep.pp512"][1].startswith(
        "timed by llama-sweep-bench, the candidate by llama-bench: these time other things, no contrast"
    )
    models = compared(
        SAMPLES["sweep"], SAMPLES["sweep"].replace("arch             = qwen3moe", "arch             = llama")
    )
    assert all(reason.startswith("another model: llama") or "another model" in reason for _, reason in models.values())


# ---- properties ------------------------------------------------------------------------------------------------------


@given(name=st.sampled_from(sorted(SAMPLES)), share=st.floats(0, 1))
def test_a_file_cut_anywhere_gives_rows_of_the_whole_only(name: str, share: float) -> None:
    """Each sample of a beginning is one of the whole file, in order."""
    whole = {row.workload: row.samples_ns for row in read(SAMPLES[name]).rows}
    for row in read(SAMPLES[name][: int(share * len(SAMPLES[name]))]).rows:
        assert row.samples_ns == whole[row.workload][: len(row.samples_ns)]


@given(
    name=st.sampled_from(sorted(SAMPLES)),
    edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), st.text(max_size=12)), min_size=1, max_size=4),
)
def test_garbage_raises_nothing_and_every_row_is_a_speed(name: str, edits: list[tuple[float, int, str]]) -> None:
    text = SAMPLES[name]
    for share, length, piece in edits:
        at = int(share * len(text))
        text = text[:at] + piece + text[at + length :]
    for row in read(text).rows:
        assert row.tokens > 0
        assert all(0 < value < 1e15 for value in row.samples_ns)


@given(
    pp=st.integers(0, 4096),
    tg=st.integers(0, 4096),
    pl=st.integers(1, 64),
    seconds=st.tuples(*[st.floats(0.1, 1e4)] * 2),
    shared=st.booleans(),
)
def test_what_is_printed_is_read_back(pp: int, tg: int, pl: int, seconds: tuple[float, float], shared: bool) -> None:
    """Any counts and times, as both formats round them."""
    prompts, t = pp if shared else pp * pl, sum(seconds)
    fields = {
        "n_kv_max": 10**6,
        "n_batch": 2048,
        "n_ubatch": 512,
        "is_pp_shared": int(shared),
        "pp": pp,
        "tg": tg,
        "pl": pl,
        "n_kv": pl * (pp + tg),
        "t_pp": seconds[0],
        "speed_pp": prompts / seconds[0],
        "t_tg": seconds[1],
        "speed_tg": pl * tg / seconds[1],
        "t": t,
        "speed": (prompts + pl * tg) / t,
    }
    line = json.dumps({name: round(value, 6) if isinstance(value, float) else value for name, value in fields.items()})
    found = read(line)
    if not pp + tg:
        assert found.rows == ()
        return
    assert [row.tokens for row in found.rows] == [count for count in (prompts, pl * tg) if count], found.problems
    kept = [time for time, count in zip(seconds, (pp, tg), strict=True) if count]
    for row, time in zip(found.rows, kept, strict=True):
        assert row.samples_ns[0] == pytest.approx(time * 1e9, rel=0.01)
