"""llama-bench output, recorded and damaged: whole rows are kept, nothing is invented, everything wrong is named."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from engine_support import PP512, PP2048, TG64, ended, order, path_build, recording
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.build import Fork
from harness.domain.failure import FailureKind
from harness.domain.workload import Workload
from harness.engines import bench_scan
from harness.engines.bench import BenchEngine
from harness.engines.bench_scan import scan
from harness.engines.engine import Exit, Order, Report
from harness.engines.parse import OutputFormat, read_bench

IK, MAINLINE = Fork.IK_LLAMA_CPP, Fork.LLAMA_CPP
FULL = {"ngl": 99, "fa": 1, "t": 16}
HYBRID = {**FULL, "ot": "exps=CPU", "fmoe": 1, "rtr": 0, "ub": 512}
TG128 = Workload(0, 128)


def full(fork: Fork, *, flags: dict[str, Any] | None = None, repetitions: int = 5) -> Order:
    """The order that full_1 answers."""
    return order(path_build(fork), [PP512, TG64], flags=flags or FULL, repetitions=repetitions)


def read(asked: Order, exit_: Exit, form: OutputFormat = OutputFormat.JSON) -> Report:
    return read_bench(asked, exit_, asked.workloads, form)


def rows_of(fork: Fork) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(recording(fork, "full_1.json"))
    return rows


def changed(fork: Fork, **fields: Any) -> str:
    """The recorded output with fields of the first row replaced."""
    rows = rows_of(fork)
    rows[0].update(fields)
    return json.dumps(rows)


@pytest.mark.parametrize("fork", list(Fork))
def test_recorded_output_is_read_whole(fork: Fork) -> None:
    report = read(full(fork), ended(recording(fork, "full_1.json")))
    assert report.failure is None
    assert [(row.workload, row.tokens) for row in report.rows] == [("pp512", 512), ("tg64", 64)]
    assert report.rows[0].samples_ns == tuple(rows_of(fork)[0]["samples_ns"])
    assert report.engine["gpu_info"] == "NVIDIA H200"
    assert report.engine["backends"].lower() == "cuda"


def test_recorded_lines_are_read_whole() -> None:
    asked = order(path_build(MAINLINE), [PP512, TG128], flags=FULL, repetitions=60)
    report = read(asked, ended(recording(MAINLINE, "q4k_full.jsonl")), OutputFormat.JSONL)
    assert report.failure is None
    assert [len(row.samples_ns) for row in report.rows] == [60, 60]


@pytest.mark.parametrize(("what", "rtr"), [("q4k_hybrid.json", 0), ("q4k_hyb_rtr.json", 1)])
def test_recorded_hybrid_runs_echo_their_flags(what: str, rtr: int) -> None:
    asked = order(path_build(IK), [PP512, PP2048, TG64], flags={**HYBRID, "rtr": rtr})
    report = read(asked, ended(recording(IK, what)))
    assert report.failure is None
    assert [row.workload for row in report.rows] == ["pp512", "pp2048", "tg64"]


def test_the_rtr_recording_read_as_a_run_without_rtr_is_a_mismatch() -> None:
    """Planted fault: the wrong file under the right name."""
    asked = order(path_build(IK), [PP512, PP2048, TG64], flags=HYBRID)
    report = read(asked, ended(recording(IK, "q4k_hyb_rtr.json")))
    assert report.rows == ()
    assert report.failure is not None
    assert report.failure.kind is FailureKind.ECHO_MISMATCH
    assert "repack: asked rtr=0, echoed True" in report.failure.message


@pytest.mark.parametrize(
    ("fork", "what"), [(IK, "cpu_fa.json"), (MAINLINE, "cpu_fa.json"), (MAINLINE, "q4k_hybrid.json")]
)
def test_two_values_of_a_flag_in_one_output_are_more_rows_than_asked(fork: Fork, what: str) -> None:
    asked = order(path_build(fork), [PP512, Workload(0, 32), PP2048, TG64], flags={"t": 16})
    report = read(asked, ended(recording(fork, what)))
    assert report.failure is not None
    assert "a second row pp512" in report.failure.message


@pytest.mark.parametrize(
    ("fork", "field", "value", "flag"),
    [
        (IK, "fused_moe", False, "fmoe"),
        (IK, "flash_attn", False, "fa"),
        (IK, "use_mmap", False, "mmap"),
        (IK, "ser", "6,0.5", "ser"),
        (IK, "override_tensor", "exps=CPU", "ot"),
        (IK, "tensor_split", "3.00/1.00", "ts"),
        (IK, "n_threads", 8, "t"),
        (IK, "type_k", "q8_0", "ctk"),
        (MAINLINE, "flash_attn", -1, "fa"),
        (MAINLINE, "tensor_buft_overrides", "exps=CPU", "ot"),
        (MAINLINE, "no_op_offload", 1, "nopo"),
        (MAINLINE, "repack", False, "repack"),
        (MAINLINE, "n_ubatch", "many", "ub"),
        (MAINLINE, "n_gpu_layers", None, "ngl"),
        (MAINLINE, "model_filename", "models/other.gguf", "models/q3"),
    ],
)
def test_a_planted_difference_of_any_kind_is_named_with_both_values(
    fork: Fork, field: str, value: object, flag: str
) -> None:
    """Field, what was asked for and what was echoed; the other row stands."""
    flags = {
        **FULL,
        "ot": "none",
        "ts": "none",
        "ctk": "f16",
        "ub": 512,
        **({"fmoe": 1, "mmap": 1, "ser": "-1,0"} if fork is IK else {"nopo": 0, "repack": 1}),
    }
    assert read(full(fork, flags=flags), ended(changed(fork))).failure is None
    report = read(full(fork, flags=flags), ended(changed(fork, **{field: value})))
    assert [row.workload for row in report.rows] == ["tg64"]
    assert report.failure is not None
    assert report.failure.kind is FailureKind.ECHO_MISMATCH
    assert report.failure.slug == "E-echo-mismatch"
    assert f"pp512: {field}: asked" in report.failure.message
    assert flag in report.failure.message
    assert f"echoed {value!r}" in report.failure.message


@pytest.mark.parametrize("layers", [0, 1, 2, 48])
def test_layers_of_ncmoe_are_echoed_as_overrides_by_ik_llama_cpp(layers: int) -> None:
    each = [rf"blk\.{layer}\.(ffn_(up|down|gate)_exps\.weight)=CPU" for layer in range(layers)]
    asked = full(IK, flags={**FULL, "ot": "exps=CPU", "ncmoe": layers})
    rows = [{**row, "override_tensor": ",".join(["exps=CPU", *each])} for row in rows_of(IK)]
    assert read(asked, ended(json.dumps(rows))).failure is None
    more = full(IK, flags={**FULL, "ot": "exps=CPU", "ncmoe": layers + 1})
    assert read(more, ended(json.dumps(rows))).rows == ()


OLDER = {
    "load_mode": ("use_mmap", True, False),
    "flash_attn": ("flash_attn", True, False),
}
"""Fields of llama.cpp today, what they were before, and how those said what the order asks for and the opposite."""


@pytest.mark.parametrize("field", OLDER)
def test_fields_of_older_llama_cpp_are_compared_as_they_were(field: str) -> None:
    """Switches were booleans, and mapping had a field of another name."""
    older, same, other = OLDER[field]
    asked = full(MAINLINE, flags={**FULL, "mmap": 1, "ncmoe": 0})
    gone = (field, "n_cpu_moe")
    newer = ({**row, "load_mode": "mmap"} for row in rows_of(MAINLINE))
    rows = [{name: value for name, value in row.items() if name not in gone} for row in newer]
    report = read(asked, ended(json.dumps([{**row, older: same} for row in rows])))
    assert report.failure is None
    assert report.engine["not_echoed"] == "ncmoe", "the build had no such field yet: nothing says it is 0"
    failure = read(asked, ended(json.dumps([{**row, older: other} for row in rows]))).failure
    assert failure is not None
    assert failure.kind is FailureKind.ECHO_MISMATCH
    assert f"{older}: asked" in failure.message


def test_a_backend_that_prints_another_ones_value_is_not_believed() -> None:
    """Older ik_llama.cpp printed Vulkan's value as kompute's."""
    rows = [{**row, "cuda": False, "vulkan": True, "kompute": True} for row in rows_of(IK)]
    assert read(full(IK), ended(json.dumps(rows))).engine["backends"] == "vulkan"


def test_a_flag_that_the_row_does_not_echo_is_told() -> None:
    """Nothing checks it: the report says so."""
    report = read(
        full(IK, flags={**FULL, "fit": 0, "numa": "disabled", "ncmoe": 0}), ended(recording(IK, "full_1.json"))
    )
    assert report.engine["not_echoed"] == "numa,fit"


def test_shifted_fields_of_builds_of_late_2025_are_not_compared() -> None:
    """Those rows have mqkv and not yet no_fused_up_gate, and print fmoe under mqkv."""
    rows = rows_of(IK)
    for row in rows:
        del row["no_fused_up_gate"]
        row.update(mqkv=True, fused_moe=False)
    report = read(full(IK, flags={**FULL, "fmoe": 1, "mqkv": 0}), ended(json.dumps(rows)))
    assert report.failure is None
    assert report.engine["not_echoed"] == "fmoe,mqkv"


def test_rows_of_the_other_fork_are_refused() -> None:
    report = read(full(IK), ended(recording(MAINLINE, "full_1.json")))
    assert report.rows == ()
    assert report.failure is not None
    assert report.failure.slug == "E-wrong-fork"


@pytest.mark.parametrize("value", [0, -5, float("nan"), float("inf"), 10**400, 10, "78443148", True, None])
def test_a_sample_that_is_no_time_makes_the_row_implausible(value: object) -> None:
    """10 ns for 512 tokens: a failed decode that ik_llama.cpp's llama-bench ignores."""
    samples = [value, *rows_of(IK)[0]["samples_ns"][1:]]
    report = read(full(IK), ended(changed(IK, samples_ns=samples)))
    assert [row.workload for row in report.rows] == ["tg64"]
    assert report.failure is not None
    assert report.failure.kind is FailureKind.IMPLAUSIBLE
    assert report.failure.slug == "E-implausible"
    assert report.failure.blames_candidate
    assert "pp512, repetition 1 of 5" in report.failure.message


def test_c_spelling_of_nan_in_means_does_no_harm_and_in_samples_is_implausible() -> None:
    """Identical samples make llama-bench print a deviation of -nan; only samples decide."""
    text = recording(IK, "full_1.json")
    deviated = re.sub(r'"stddev_ts": [\d.]+', '"stddev_ts": -nan', text)
    assert deviated != text
    assert read(full(IK), ended(deviated)).failure is None
    broken = text.replace("207448700", "nan")
    report = read(full(IK), ended(broken))
    assert report.failure is not None
    assert report.failure.kind is FailureKind.IMPLAUSIBLE
    assert "nan ns" in report.failure.message


def test_printed_means_and_deviations_are_never_read() -> None:
    text = changed(IK, avg_ns=1, stddev_ns=99, avg_ts=1e9, stddev_ts=1e9)
    report = read(full(IK), ended(text))
    assert report.failure is None
    assert report.rows[0].samples_ns == tuple(rows_of(IK)[0]["samples_ns"])


def test_times_and_rates_that_disagree_are_a_damaged_row() -> None:
    report = read(full(IK), ended(recording(IK, "full_1.json").replace("207448700", "307448700")))
    assert report.failure is not None
    assert report.failure.slug == "E-inconsistent-row"


def test_fewer_repetitions_than_asked_are_no_row() -> None:
    report = read(full(IK, repetitions=6), ended(recording(IK, "full_1.json")))
    assert report.rows == ()
    assert report.failure is not None
    assert "5 samples, asked 6" in report.failure.message


def test_an_open_array_keeps_whole_rows_and_names_the_missing() -> None:
    text = recording(IK, "full_1.json")
    report = read(full(IK), ended(text[: text.index("tg64")], signal=11))
    assert [row.workload for row in report.rows] == ["pp512"]
    assert report.failure is not None
    assert report.failure.kind is FailureKind.CRASH
    assert "SIGSEGV" in report.failure.message
    assert "missing: tg64" in report.failure.message


def test_a_clean_exit_with_an_open_array_is_a_failure_of_its_own() -> None:
    """Exit code, completeness and row count are three checks."""
    report = read(full(IK), ended(recording(IK, "full_1.json").rstrip().removesuffix("]")))
    assert len(report.rows) == 2
    assert report.failure is not None
    assert report.failure.slug == "E-incomplete-output"


def test_a_clean_exit_with_a_row_too_few_names_it() -> None:
    report = read(full(IK), ended(json.dumps(rows_of(IK)[:1])))
    assert len(report.rows) == 1
    assert report.failure is not None
    assert report.failure.slug == "E-rows-missing"
    assert "missing: tg64" in report.failure.message


def test_a_crash_after_the_whole_output_keeps_the_rows_and_is_a_failure() -> None:
    report = read(full(IK), ended(recording(IK, "full_1.json"), signal=6))
    assert len(report.rows) == 2
    assert report.failure is not None
    assert report.failure.kind is FailureKind.CRASH
    assert "SIGABRT" in report.failure.message


def test_noise_before_between_and_after_does_no_harm() -> None:
    text = recording(IK, "full_1.json").replace("  },\n", "  },\nwarning: {16, 16} noise\n")
    report = read(full(IK), ended(f"loading {{16, 16}}\n[noise]\n{text}\nbye {{}}\n"))
    assert report.failure is None
    assert len(report.rows) == 2


def test_the_beginning_of_a_row_too_many_is_a_failure_of_its_own() -> None:
    """All rows are there and the exit is clean: only the broken rest tells that something went wrong."""
    lines = "\n".join(json.dumps(row) for row in rows_of(MAINLINE)) + "\n"
    assert read(full(MAINLINE), ended(lines), OutputFormat.JSONL).failure is None
    for rest in ('{"build_commit": "unk', '{"n_prompt": 512}'):
        report = read(full(MAINLINE), ended(lines + rest), OutputFormat.JSONL)
        assert len(report.rows) == 2
        assert report.failure is not None
        assert report.failure.slug == "E-incomplete-output"


def test_an_object_that_is_a_log_is_neither_row_nor_damage() -> None:
    assert read(full(IK), ended('{"level": "info"}\n' + recording(IK, "full_1.json"))).failure is None


def test_two_rows_run_into_one_another_are_no_row() -> None:
    """A field that is said twice could be of either."""
    text = recording(IK, "full_1.json").replace('"n_gen": 0,', '"n_gen": 0, "n_prompt": 512,')
    assert [row.workload for row in read(full(IK), ended(text)).rows] == ["tg64"]


def test_a_row_that_was_not_asked_for_is_named() -> None:
    asked = order(path_build(IK), [PP512], flags=FULL)
    report = read(asked, ended(recording(IK, "full_1.json")))
    assert len(report.rows) == 1
    assert report.failure is not None
    assert report.failure.slug == "E-unexpected-row"
    assert "tg64" in report.failure.message


def test_rows_that_llama_cpp_adds_to_fill_its_grid_are_dropped() -> None:
    """All workloads at all depths are timed; only those asked for are reported, in the order's sequence."""
    deep = Workload(0, 64, 4096)
    asked = order(path_build(MAINLINE), [deep, PP512], flags=FULL)
    flat = rows_of(MAINLINE)
    rows = [{**row, "n_depth": depth} for depth in (4096, 0) for row in flat]
    rows[0]["samples_ns"] = "of a workload that nobody asked for"
    text = "\n".join(map(json.dumps, rows))
    report = BenchEngine(path_build(MAINLINE)).read(asked, ended(text))
    assert report.failure is None
    assert [row.workload for row in report.rows] == ["tg64.d4096", "pp512"]


def test_a_row_of_ik_llama_cpp_at_a_depth_is_told_by_its_label() -> None:
    """The same numbers without the label are prompt and generation at once."""
    deep = Workload(0, 64, 512)
    row = rows_of(IK)[1]
    asked = order(path_build(IK), [deep], flags=FULL)
    labelled = json.dumps([{**row, "n_prompt": 512, "test": "tg64@pp512"}])
    assert [kept.workload for kept in read(asked, ended(labelled)).rows] == ["tg64.d512"]
    plain = json.dumps([{**row, "n_prompt": 512, "test": "pp512+tg64"}])
    assert read(asked, ended(plain)).rows == ()


@pytest.mark.parametrize(
    ("fork", "what", "kind", "slug", "part"),
    [
        (IK, "bad", FailureKind.INPUT_MISSING, "E-model-missing", "models/none.gguf"),
        (MAINLINE, "bad", FailureKind.INPUT_MISSING, "E-model-missing", "models/none.gguf"),
        (IK, "badflag", FailureKind.REFUSED, "E-argument-refused", "--no-such-flag"),
        (MAINLINE, "badflag", FailureKind.REFUSED, "E-argument-refused", "--no-such-flag"),
        (MAINLINE, "oom", FailureKind.OUT_OF_MEMORY, "E-out-of-memory", "cudaMalloc failed"),
    ],
)
def test_recorded_failures_are_told_apart(fork: Fork, what: str, kind: FailureKind, slug: str, part: str) -> None:
    stdout = recording(fork, f"{what}.txt" if what == "badflag" else f"{what}.json")
    report = read(full(fork), ended(stdout, recording(fork, f"{what}.stderr.txt"), code=1))
    assert report.rows == ()
    assert report.failure is not None
    assert (report.failure.kind, report.failure.slug) == (kind, slug)
    assert part in report.failure.message
    assert "missing: pp512, tg64" in report.failure.message
    assert report.failure.detail


@pytest.mark.parametrize(
    ("exit_", "kind", "part"),
    [
        (ended(timed_out=True, signal=9), FailureKind.TIMEOUT, "deadline"),
        (ended(signal=9), FailureKind.CRASH, "memory killer"),
        (ended(signal=15), FailureKind.INTERRUPTED, "SIGTERM"),
        (ended(code=139), FailureKind.CRASH, "SIGSEGV"),
        (ended(signal=4), FailureKind.CRASH, "instructions"),
        (ended(stderr="GGML_ASSERT(nrc_x%8 == 0) failed", signal=6), FailureKind.CRASH, "nrc_x%8"),
        (ended(stderr="CUDA error: an illegal memory access", signal=6), FailureKind.CRASH, "illegal memory"),
        (ended(stderr="CUDA error: out of memory", signal=6), FailureKind.OUT_OF_MEMORY, "CUDA error"),
        (ended(stderr="terminate called after std::bad_alloc", signal=6), FailureKind.OUT_OF_MEMORY, "bad_alloc"),
        (ended(stderr="unable to allocate backend buffer", code=1), FailureKind.OUT_OF_MEMORY, "unable"),
        (
            ended(stderr="failed to allocate 8 MiB of pinned memory: out of memory", signal=11),
            FailureKind.CRASH,
            "SIGSEGV",
        ),
        (ended(stderr="error: failed to decode prompt batch, res = -3", code=1), FailureKind.CRASH, "res = -3"),
        (ended(stderr="error: failed to create context with model 'm'", code=1), FailureKind.REFUSED, "context"),
        (
            ended(stderr="error loading model: unknown model architecture: 'x'\nfailed to load model 'm'", code=1),
            FailureKind.REFUSED,
            "unknown model architecture",
        ),
        (
            ended(stderr="GGML_ASSERT(split_arg.size() <= llama_max_devices()) failed", signal=6),
            FailureKind.REFUSED,
            "-ts",
        ),
        (ended("error: unrecognized buffer type 'CPUX'", code=1), FailureKind.REFUSED, "'CPUX'"),
        (
            ended(stderr="error: Invalid tensor buffer type override: a=CPUX", code=1),
            FailureKind.REFUSED,
            "a=CPUX",
        ),
        (
            ended(stderr="x: error while loading shared libraries: libcuda.so.1: cannot open", code=127),
            FailureKind.INPUT_MISSING,
            "libcuda.so.1",
        ),
        (ended(code=3), FailureKind.CRASH, "exit code 3"),
        (ended(""), FailureKind.UNPARSABLE, "missing: pp512, tg64"),
        (ended("\n---\n hello  you\nrest"), FailureKind.UNPARSABLE, "pp512, tg64; it printed: hello you"),
        (ended("a" * 9999), FailureKind.UNPARSABLE, f"it printed: {'a' * 97}...;"),
    ],
)
def test_ends_of_processes_are_told_apart(exit_: Exit, kind: FailureKind, part: str) -> None:
    report = read(full(IK), exit_)
    assert report.failure is not None
    assert report.failure.kind is kind
    assert part in report.failure.message


def test_a_memory_warning_of_a_run_that_succeeded_is_no_failure() -> None:
    text = recording(IK, "full_1.json")
    assert read(full(IK), ended(text, "failed to allocate pinned memory, out of memory")).failure is None


def whole_samples(text: str) -> set[tuple[int, ...]]:
    return {tuple(row["samples_ns"]) for row in json.loads(text)}


RECORDED = recording(IK, "full_1.json")
WHOLE = whole_samples(RECORDED)


def survives(text: str, *, same: Callable[[tuple[int, ...]], bool]) -> None:
    """Reading never raises, and every row has samples that were really printed."""
    report = read(full(IK), ended(text))
    assert all(same(row.samples_ns) for row in report.rows)
    assert len(report.rows) == 2 or report.failure is not None


@given(cut=st.integers(0, len(RECORDED)))
def test_a_truncated_output_never_raises_and_never_invents_a_row(cut: int) -> None:
    survives(RECORDED[:cut], same=WHOLE.__contains__)


@given(start=st.integers(0, len(RECORDED)), length=st.integers(0, 3000))
def test_an_output_with_a_hole_never_raises_and_never_invents_a_row(start: int, length: int) -> None:
    survives(RECORDED[:start] + RECORDED[start + length :], same=near_recorded)


@given(at=st.integers(0, len(RECORDED)), noise=st.text(max_size=40))
def test_text_inserted_anywhere_never_raises_and_never_invents_a_row(at: int, noise: str) -> None:
    survives(RECORDED[:at] + noise + RECORDED[at:], same=near_recorded)


@given(
    field=st.sampled_from(sorted(rows_of(IK)[0])),
    value=st.one_of(
        st.integers(),
        st.just(10**400),
        st.floats(),
        st.text(),
        st.none(),
        st.booleans(),
        st.lists(st.one_of(st.floats(), st.just(10**400), st.text()), min_size=5, max_size=5),
        st.dictionaries(st.text(), st.integers(), max_size=2),
    ),
)
def test_any_value_in_any_field_is_read_without_raising(field: str, value: object) -> None:
    whole = {"fmoe": 1, "mmap": 1, "ser": "-1,0", "ot": "none", "ts": "none", "ub": 512, "ctk": "f16", "max_gpu": 0}
    report = read(full(IK, flags={**FULL, **whole}), ended(changed(IK, **{field: value})))
    assert "tg64" in [row.workload for row in report.rows]


@given(text=st.text(alphabet='{}[]":,\\ \n\tnaif0123456789-._samples', max_size=400))
def test_any_text_is_scanned_without_raising(text: str) -> None:
    assert scan(text).rows == () or "samples_ns" in text


def test_a_flood_of_broken_beginnings_is_given_up_in_time() -> None:
    """If each cost a walk to the end of the text, this would take hours."""
    assert scan('{"' * 100_000).damaged == 100_000
    assert scan('{"a": ' * 100_000).rows == ()


@pytest.mark.parametrize("flood", ['{"a": ', '{"a":0}', '{"a":[' + "1," * 50])
def test_a_flood_of_beginnings_is_neither_read_to_its_end_nor_taken_for_whole(
    flood: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that prints as much as it may costs seconds, and the row at its end is not lost without a word."""
    monkeypatch.setattr(bench_scan, "MOST_BEGINNINGS", 1000)
    found = scan(f"{flood * 1001}{RECORDED}")
    assert found.rows == ()
    assert 1 <= found.damaged <= 1001
    assert not found.closed


def test_an_object_longer_than_any_row_is_no_row() -> None:
    """Its parts would take twenty times the memory of its text."""
    endless = f'{{"samples_ns": [{"1, " * 2_000_000}1]}}'
    found = scan(endless)
    assert (found.rows, found.damaged) == ((), 1)


def near_recorded(samples: tuple[int, ...]) -> bool:
    """Printed rates bound what a changed digit can do: one part in ten thousand."""
    return any(
        len(samples) == len(printed) and all(abs(a - b) <= 2e-4 * b for a, b in zip(samples, printed, strict=True))
        for printed in WHOLE
    )
