"""Two sides judged: the published tables, the recordings, and what must hold of any."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.domain.build import Fork
from harness.domain.imported import ImportedBuild, ImportedModel, ImportedRow, ImportProblem, Summary
from harness.domain.spread import Spread
from harness.domain.words import Throughput
from harness.engines.imported.reading import decoded, read_output
from harness.judging.comparing import Comparison, Settings, Side, compare_sides

DATA = Path(__file__).parents[1] / "data"
TABLES, RECORDINGS = DATA / "discussion399", DATA / "recordings"
IK, MAINLINE = "ik_llama_cpp-8337e4cd", "llama_cpp-b11434"
AT_3_5 = Settings(process_spread=0.035)


def side(*paths: Path) -> Side:
    found = [read_output(decoded(path.read_bytes()), path.name) for path in paths]
    return Side(
        tuple(row for one in found for row in one.rows), tuple(problem for one in found for problem in one.problems)
    )


def where(given: Side, **wanted: str) -> Side:
    """The rows that say all of these settings."""
    return replace(given, rows=tuple(row for row in given.rows if wanted.items() <= dict(row.settings).items()))


def row(*speeds: float, at: str = "", **changed: object) -> ImportedRow:
    """One process of pp100 with these repetitions, tokens per second."""
    plain = ImportedRow("pp100", 100, samples_ns=tuple(1e11 / speed for speed in speeds), time=at, source="f")
    return replace(plain, **changed)  # type: ignore[arg-type]


def table(mean: float, sd: float | None, **changed: object) -> ImportedRow:
    return row(summary=Summary(mean, sd, 5), **changed)


def only(baseline: Sequence[ImportedRow], candidate: Sequence[ImportedRow], settings: Settings = AT_3_5) -> Comparison:
    (found,) = compare_sides(Side(tuple(baseline)), Side(tuple(candidate)), settings)
    return found


def by_name(found: Sequence[Comparison]) -> dict[str, Comparison]:
    return {f"{one.workload} {one.settings}".strip(): one for one in found}


# ---- golden cases ----------------------------------------------------------------------------------------------------


def test_flash_attention_on_the_cpu_is_a_trap() -> None:
    """14.29 ± 0.05 v 11.80 ± 0.04: the one finding of the published table that stands."""
    given = side(TABLES / "mainline.md")
    found = by_name(compare_sides(where(given, fa="0"), where(given, fa="1"), AT_3_5))
    trap = found["pp512 fa=0:1"]
    assert trap.verdict is Throughput.REGRESSED
    assert trap.why.startswith("-17.4 %")
    assert "contrast: fa differs (0 v 1)" in trap.notes
    assert found["tg128 fa=0:1"].verdict is Throughput.INCONCLUSIVE


def test_forks_of_the_published_table_are_not_told_apart() -> None:
    """+10.0, +10.7 and +10.9 %: inconclusive, the first real within its run, all of them confounded."""
    found = by_name(compare_sides(side(TABLES / "mainline.md"), side(TABLES / "ik_exps.md"), AT_3_5))
    claims = [found[name] for name in ("pp512 fa=0 amb=128", "pp512 fa=0 amb=512", "tg128 fa=0 amb=512")]
    assert [claim.why.split(",")[0] for claim in claims] == ["+10.0 %", "+10.7 %", "+10.9 %"]
    assert {claim.verdict for claim in claims} == {Throughput.INCONCLUSIVE}
    assert ["real within its run" in claim.reason for claim in claims] == [True, False, False]
    for claim in claims:
        assert "confounded: model file differs (IQ4_XS v IQ4_XS_R8)" in claim.notes
        assert any(note.startswith("contrast: build differs (llama.cpp 15e03282") for note in claim.notes)
        assert any("process spread of 3.5 % is assumed" in note for note in claim.notes)
        assert any("repetitions assumed" in note for note in claim.notes)


def test_what_only_one_side_says_of_where_it_computed_stands_in_the_row_itself() -> None:
    """-92 % between a dump that says all and a table that says little: who copies the line copies the doubt."""
    given = side(RECORDINGS / f"{MAINLINE}.short.sql"), side(RECORDINGS / f"{IK}.tables.md")
    (found, *_) = compare_sides(*given, AT_3_5)
    names = "ot, sm, ts, b, ub, t, ctk, ctv, mmap"
    assert found.verdict is Throughput.REGRESSED
    assert found.why.endswith(f"different at 0.01; perhaps confounded: one side only says {names}")
    note = "(where experts computed is not known of the candidate): this may be what differs"
    assert f"perhaps confounded: only the baseline says {names} {note}" in found.notes
    assert found.said_once[:9] == tuple(names.split(", "))


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ((("rtr", "0"),), ()),
        ((("ncmoe", "0"), ("amb", "512")), ()),
        ((("rtr", "1"), ("ncmoe", "4")), ("ncmoe", "rtr")),
    ],
)
def test_what_a_build_without_the_setting_does_too_is_no_doubt(
    said: tuple[tuple[str, str], ...], names: tuple[str, ...]
) -> None:
    """Each fork has settings that the other does not know: unused they change nothing."""
    found = only([row(100, settings=(("fa", "1"),))], [row(50, settings=(("fa", "1"), *said))])
    doubt = found.why.partition("; perhaps confounded: one side only says ")[2]
    assert doubt == ", ".join(names)


def test_a_type_that_one_side_keeps_to_itself_is_a_doubt() -> None:
    """A table of another program tells no quantization."""
    typed = replace(row(50).model, quant="Q4_K")
    assert only([row(100)], [row(50, model=typed)]).why.endswith("one side only says type of the model")


def test_ffn_instead_of_exps_is_not_shown_to_be_worse() -> None:
    """Tg 2.86 -> 2.55 at amb 128; nothing in the tables tells the two commands apart."""
    found = by_name(compare_sides(side(TABLES / "ik_exps.md"), side(TABLES / "ik_ffn.md"), AT_3_5))
    claim = found["tg128 amb=128 fa=0"]
    assert claim.why.startswith("-10.8 %")
    assert claim.verdict is Throughput.INCONCLUSIVE
    assert "nothing that the rows say differs: only their position is the contrast" in claim.notes
    assert {one.verdict for one in found.values()} == {Throughput.INCONCLUSIVE}


def test_run_time_repacking_costs_prompt_processing_and_nothing_is_claimed_of_generation() -> None:
    baseline, candidate = (side(RECORDINGS / f"{IK}.{name}.json") for name in ("q4k_hybrid", "q4k_hyb_rtr"))
    found = by_name(compare_sides(baseline, candidate, AT_3_5))
    assert {name: one.verdict for name, one in found.items()} == {
        "pp512 rtr=0:1": Throughput.REGRESSED,
        "pp2048 rtr=0:1": Throughput.REGRESSED,
        "tg64 rtr=0:1": Throughput.INCONCLUSIVE,
    }
    assert found["pp512 rtr=0:1"].ratio is not None
    assert found["pp512 rtr=0:1"].ratio.value == pytest.approx(409 / 2287, rel=0.01)


def test_alternating_rounds_are_pairs() -> None:
    """Six rounds of llama.cpp and ik_llama.cpp, a file each: both workloads slower, the first process a burn-in."""
    baseline, candidate = (
        side(*(RECORDINGS / f"{producer}.full_{index}.json" for index in range(1, 7))) for producer in (MAINLINE, IK)
    )
    for one in compare_sides(baseline, candidate, AT_3_5):
        assert one.verdict is Throughput.REGRESSED
        assert one.ratio is not None
        assert one.ratio.n == 6
        assert "6 pairs that alternate by their times" in one.reason
        assert "the first process of the candidate is unlike the others" in one.reason
        assert "assumed" not in one.reason


# ---- figures ---------------------------------------------------------------------------------------------------------


def test_the_interval_is_that_of_the_components_put_together() -> None:
    """By hand: 2 x 0.035^2 for the processes and (s/m)^2/5 for the repetitions of each."""
    found = only([table(10, 0.5)], [table(11, 0.0)])
    assert found.ratio is not None
    variance = 2 * 0.035**2 + 0.05**2 / 5
    df = variance**2 / ((0.05**2 / 5) ** 2 / 4)
    assert df > 100
    half = math.log(found.ratio.high / found.ratio.value)
    assert half == pytest.approx(2.58 * math.sqrt(variance), rel=0.02)


def test_the_first_repetition_counts_only_where_a_process_has_few() -> None:
    """Three samples and more: the first is dropped, on both sides or on none."""
    assert only([row(50, 100, 100)], [row(90, 100, 100)]).baseline == pytest.approx(100)
    few = only([row(100, 100)], [row(50, 100, 100)])
    assert few.baseline == pytest.approx(100)
    assert "the first repetition is kept" in few.reason


def test_a_table_makes_means_of_both_sides() -> None:
    """A median without the first repetition is no fit for a mean with it."""
    found = only([table(80, 1.0)], [row(50, 100, 100, 100)])
    assert found.candidate == pytest.approx(87.5)
    assert "means of all repetitions" in found.reason


def test_two_repetitions_that_are_left_share_one_deviation() -> None:
    """By hand: of (100, 101) and (90, 99) one s^2 with two degrees of freedom; alone the second has one."""
    found = only([row(50, 100, 101)], [row(50, 90, 99)])
    assert found.ratio is not None
    pooled = (math.log(101 / 100) ** 2 / 2 + math.log(99 / 90) ** 2 / 2) / 2
    by_repetitions = 9.925 * math.sqrt(2 * pooled / 2)
    assert math.log(found.ratio.high / found.ratio.value) == pytest.approx(by_repetitions, rel=0.001)
    assert "only 2 repetitions of a process are left: scatter pooled of both sides" in found.reason


def test_a_longer_side_lends_its_deviation_to_a_short_one() -> None:
    """Two and four repetitions: four degrees of freedom, not the one of the short side."""
    found = only([row(50, 100, 110)], [row(50, 95, 96, 97, 98)])
    assert found.ratio is not None
    assert math.log(found.ratio.high / found.ratio.value) < 0.3


def test_a_short_process_beside_many_short_ones_has_all_their_degrees_of_freedom() -> None:
    """One process of two repetitions against four: their five deviations are five degrees of freedom."""
    theirs = [row(50, speed, speed * 1.1) for speed in (95, 96, 97, 98)]
    found = only([row(50, 100, 110)], theirs)
    assert found.ratio is not None
    assert math.log(found.ratio.high / found.ratio.value) < 0.3


def test_processes_of_five_repetitions_are_judged_each_by_its_own() -> None:
    assert "pooled" not in only([row(50, 100, 101, 99, 100)], [row(50, 90, 91, 92, 89)]).reason


def test_one_sample_is_judged_by_what_is_assumed() -> None:
    assert only([row(100)], [row(103)]).verdict is Throughput.INCONCLUSIVE
    assert only([row(100)], [row(60)]).verdict is Throughput.REGRESSED


def test_a_deviation_that_is_no_number_is_assumed_too() -> None:
    known, unknown = only([table(100, 0.0)], [table(90, 0.0)]), only([table(100, None)], [table(90, None)])
    assert known.ratio is not None
    assert unknown.ratio is not None
    assert unknown.ratio.low < known.ratio.low


def test_identical_samples_are_no_certainty() -> None:
    """Repetitions that do not scatter say nothing of the next process."""
    assert only([row(100, 100, 100)], [row(103, 103, 103)]).verdict is Throughput.INCONCLUSIVE


@pytest.mark.parametrize("times", [[""] * 3, [f"2026-11-30T10:0{minute}:00Z" for minute in range(3)]])
def test_identical_processes_are_no_certainty(times: list[str]) -> None:
    """Coarse figures are equal by chance: no machine repeats itself better than to a thousandth."""
    ratio = only([row(100, at=at) for at in times], [row(100.1, at=at) for at in times], Settings(margin=1e-4)).ratio
    assert ratio is not None
    assert ratio.low < 1 < ratio.high


def test_three_processes_are_judged_by_their_own_scatter() -> None:
    ours, theirs = [row(100), row(100.5), row(99.5)], [row(90), row(90.4), row(89.6)]
    found = only(ours, theirs)
    assert found.verdict is Throughput.REGRESSED
    assert "independent samples" in found.reason
    assert "assumed" not in found.reason


def test_two_processes_that_lie_apart_outweigh_the_assumption() -> None:
    widths = []
    for pair in ((100, 100), (98, 102), (80, 120)):
        ratio = only([row(one) for one in pair], [row(100)]).ratio
        assert ratio is not None
        widths.append(ratio.high / ratio.low)
    assert widths[0] == pytest.approx(widths[1])
    assert widths[2] > 1.2 * widths[1]


def test_turns_are_told_by_times_and_not_by_order() -> None:
    """As many files on both sides are no pairs if one side was measured after the other."""
    times = [f"2026-11-30T10:0{minute}:00Z" for minute in range(8)]
    drifting = [100.0, 101.0, 102.1, 103.0]
    ours = [row(speed, at=at) for speed, at in zip(drifting, times[::2], strict=True)]
    theirs = [row(speed * 0.97, at=at) for speed, at in zip(drifting, times[1::2], strict=True)]
    assert "4 pairs" in only(ours, theirs).reason
    later = [replace(one, time=f"2026-11-30T11:0{index}:00Z") for index, one in enumerate(theirs)]
    assert "independent samples" in only(ours, later).reason
    assert "independent samples" in only(ours, [replace(one, time="noon") for one in theirs]).reason


def test_a_known_spread_takes_the_place_of_the_assumption() -> None:
    known = Settings(known=(Spread("pp100", 0.003, 9, "calibration of 2026-11-30"),))
    found = only([row(100, 100, 100)], [row(97, 97, 97)], replace(known, margin=0.01))
    assert found.verdict is Throughput.REGRESSED
    assert "process spread of 0.3 % is assumed (calibration of 2026-11-30)" in found.reason


def test_a_missing_process_is_told_as_missing() -> None:
    times = [f"2026-11-30T10:0{minute}:00Z" for minute in range(8)]
    ours = [row(speed, at=at) for speed, at in zip((100, 101, 102, 103), times[::2], strict=True)]
    theirs = [row(speed, at=at) for speed, at in zip((97, 98, 99), times[1:7:2], strict=True)]
    told = only(ours, theirs).reason
    assert "4 and 3 processes, 1 missing in the candidate, so not paired: independent samples" in told
    assert "do not alternate" not in told
    assert "3 and 4 processes, 1 missing in the baseline" in only(theirs, ours).reason


def test_alike_within_the_margin_is_equivalent() -> None:
    found = only([row(100), row(101), row(99)], [row(100.5), row(99.5), row(101)])
    assert found.verdict is Throughput.EQUIVALENT


# ---- who meets whom --------------------------------------------------------------------------------------------------


def setting(**said: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(said.items()))


def test_rows_meet_where_their_axes_agree() -> None:
    ours = [row(100, settings=setting(fa=fa, ub="512")) for fa in ("0", "1")]
    theirs = [row(100, settings=setting(fa=fa, ub="1024")) for fa in ("1", "0")]
    found = compare_sides(Side(tuple(ours)), Side(tuple(theirs)), AT_3_5)
    assert [one.settings for one in found] == ["fa=0 ub=512:1024", "fa=1 ub=512:1024"]
    assert all("contrast: ub differs (512 v 1024)" in one.notes for one in found)


@pytest.mark.parametrize("field", ["devices", "no_op_offload", "no_host", "repack", "lazy_mode", "what_comes_next"])
def test_rows_that_differ_in_any_field_are_not_put_together(tmp_path: Path, field: str) -> None:
    """Also in fields that llama.cpp's own script does not look at, and in such as nobody knows yet."""
    recorded = json.loads((RECORDINGS / f"{MAINLINE}.full_2.json").read_text())[0]
    for name, factor in (("a", 1), ("b", 2)):
        rows = [
            {**recorded, field: value, "samples_ns": [time * factor * (1 + value) for time in recorded["samples_ns"]]}
            for value in (0, 1)
        ]
        for row_ in rows:
            del row_["samples_ts"]
        (tmp_path / f"{name}.json").write_text(json.dumps(rows))
    found = compare_sides(side(tmp_path / "a.json"), side(tmp_path / "b.json"), AT_3_5)
    assert [round(one.ratio.value, 3) for one in found if one.ratio] == [0.5, 0.5]
    assert len({one.settings for one in found}) == 2


def test_a_flag_that_one_side_alone_varies_leaves_rows_alone() -> None:
    ours = [row(100, settings=setting(fa=fa)) for fa in ("0", "1")]
    found = compare_sides(Side(tuple(ours)), Side((row(100, settings=setting(fa="1")),)), AT_3_5)
    assert [one.verdict for one in found] == [Throughput.INCONCLUSIVE, Throughput.NOT_COMPARABLE]
    assert found[1].why.startswith("the candidate has no row with fa=0")
    assert (found[1].baseline, found[1].candidate) == (pytest.approx(100), None)


def test_rows_without_a_partner_show_what_tells_them_apart() -> None:
    ours = [row(100, workload=load, settings=setting(fa=fa)) for load in ("pp100", "tg32") for fa in ("0", "1")]
    theirs = [row(100, settings=setting(fa=fa)) for fa in ("0", "1")]
    found = compare_sides(Side(tuple(ours)), Side(tuple(theirs)), AT_3_5)
    alone = [one for one in found if one.verdict is Throughput.NOT_COMPARABLE]
    assert [(one.workload, one.settings) for one in alone] == [("tg32", "fa=0"), ("tg32", "fa=1")]


def test_a_declared_factor_that_does_not_differ_is_not_shown_as_if() -> None:
    said = setting(fa="1")
    found = only([row(100, settings=said)], [row(90, settings=said)], Settings(factor="fa"))
    assert "1:1" not in found.settings


def test_what_a_build_was_left_to_choose_is_no_certain_difference() -> None:
    forks = (Fork.LLAMA_CPP, "auto"), (Fork.IK_LLAMA_CPP, "1")
    ours, theirs = (row(100, build=ImportedBuild(fork), settings=setting(mmap=mmap)) for fork, mmap in forks)
    told = only([ours], [theirs])
    assert "perhaps confounded: mmap differs (auto v 1); auto leaves the choice to the build" in told.notes
    declared = only([ours], [theirs], Settings(factor="mmap"))
    assert "contrast: mmap differs (auto v 1)" in declared.notes


def test_several_differences_without_a_build_are_all_confounded() -> None:
    found = only([row(100, settings=setting(fa="0", ub="512"))], [row(90, settings=setting(fa="1", ub="1024"))])
    assert "confounded: fa differs (0 v 1), ub differs (512 v 1024), all at once" in found.notes
    declared = only(
        [row(100, settings=setting(fa="0", ub="512"))],
        [row(90, settings=setting(fa="1", ub="1024"))],
        Settings(factor="ub"),
    )
    assert {"contrast: ub differs (512 v 1024)", "confounded: fa differs (0 v 1)"} <= set(declared.notes)


def test_builds_in_one_file_meet_their_like() -> None:
    """Two forks a side: forks meet forks, whatever their commits; two commits of a fork meet commits."""

    def built(fork: Fork, commit: str) -> ImportedRow:
        return row(100, build=ImportedBuild(fork, commit))

    ours = [built(Fork.LLAMA_CPP, "aaaaaaa"), built(Fork.IK_LLAMA_CPP, "bbbbbbb")]
    theirs = [built(Fork.IK_LLAMA_CPP, "ddddddd"), built(Fork.LLAMA_CPP, "ccccccc")]
    found = compare_sides(Side(tuple(ours)), Side(tuple(theirs)), AT_3_5)
    assert [note for one in found for note in one.notes if note.startswith("contrast")] == [
        "contrast: build differs (llama.cpp aaaaaaa v llama.cpp ccccccc)",
        "contrast: build differs (ik_llama.cpp bbbbbbb v ik_llama.cpp ddddddd)",
    ]
    commits = [built(Fork.LLAMA_CPP, commit) for commit in ("aaaaaaa", "bbbbbbb")]
    found = compare_sides(Side(tuple(commits)), Side(tuple(commits[::-1])), AT_3_5)
    assert len(found) == 2
    assert all("nothing that the rows say differs" in one.reason for one in found)


def test_commits_shortened_to_unlike_lengths_are_one_build() -> None:
    ours, theirs = (row(100, build=ImportedBuild(Fork.LLAMA_CPP, commit)) for commit in ("4084ca73", "4084ca733"))
    assert "nothing that the rows say differs" in only([ours], [theirs]).reason


def test_unequal_workloads_are_named_and_the_rest_judged() -> None:
    ours, theirs = [row(100), row(100, workload="tg32")], [row(100), row(100, workload="tg64")]
    found = {one.workload: one for one in compare_sides(Side(tuple(ours)), Side(tuple(theirs)), AT_3_5)}
    assert found["pp100"].ratio is not None
    assert found["tg32"].why == "the candidate has no tg32, it has pp100, tg64 (f)"
    assert found["tg64"].verdict is Throughput.NOT_COMPARABLE


def test_rows_of_another_model_are_refused_and_the_rest_judged() -> None:
    qwen, llama = (
        ImportedModel("q.gguf", "qwen3moe", "Q4_0", 0, 30.5e9),
        ImportedModel("l.gguf", "llama", "Q4_0", 0, 8e9),
    )
    found = compare_sides(Side((row(100, model=qwen),)), Side((row(100, model=qwen), row(99, model=llama))), AT_3_5)
    assert [one.verdict for one in found] == [Throughput.INCONCLUSIVE, Throughput.NOT_COMPARABLE]
    assert found[1].why.startswith("another model: llama 8.00 B Q4_0, the baseline has qwen3moe 30.50 B Q4_0")


def test_rounded_sizes_of_tables_are_the_same_model() -> None:
    exact = ImportedModel("", "qwen3moe", "Q4_K - Medium", 17311496192, 30532122624)
    rounded = ImportedModel("", "qwen3moe", "Q4_K - Medium", 16.12 * 2**30, 30.53e9)
    assert "nothing that the rows say differs" in only([row(100, model=exact)], [row(100, model=rounded)]).reason
    other = replace(rounded, size_bytes=15.25 * 2**30)
    assert "model file differs (16.12 v 15.25 GiB)" in only([row(100, model=exact)], [row(100, model=other)]).reason


def test_another_machine_is_no_comparable_baseline() -> None:
    ours, theirs = (row(100, machine=(("gpu", gpu),)) for gpu in ("RTX 4080", "H200"))
    found = only([ours], [theirs])
    assert found.verdict is Throughput.NOT_COMPARABLE
    assert found.why == "no comparable baseline: another machine, gpu differs (RTX 4080 v H200)"
    assert only([ours], [theirs], Settings(factor="machine")).ratio is not None


def test_rows_that_were_lost_are_in_the_list() -> None:
    lost = ImportProblem("E-implausible", "b.json, row 2", "tg32: 0 ns is no duration", "tg32")
    beside = ImportProblem("E-no-build-line", "b.json", "no build", row_lost=False)
    found = compare_sides(Side((row(100),)), Side((row(100),), (lost, beside)), AT_3_5)
    assert [(one.workload, one.verdict) for one in found[1:]] == [("tg32", Throughput.NOT_COMPARABLE)]
    assert found[1].why == "E-implausible: b.json, row 2: tg32: 0 ns is no duration"


def test_ids_have_the_alphabet_of_case_ids() -> None:
    found = compare_sides(side(TABLES / "mainline.md"), side(TABLES / "ik_exps.md"), AT_3_5)
    assert len({one.case for one in found}) == len(found)
    for one in found:
        kind, model, arms, load = one.case.split("/")
        assert kind == "throughput"
        assert load == f"{one.workload}@imported"
        assert set(model + arms) <= set("abcdefghijklmnopqrstuvwxyz0123456789._=+-")


# ---- properties ------------------------------------------------------------------------------------------------------

_SPEEDS = st.floats(1, 1e4)
_SIDES = st.lists(st.lists(_SPEEDS, min_size=1, max_size=4), min_size=1, max_size=5)
_SWAPPED = {Throughput.REGRESSED: Throughput.IMPROVED, Throughput.IMPROVED: Throughput.REGRESSED}


def processes(speeds: Sequence[Sequence[float]], factor: float = 1.0) -> list[ImportedRow]:
    return [row(*(speed * factor for speed in repetitions)) for repetitions in speeds]


@given(ours=_SIDES, theirs=_SIDES)
def test_swapping_the_sides_inverts_the_verdict(ours: list[list[float]], theirs: list[list[float]]) -> None:
    one, other = only(processes(ours), processes(theirs)), only(processes(theirs), processes(ours))
    assert other.verdict is _SWAPPED.get(one.verdict, one.verdict)
    assert one.ratio is not None
    assert other.ratio is not None
    assert other.ratio.value == pytest.approx(1 / one.ratio.value)
    assert other.ratio.low == pytest.approx(1 / one.ratio.high)


@given(ours=_SIDES, theirs=_SIDES, factor=st.floats(0.01, 50))
def test_the_unit_of_speed_does_not_matter(ours: list[list[float]], theirs: list[list[float]], factor: float) -> None:
    one, other = only(processes(ours), processes(theirs)), only(processes(ours, factor), processes(theirs, factor))
    assert one.ratio is not None
    assert other.ratio is not None
    assert one.ratio.p is not None
    assume(abs(one.ratio.p - 0.01) > 1e-6)
    assert other.ratio.value == pytest.approx(one.ratio.value)
    assert other.ratio.p == pytest.approx(one.ratio.p, rel=1e-3, abs=1e-9)


@given(base=_SPEEDS, jitter=st.lists(st.floats(-0.005, 0.005), min_size=6, max_size=12), slower=st.booleans())
def test_fully_separated_samples_are_different(base: float, jitter: list[float], slower: bool) -> None:
    half = len(jitter) // 2
    ours = [row(base * (1 + one)) for one in jitter[:half]]
    theirs = [row(base * (0.5 if slower else 2) * (1 + one)) for one in jitter[half:]]
    assert only(ours, theirs).verdict is (Throughput.REGRESSED if slower else Throughput.IMPROVED)


@given(spread=st.floats(0.005, 0.1), wider=st.floats(1, 5), ratio=st.floats(0.5, 2))
def test_a_wider_assumed_spread_never_makes_a_difference_more_certain(
    spread: float, wider: float, ratio: float
) -> None:
    narrow, wide = (
        only([row(100, 101, 99)], [row(100 * ratio, 101 * ratio, 99 * ratio)], Settings(process_spread=sd))
        for sd in (spread, spread * wider)
    )
    assert narrow.ratio is not None
    assert wide.ratio is not None
    assert narrow.ratio.p is not None
    assert wide.ratio.p is not None
    assert wide.ratio.p >= narrow.ratio.p - 1e-12
