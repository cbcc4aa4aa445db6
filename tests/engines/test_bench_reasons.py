"""Why llama-bench failed: newer builds keep it to themselves until they are asked once more with ``-v``."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_support import MODEL, PRODUCERS, RECORDINGS, ended, order, path_build

from harness.domain.build import Fork
from harness.domain.failure import Failure, FailureKind
from harness.domain.workload import Workload
from harness.engines.bench import BenchEngine
from harness.engines.flags import complete

NEWER = {Fork.LLAMA_CPP: "llama_cpp-0c1e570", Fork.IK_LLAMA_CPP: PRODUCERS[Fork.IK_LLAMA_CPP]}
IK, MAINLINE = Fork.IK_LLAMA_CPP, Fork.LLAMA_CPP
DEPTHS = {
    "ctk": "q8_0",
    "mmap": 0,
    "ngl": 0,
    "ot": r"blk\.0\.ffn=CPU;exps=CPU",
    "t": 1,
}


def recorded(what: str, fork: Fork = MAINLINE) -> str:
    return (RECORDINGS / f"{NEWER[fork]}.{what}").read_text(encoding="utf-8")


def failure_of(fork: Fork, what: str, stdout: str = "", *, signal: int | None = None) -> Failure:
    """How the end of the recorded process is read."""
    build = path_build(fork)
    exit_ = ended(stdout, recorded(f"{what}.stderr.txt", fork), code=1, signal=signal)
    failure = BenchEngine(build).read(order(build, [Workload(32, 0)]), exit_).failure
    assert failure is not None
    return failure


@pytest.mark.parametrize(
    ("fork", "what", "slug", "says"),
    [
        (IK, "foreign_v", "E-model-refused", "unknown model architecture: 'qwen9moe'"),
        (IK, "ctv_v", "E-context-refused", "V cache quantization requires flash_attn"),
        (IK, "deep_v", "E-out-of-memory", "failed to allocate buffer of size 122880786464"),
        (IK, "foreign", "E-model-refused", "does not say why"),
        (MAINLINE, "foreign_v", "E-model-refused", "unknown model architecture: 'qwen9moe'"),
        (MAINLINE, "dims_v", "E-model-refused", "not a multiple of block size"),
        (MAINLINE, "tensor_v", "E-model-refused", "LLAMA_SPLIT_MODE_TENSOR needs >= 1 devices"),
        (MAINLINE, "ctv_v", "E-context-refused", "quantized V cache requires flash_attn"),
        (MAINLINE, "deep_v", "E-out-of-memory", "insufficient memory"),
        (MAINLINE, "foreign", "E-model-refused", "does not say why"),
        (MAINLINE, "deep", "E-context-refused", "does not say why"),
    ],
)
def test_the_reason_is_the_line_that_gave_up(fork: Fork, what: str, slug: str, says: str) -> None:
    failure = failure_of(fork, what)
    assert failure.slug == slug
    assert says in failure.message


def test_an_assertion_on_memory_is_a_shortage_of_it() -> None:
    """Seen under ulimit: SIGABRT, and no word of memory but the assertion's own."""
    assert failure_of(MAINLINE, "ulimit", signal=6).kind is FailureKind.OUT_OF_MEMORY


def test_a_shortage_of_memory_told_on_standard_output_is_found() -> None:
    """ik_llama.cpp under ulimit: the word stands among the rows."""
    failure = failure_of(IK, "ulimit", recorded("ulimit.json", IK), signal=6)
    assert failure.message.startswith(
        "out of memory: ggml_aligned_malloc: insufficient memory (attempted to allocate 194"
    )


def test_kv_types_that_a_build_has_no_kernel_for_are_refused_with_its_words() -> None:
    """It aborts, but nothing is broken: it was built without those kernels."""
    failure = failure_of(IK, "ctk_q4_1", "[\n", signal=6)
    assert failure.kind is FailureKind.REFUSED
    assert failure.message.startswith("K cache q4_1 coupled with V cache f16 is not a supported combination")


@pytest.mark.parametrize(("what", "silent"), [("foreign", True), ("deep", True), ("deep_v", False), ("ctv_v", False)])
def test_a_build_that_keeps_silent_is_asked_again_with_its_logs(what: str, silent: bool, tmp_path: Path) -> None:
    program = tmp_path / "llama-bench"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    build = path_build(Fork.LLAMA_CPP, str(program))
    asked = order(build, [Workload(32, 0)], flags=complete(build, {}))
    command = BenchEngine(build).asking_why(asked, ended(stderr=recorded(f"{what}.stderr.txt"), code=1))
    assert (command is not None) == silent
    if command:
        assert command.argv[-1] == "-v"
        assert command.argv[command.argv.index("-r") + 1] == "1"


def test_nothing_is_asked_of_a_process_that_ended_well() -> None:
    build = path_build(Fork.LLAMA_CPP)
    asked = order(build, [Workload(32, 0)])
    assert BenchEngine(build).asking_why(asked, ended(recorded("depths.jsonl"))) is None
    assert BenchEngine(build).asking_why(asked, ended(stderr="", code=None, signal=11)) is None


def test_depths_of_a_newer_llama_cpp_are_read_and_echoed() -> None:
    """All workloads at all depths are printed; those asked for are kept, in the order's sequence."""
    build = path_build(Fork.LLAMA_CPP)
    wanted = [Workload(32, 0, 128), Workload(64, 0), Workload(0, 8, 128), Workload(16, 8)]
    flags = complete(build, DEPTHS)
    asked = order(build, wanted, flags=flags, repetitions=2, model=Path("models/tiny-moe-iq4xs.gguf"), threads=1)
    bench = BenchEngine(build)
    report = bench.read(asked, ended(recorded("depths.jsonl")))
    assert report.failure is None
    assert [row.workload for row in report.rows] == ["pp32.d128", "pp64", "tg8.d128", "pp16+tg8"]
    assert report.engine["build_commit"] == "0c1e570"
    assert report.engine["not_echoed"] == "numa"


def test_each_flag_of_that_build_is_compared() -> None:
    build = path_build(Fork.LLAMA_CPP)
    flags = complete(build, {**DEPTHS, "mmap": 1, "ctk": "f16"})
    wanted = [Workload(32, 0), Workload(64, 0, 128), Workload(0, 8), Workload(16, 8)]
    asked = order(build, wanted, flags=flags, repetitions=2, threads=1, model=MODEL)
    failure = BenchEngine(build).read(asked, ended(recorded("depths.jsonl"))).failure
    assert failure is not None
    assert failure.kind is FailureKind.ECHO_MISMATCH
    assert all(field in failure.message for field in ("load_mode", "type_k", "model_filename"))


def test_every_flag_of_ik_llama_cpp_that_a_cpu_build_takes_is_echoed_as_asked() -> None:
    """Also where the row says it otherwise: layers of ncmoe as overrides, a number of GPUs as truth."""
    build = path_build(IK)
    declared = {"ctk": "q8_0", "ngl": 0, "ot": "exps=CPU", "ncmoe": 1, "rtr": 1, "amb": 64, "mqkv": 1, "max_gpu": 2}
    flags = complete(build, {**declared, "ser": "2,0.5", "t": 1})
    wanted = [Workload(32, 0), Workload(0, 8), Workload(16, 8), Workload(0, 8, 64)]
    asked = order(build, wanted, flags=flags, repetitions=2, model=Path("models/tiny-moe-iq4xs.gguf"), threads=1)
    report = BenchEngine(build).read(asked, ended(recorded("depths.json", IK)))
    assert report.failure is None
    assert [row.workload for row in report.rows] == ["pp32", "tg8", "pp16+tg8", "tg8.d64"]
    assert report.engine["not_echoed"] == "numa,fit,fit_margin"
