"""A throw-away model and a way to run a child, until the root conftest provides both."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

LAYERS, WIDTH, FEED, EXPERTS, USED, HEADS, KV_HEADS, HEAD = 2, 256, 256, 8, 2, 4, 2, 64
GAIN, LOGIT_DEVIATION = 0.15, 3.5


@dataclass(frozen=True)
class ChildResult:
    """What a child left: exit code, its lines, its standard error."""

    code: int
    events: list[dict[str, Any]]
    stderr: str

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Lines of one kind, in order."""
        return [event for event in self.events if event["event"] == kind]


Child = Callable[..., ChildResult]


@pytest.fixture(scope="session")
def tiny_f16(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A qwen3moe of 2 layers, 256 wide, 8 experts, with random weights of gain 0.15, in F16."""
    pytest.importorskip("gguf")
    path = tmp_path_factory.mktemp("models") / "tiny-f16.gguf"
    _write_model(path)
    return path


@pytest.fixture(scope="session")
def tiny_model(tiny_f16: Path) -> Path:
    """The same in IQ4_XS, made with the quantizer of ik's wheel."""
    spec = importlib.util.find_spec("ik_llama_cpp")
    if spec is None or spec.origin is None:
        pytest.skip("ik-llama-cpp-python is not installed: no quantizer")
    quantizer = Path(spec.origin).parent / "bin" / "llama-quantize"
    path = tiny_f16.with_name("tiny-iq4_xs.gguf")
    subprocess.run([quantizer, tiny_f16, path, "IQ4_XS", "1"], check=True, capture_output=True)
    return path


@pytest.fixture(scope="session")
def child() -> Child:
    """Run a child with a request made of keywords."""

    def start(fork: str, model: Path | str, *, prelude: str = "", **fields: Any) -> ChildResult:
        loads = fields.pop("loads", {"pp32": (32, 0, 0), "tg4": (0, 4, 0)})
        request = {
            "fork": fork,
            "model": str(model),
            "threads": 1,
            "repetitions": 3,
            "seed": 1,
            "flags": {},
            "workloads": _workloads(loads),
            **fields,
        }
        argv = [sys.executable, "-m", "harness.engines.embedded"]
        if prelude:
            entry = "import sys; from harness.engines.embedded.__main__ import main; sys.exit(main())"
            argv = [sys.executable, "-c", f"{prelude}\n{entry}"]
        done = subprocess.run(argv, input=json.dumps(request), capture_output=True, text=True, check=False, timeout=120)
        return ChildResult(done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr)

    return start


def _workloads(loads: Mapping[str, tuple[int, int, int]]) -> list[dict[str, Any]]:
    return [{"name": name, "n_prompt": pp, "n_gen": tg, "n_depth": depth} for name, (pp, tg, depth) in loads.items()]


def _byte_tokens() -> list[str]:
    """GPT-2's printable stand-in of each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    stand_in = {byte: chr(byte) for byte in printable}
    for rank, byte in enumerate(byte for byte in range(256) if byte not in stand_in):
        stand_in[byte] = chr(256 + rank)
    return [stand_in[byte] for byte in range(256)]


def _write_model(path: Path) -> None:
    import gguf  # noqa: PLC0415 - the fixture has checked that it is there

    writer = gguf.GGUFWriter(path, "qwen3moe")
    merges = [f"{a} {b}" for a, b in ("th", "he", "in", "er", "an", "re", "on", "at", "en", "nd")]
    tokens = [*_byte_tokens(), *(merge.replace(" ", "") for merge in merges)]
    tokens += [f"[unused{i}]" for i in range(319 - len(tokens))] + ["<|endoftext|>"]
    _add_metadata(writer, tokens, merges)
    _add_tensors(writer, len(tokens))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_metadata(writer: Any, tokens: list[str], merges: list[str]) -> None:
    writer.add_context_length(2048)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED)
    writer.add_expert_feed_forward_length(FEED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    writer.add_expert_count(EXPERTS)
    writer.add_expert_used_count(USED)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * (len(tokens) - 1) + [3])
    writer.add_token_merges(merges)
    writer.add_eos_token_id(len(tokens) - 1)
    writer.add_add_bos_token(False)


def _add_tensors(writer: Any, n_vocab: int) -> None:
    import numpy as np  # noqa: PLC0415 - as above

    random = np.random.default_rng(0)

    def matrix(name: str, *shape: int, deviation: float) -> None:
        values = random.standard_normal(shape, dtype=np.float32) * np.float32(deviation)
        writer.add_tensor(f"{name}.weight", values.astype(np.float16))

    def norm(name: str, size: int) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(size, np.float32))

    unit = WIDTH**-0.5
    matrix("token_embd", n_vocab, WIDTH, deviation=1.0)
    matrix("output", n_vocab, WIDTH, deviation=LOGIT_DEVIATION * unit)
    norm("output_norm", WIDTH)
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        norm(block + "attn_norm", WIDTH)
        norm(block + "ffn_norm", WIDTH)
        norm(block + "attn_q_norm", HEAD)
        norm(block + "attn_k_norm", HEAD)
        matrix(block + "attn_q", HEADS * HEAD, WIDTH, deviation=unit)
        matrix(block + "attn_k", KV_HEADS * HEAD, WIDTH, deviation=unit)
        matrix(block + "attn_v", KV_HEADS * HEAD, WIDTH, deviation=unit)
        matrix(block + "attn_output", WIDTH, HEADS * HEAD, deviation=4 * GAIN * unit)
        router = random.standard_normal((EXPERTS, WIDTH), dtype=np.float32) * np.float32(2 * unit)
        writer.add_tensor(block + "ffn_gate_inp.weight", router)
        matrix(block + "ffn_gate_exps", EXPERTS, FEED, WIDTH, deviation=unit)
        matrix(block + "ffn_up_exps", EXPERTS, FEED, WIDTH, deviation=unit)
        matrix(block + "ffn_down_exps", EXPERTS, WIDTH, FEED, deviation=2 * GAIN * unit)
