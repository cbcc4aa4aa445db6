"""Real children on a tiny model: both wheels measured and asked by the same loop."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.domain.outputs import Ranks
from harness.engines.embedded.flags import FORKS, IK, MAINLINE
from harness.ranking import unpack

pytest.importorskip("xllamacpp")
pytest.importorskip("ik_llama_cpp")

PROMPTS = [{"name": "short", "text": "the end of her"}, {"name": "long", "text": "one more thing in the hat. " * 6}]
OUTPUTS: dict[str, Any] = {"prompts": PROMPTS, "n_predict": 12, "positions": 32, "top": 5}


@pytest.fixture(scope="module", params=FORKS)
def measured(request: pytest.FixtureRequest, child: Any, tiny_model: Path) -> Any:
    """One child for each fork that measures and produces outputs."""
    loads = {"pp32": (32, 0, 0), "tg4": (0, 4, 0), "pg": (16, 4, 300)}
    return request.param, child(request.param, tiny_model, loads=loads, outputs=OUTPUTS)


def test_lines_come_in_order_and_whole(measured: Any) -> None:
    """hello, loaded, a row for each workload, an output for each prompt, done; exit code 0."""
    _, result = measured
    assert result.code == 0, result.stderr
    kinds = [event["event"] for event in result.events]
    assert kinds == ["hello", "loaded", "row", "row", "row", "output", "output", "done"]
    assert result.of("done")[0]["peak_rss_bytes"] > 1 << 20


def test_hello_identifies_the_library_really_mapped(measured: Any) -> None:
    """Package, version, and path with hash of the mapped libraries."""
    fork, result = measured
    hello = result.of("hello")[0]
    assert hello["fork"] == fork
    names = " ".join(Path(library["path"]).name for library in hello["libraries"])
    assert ("xllamacpp" if fork == MAINLINE else "libllama") in names
    assert all(len(library["sha256"]) == 64 for library in hello["libraries"])
    assert "AVX" in hello["system_info"]


def test_loaded_tells_what_the_library_says(measured: Any) -> None:
    """Room for the largest workload, rounded up, and the model's own figures."""
    _, result = measured
    loaded = result.of("loaded")[0]
    assert loaded["n_ctx"] == 512
    assert loaded["n_vocab"] >= 256
    assert loaded["model_desc"].startswith("qwen3moe")
    assert loaded["load_ns"] > 0


def test_rows_hold_every_repetition(measured: Any) -> None:
    """Three samples were asked for, three are there, and the figures follow from them."""
    fork, result = measured
    for event in result.of("row"):
        row = event["row"]
        assert len(row["samples_ns"]) == 3
        assert min(row["samples_ns"]) > 0
        tokens = row["n_prompt"] + row["n_gen"]
        assert row["samples_ts"] == pytest.approx([1e9 * tokens / sample for sample in row["samples_ns"]])
        assert row["avg_ns"] == round(math.fsum(row["samples_ns"]) / 3)
        assert (row["n_batch"], row["n_ubatch"], row["n_threads"]) == (2048, 512, 1)
        assert row["flash_attn"] == (1 if fork == MAINLINE else True)
    assert [event["workload"] for event in result.of("row")] == ["pp32", "tg4", "pg"]


def test_outputs_are_complete(measured: Any) -> None:
    """Tokens, one margin a token, finite logits, and the most probable tokens at every position."""
    _, result = measured
    for event in result.of("output"):
        assert len(event["greedy"]) == len(event["margins"]) == 12
        assert event["finite"]
        assert event["positions"] == min(32, len(event["tokens"]))
        prefill, greedy = (unpack(Ranks(**event["ranks"][part])) for part in ("prefill", "greedy"))
        assert (prefill.ids.shape, greedy.ids.shape) == ((event["positions"], 5), (12, 5))
        assert greedy.ids[:, 0].tolist() == event["greedy"]
        assert greedy.margins == pytest.approx(event["margins"], abs=1e-5)
        assert prefill.ids[-1].tolist() == greedy.ids[0].tolist()
        assert event["ranks"]["forced"] is None


def test_outputs_do_not_depend_on_what_was_measured(measured: Any, child: Any, tiny_model: Path) -> None:
    """A fresh child with outputs alone gives the same bits: re-runs, and another size of context, are bitwise equal."""
    fork, result = measured
    again = child(fork, tiny_model, loads={}, outputs=OUTPUTS)
    assert again.of("output") == result.of("output")


def test_both_forks_cut_and_continue_a_prompt_alike(child: Any, tiny_f16: Path) -> None:
    """On F16 the tokens of prompt and answer are the same in both forks, though the logits are not bitwise."""
    one, other = (child(fork, tiny_f16, loads={}, outputs=OUTPUTS).of("output") for fork in FORKS)
    assert [event["tokens"] for event in one] == [event["tokens"] for event in other]
    assert [event["greedy"] for event in one] == [event["greedy"] for event in other]


@pytest.mark.parametrize(
    ("fork", "flags", "echo"),
    [
        (MAINLINE, {"fa": 0}, {"flash_attn": 0}),
        (MAINLINE, {"ub": 16}, {"n_ubatch": 16}),
        (MAINLINE, {"ctk": "q8_0", "ctv": "q8_0"}, {"type_k": "q8_0", "type_v": "q8_0"}),
        (MAINLINE, {"ot": "exps=CPU", "repack": 0}, {"tensor_buft_overrides": "exps=CPU", "repack": False}),
        (MAINLINE, {"mmap": 0}, {"load_mode": "none"}),
        (IK, {"fa": 0, "fmoe": 0}, {"flash_attn": False, "fused_moe": False}),
        (IK, {"rtr": 1}, {"repack": True, "use_mmap": False}),
        (IK, {"ctk": "q8_0", "b": 64, "ub": 16}, {"type_k": "q8_0", "n_batch": 64, "n_ubatch": 16}),
        (IK, {"ot": "ffn_up=CPU;exps=CPU", "amb": 64, "ser": "2,0.5"}, {"override_tensor": "ffn_up=CPU,exps=CPU"}),
        (IK, {"mqkv": 1, "thp": 1, "ger": 1, "mmap": 0}, {"mqkv": True, "use_thp": True, "grouped_er": True}),
    ],
)
def test_flags_run_and_are_echoed(
    child: Any, tiny_model: Path, fork: str, flags: dict[str, Any], echo: dict[str, Any]
) -> None:
    """Every kind of flag is taken by the library and stands in the row."""
    result = child(fork, tiny_model, flags=flags, repetitions=1)
    assert result.code == 0, result.stderr
    for event in result.of("row"):
        assert echo.items() <= event["row"].items()


def test_switched_off_memory_mapping_is_told(child: Any, tiny_model: Path) -> None:
    """Run-time repacking implies no mmap: said in the ``loaded`` line, not only done."""
    result = child(IK, tiny_model, flags={"rtr": 1, "mmap": 1}, repetitions=1)
    assert result.of("loaded")[0]["implied"] == {"mmap": "0 because of rtr"}


def test_merged_experts_give_the_same_bits(child: Any, tiny_model: Path) -> None:
    """Ik scrambles merged weights in the second context of a model: a child makes one only."""
    plain, merged = (child(IK, tiny_model, flags={"muge": muge}, outputs=OUTPUTS).of("output") for muge in (0, 1))
    assert merged == plain


def test_a_flag_that_changes_the_arithmetic_changes_the_digest(child: Any, tiny_model: Path) -> None:
    """The digest sees a quantized cache."""
    plain, cut = (child(MAINLINE, tiny_model, flags={"ctk": k}, outputs=OUTPUTS) for k in ("f16", "q4_0"))
    hashes = [[event["logits_sha256"] for event in result.of("output")] for result in (plain, cut)]
    assert hashes[0] != hashes[1]


@pytest.mark.parametrize("fork", FORKS)
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"model": "/nowhere/none.gguf"}, ("E-model-missing", 3)),
        ({"flags": {"ot": "ex(ps=CPU"}}, ("E-load", 3)),
        ({"flags": {"ot": "exps=CUDA0"}}, ("E-flag-value", 2)),
        ({"flags": {"ctv": "q8_0", "fa": 0}}, ("E-context", 3)),
        ({"flags": {"nope": 1}}, ("E-flag-unknown", 2)),
        ({"n_ctx": 256, "loads": {"pp600": (600, 0, 0)}}, ("E-decode", 4)),
        ({"n_ctx": 256, "loads": {"deep": (0, 1, 600)}}, ("E-decode", 4)),
        ({"outputs": OUTPUTS, "n_ctx": 16}, ("E-prompt-too-long", 2)),
        ({"outputs": {**OUTPUTS, "n_predict": 1 << 20}}, ("E-prompt-too-long", 2)),
    ],
)
def test_failures_are_told_with_slug_and_code(
    child: Any, tiny_model: Path, fork: str, changes: dict[str, Any], expected: tuple[str, int]
) -> None:
    """The last line says what failed, no speed is reported for it, and the exit code gives the kind."""
    result = child(fork, **{"model": tiny_model, **changes})
    assert result.events[-1]["event"] == "failed"
    assert (result.events[-1]["slug"], result.code) == expected
    assert not result.of("row")


@pytest.mark.parametrize("fork", FORKS)
def test_a_file_that_is_no_model_fails_to_load(child: Any, tmp_path: Path, fork: str) -> None:
    """The library's own words are in the message."""
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + bytes(64))
    result = child(fork, path)
    assert (result.code, result.events[-1]["slug"]) == (3, "E-load")


@pytest.mark.parametrize("fork", FORKS)
def test_a_nan_weight_is_told(child: Any, tiny_f16: Path, tmp_path: Path, fork: str) -> None:
    """The library answers token 0 for ever and calls it success; the output says that it is not finite."""
    gguf = pytest.importorskip("gguf")
    path = tmp_path / "nan.gguf"
    shutil.copy(tiny_f16, path)
    reader = gguf.GGUFReader(path, "r+")
    weight = next(tensor for tensor in reader.tensors if tensor.name == "blk.1.attn_output.weight")
    weight.data[3, 5] = float("nan")
    reader.data.flush()
    output = child(fork, path, loads={}, outputs=OUTPUTS).of("output")[0]
    assert not output["finite"]
    assert set(output["margins"]) == {None}


def test_an_unverified_wheel_ends_the_child_before_anything_is_called(child: Any, tiny_model: Path) -> None:
    """Exit code 2 and nothing but the refusal."""
    prelude = "from harness.engines.embedded import layouts; layouts.VERIFIED.clear()"
    result = child(MAINLINE, tiny_model, prelude=prelude)
    assert [event["event"] for event in result.events] == ["failed"]
    assert (result.code, result.events[0]["slug"]) == (2, "E-wheel-unverified")


def test_prints_of_the_library_cannot_tear_a_line(child: Any, tiny_model: Path) -> None:
    """What is written to file descriptor 1 after the start goes to standard error."""
    prelude = (
        "import os; from harness.engines.embedded import session\n"
        "old = session.open_verified\n"
        "session.open_verified = lambda fork: (os.write(1, b'stray print'), old(fork))[1]"
    )
    result = child(IK, tiny_model, prelude=prelude)
    assert result.code == 0
    assert "stray print" in result.stderr


def test_an_unforeseen_error_still_ends_with_a_line(child: Any, tiny_model: Path) -> None:
    """A defect of ours is a line with its own slug, and a traceback on standard error."""
    prelude = "from harness.engines.embedded import session; session.open_verified = None"
    result = child(IK, tiny_model, prelude=prelude)
    assert (result.code, result.events[-1]["slug"]) == (1, "E-internal")
    assert "Traceback" in result.stderr
