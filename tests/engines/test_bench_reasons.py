"""Why llama-bench failed: newer builds keep it to themselves until they are asked once more with ``-v``."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_support import MODEL, RECORDINGS, ended, order, path_build

from harness.domain.build import Fork
from harness.domain.failure import Failure, FailureKind
from harness.domain.workload import Workload
from harness.engines.bench import BenchEngine
from harness.engines.flags import complete

PRODUCER = "llama_cpp-0c1e570"
DEPTHS = {
    "ctk": "q8_0",
    "mmap": 0,
    "ngl": 0,
    "ot": r"blk\.0\.ffn=CPU;exps=CPU",
    "t": 1,
}


def recorded(what: str) -> str:
    return (RECORDINGS / f"{PRODUCER}.{what}").read_text(encoding="utf-8")


def failure_of(what: str, *, signal: int | None = None) -> Failure:
    """How the end of the recorded process is read."""
    build = path_build(Fork.LLAMA_CPP)
    exit_ = ended(stderr=recorded(f"{what}.stderr.txt"), code=1, signal=signal)
    failure = BenchEngine(build).read(order(build, [Workload(32, 0)]), exit_).failure
    assert failure is not None
    return failure


@pytest.mark.parametrize(
    ("what", "slug", "says"),
    [
        ("foreign_v", "E-model-refused", "unknown model architecture: 'qwen9moe'"),
        ("dims_v", "E-model-refused", "not a multiple of block size"),
        ("tensor_v", "E-model-refused", "LLAMA_SPLIT_MODE_TENSOR needs >= 1 devices"),
        ("ctv_v", "E-context-refused", "quantized V cache requires flash_attn"),
        ("deep_v", "E-out-of-memory", "insufficient memory"),
        ("foreign", "E-model-refused", "does not say why"),
        ("deep", "E-context-refused", "does not say why"),
    ],
)
def test_the_reason_is_the_line_that_gave_up(what: str, slug: str, says: str) -> None:
    failure = failure_of(what)
    assert failure.slug == slug
    assert says in failure.message


def test_an_assertion_on_memory_is_a_shortage_of_it() -> None:
    """Seen under ulimit: SIGABRT, and no word of memory but the assertion's own."""
    assert failure_of("ulimit", signal=6).kind is FailureKind.OUT_OF_MEMORY


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
